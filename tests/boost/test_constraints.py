"""The dual constraints count every entry of an atom's weights, whatever the atom and the loss."""

import numpy as np
import pytest

from laconic.boost.constraints import most_violated
from problems import make_rows, random_problem

GROUPS = [[0, 3], [1], [2, 4, 5]]


@pytest.mark.parametrize("groups", [None, GROUPS])
@pytest.mark.parametrize("limit", [0.0, 0.02, 0.06, 1.0])
def test_the_most_violated_atom_by_its_definition(groups, limit):
    X, y = random_problem(seed=3)
    rows = make_rows(X, y, groups=groups)
    rows.evaluate(np.zeros((1, 3)))
    g = np.abs(X.T @ rows.residual_of_all_rows())
    atoms = groups or [[j] for j in range(6)]
    over = np.array([np.maximum(g[atom] - limit, 0.0).sum() for atom in atoms])
    for barred in ([], [int(over.argmax())]):
        choice = most_violated(rows, np.array(barred, dtype=np.int64), limit)
        left = np.delete(over, barred)
        assert choice.score == pytest.approx(left.max(), abs=1e-12)
        assert over[choice.index] == pytest.approx(left.max(), abs=1e-12)
        assert choice.steepest == pytest.approx(g.max(), rel=1e-12)
    nothing = most_violated(rows, np.arange(len(atoms)), limit)
    assert (nothing.index, nothing.score) == (-1, -np.inf)

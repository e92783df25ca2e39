"""A column of zeros in a group teaches nothing, and changes no model."""

import numpy as np
import pytest

from laconic import ShareBoostClassifier, TotalQBoostClassifier


def problem(dtype, m=4000):
    """So many rows that the preconditioner is estimated from some of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 5)).astype(dtype)
    y = (X[:, 0] + X[:, 1] + X[:, 3] + 0.5 * rng.standard_normal(m) > 0).astype(int)
    return X, np.insert(X, 0, 0.0, axis=1), y


def models():
    for search in ("local", None):
        for loss in ("logistic", "exponential"):
            yield TotalQBoostClassifier(6, pool="columns", loss=loss, search=search, price=1e-4)
    for alpha in (0.0, 1e-3):
        yield ShareBoostClassifier(3, alpha=alpha, tol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", list(models()), ids=lambda model: str(model)[:40])
def test_a_column_of_zeros_in_a_group(model, dtype):
    X, wide, y = problem(dtype)
    groups = [0, 0, 1, 2, 2]
    known = model.set_params(groups=groups).fit(X, y)
    path = [(entry.objective, [atom.features for atom in entry.atoms]) for entry in known.path_]
    found = model.set_params(groups=[0, *groups]).fit(wide, y)
    assert len(found.path_) == len(path) == 4
    for entry, (objective, atoms) in zip(found.path_, path, strict=True):
        assert entry.objective == pytest.approx(objective, rel=1e-4)
        assert entry.certificate.converged
        assert [tuple(f - 1 for f in atom.features if f) for atom in entry.atoms] == atoms

"""Products with the rows and their constant feature, in every storage."""

import numpy as np
import pytest
from scipy import sparse

from laconic.clumping.margins import MarginLimits, Margins
from laconic.numeric.threads import Threads

STORED = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "sparse": sparse.csr_matrix,
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("intercept", [True, False])
def test_products_are_those_of_the_plain_matrix(stored, intercept):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((205, 7)), 2).astype(np.float32).astype(np.float64)
    plain = np.hstack([X, np.ones((205, int(intercept)))])
    w, v = rng.standard_normal(plain.shape[1]), rng.standard_normal(205)
    weight = np.maximum(v, 0)
    close = 1e-5 if stored == "float32" else 1e-12
    with Threads(2) as threads:
        limits = MarginLimits(rows=40, gram_rows=30, grams_held=2)
        rows = Margins(STORED[stored](X), intercept, threads, limits)
        assert rows.n_weights == plain.shape[1]
        assert rows.scores(w) == pytest.approx(plain @ w, rel=close, abs=close)
        assert rows.scores(w, exact=True) == pytest.approx(plain @ w, rel=1e-12, abs=1e-12)
        assert rows.sums(v) == pytest.approx(plain.T @ v, rel=close, abs=10 * close)
        assert rows.sums(v, exact=True) == pytest.approx(plain.T @ v, rel=1e-12, abs=1e-12)
        assert rows.squares(weight) == pytest.approx((plain**2).T @ weight, rel=close)
        gram = (plain * weight[:, None]).T @ plain
        for some in (np.arange(plain.shape[1]), np.array([1, 4, plain.shape[1] - 1])):
            found = rows.gram(weight, some)
            assert found == pytest.approx(gram[np.ix_(some, some)], rel=close, abs=10 * close)

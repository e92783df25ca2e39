"""Tests on fresh rows: the probability of so many errors, or of so large losses, by chance."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import hypergeom, norm, rankdata

from laconic.report.expected import Recalibration

# Rows up to which the Poisson-binomial tail is summed exactly.
EXACT = 300
# Nodes of the integral over the uncertainty of the recalibration.
NODES = 21
# Rows inside up to which losses are permuted, and the number of permutations.
PERMUTED, PERMUTATIONS = 50, 20_000


def at_least(errors: int, expected: np.ndarray) -> np.ndarray:
    """Return the probability of at least ``errors`` errors in rows with these expected errors.

    The number of errors has a Poisson-binomial distribution. Up to ``EXACT`` rows its tail is a sum
    of products without cancellation. For more rows it is Lugannani and Rice's saddlepoint
    approximation for whole numbers, with a relative error of order 1/n.

    Parameters
    ----------
    errors : int
    expected : ndarray of shape (..., n_rows)

    Examples
    --------
    >>> at_least(2, np.array([0.5, 0.5, 0.5]))
    array(0.5)
    """
    n = expected.shape[-1]
    if errors <= 0:
        return np.ones(expected.shape[:-1])
    if errors > n:
        return np.zeros(expected.shape[:-1])
    return (_exact if n <= EXACT else _saddlepoint)(errors, expected)


def _exact(errors: int, expected: np.ndarray) -> np.ndarray:
    """Add one row after the other. The last state is “at least so many”, and is never left."""
    chance = np.zeros((*expected.shape[:-1], errors + 1))
    chance[..., 0] = 1.0
    for i in range(expected.shape[-1]):
        p = expected[..., i, None]
        moved = chance[..., :-1] * p
        chance[..., :-1] *= 1.0 - p
        chance[..., 1:] += moved
    return chance[..., -1]


def _saddlepoint(errors: int, expected: np.ndarray) -> np.ndarray:
    """Approximate P(S ≥ errors) where K′(s) = errors."""
    n = expected.shape[-1]
    if errors == n:
        return np.exp(np.log(expected).sum(axis=-1))
    shift = logit(expected)
    s = np.zeros(expected.shape[:-1])
    for _ in range(60):
        p = expit(shift + s[..., None])
        step = (p.sum(axis=-1) - errors) / (p * (1.0 - p)).sum(axis=-1)
        s = s - np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-12:
            break
    p = expit(shift + s[..., None])
    spread = np.sqrt((p * (1.0 - p)).sum(axis=-1))
    K = (np.logaddexp(0.0, shift + s[..., None]) - np.logaddexp(0.0, shift)).sum(axis=-1)
    w = np.sign(s) * np.sqrt(2.0 * np.maximum(s * errors - K, 0.0))
    u = -np.expm1(-s) * spread
    close = np.abs(w) < 1e-3
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = norm.sf(w) + norm.pdf(w) * (1.0 / u - 1.0 / w)
    # At the mean both terms are infinite. Their difference has this limit.
    skew = (p * (1.0 - p) * (1.0 - 2.0 * p)).sum(axis=-1) / spread**3
    middle = 0.5 + (0.5 / spread - skew / 6.0) / np.sqrt(2.0 * np.pi) - w / np.sqrt(2.0 * np.pi)
    return np.clip(np.where(close, middle, tail), 0.0, 1.0)


def surprise(errors: int, own: np.ndarray, curve: Recalibration) -> float:
    """Return the probability of at least so many errors in rows that fail as the model expects.

    The curve of the recalibration is uncertain: β is about normal with the covariance of the fit.
    The expected number of errors depends on β mostly through g·β, with g its gradient. So the tail
    is averaged over the one direction in which g·β varies, by Gauss-Hermite quadrature.
    """
    if len(own) == 0:
        return 1.0
    B = curve.basis(own)
    scores = B @ curve.coef
    p = expit(scores)
    gradient = (p * (1.0 - p)) @ B
    moved = curve.covariance @ gradient
    spread = np.sqrt(max(float(gradient @ moved), 0.0))
    direction = B @ moved / spread if spread > 0 else np.zeros(len(own))
    at, weight = np.polynomial.hermite_e.hermegauss(NODES)
    shifted = expit(scores + at[:, None] * direction)
    tails = at_least(errors, np.clip(shifted, 1e-12, 1.0 - 1e-12))
    return float(weight @ tails / weight.sum())


def spread_evenly(errors: int, rows: int, out_errors: int, out_rows: int) -> float:
    """Return the probability of at least as many errors inside if errors fell on rows at random."""
    return float(hypergeom.sf(errors - 1, rows + out_rows, errors + out_errors, rows))


def higher_losses(inside: np.ndarray, outside: np.ndarray) -> float:
    """Return the probability of at least so large ranks of losses inside by chance, one-sided.

    With few rows inside, ranks are permuted at random. Otherwise the sum of the ranks is about
    normal, with the variance that ties leave.
    """
    n, m = len(inside), len(inside) + len(outside)
    if n == 0 or len(outside) == 0:
        return 1.0
    ranks = rankdata(np.concatenate([inside, outside]))
    observed, spread = ranks[:n].sum(), ranks.std(ddof=1)
    if spread == 0:
        return 1.0
    if n > PERMUTED and m - n > PERMUTED:
        wide = spread * np.sqrt(n * (m - n) / m)
        return float(norm.sf((observed - n * ranks.mean()) / wide))
    rng = np.random.default_rng(0)
    fewer = min(n, m - n)
    sums = np.array([rng.choice(ranks, fewer, replace=False).sum() for _ in range(PERMUTATIONS)])
    sums = sums if fewer == n else ranks.sum() - sums
    return float((1 + (sums >= observed - 1e-9).sum()) / (1 + PERMUTATIONS))


def holm(chances: list[float], weights: list[float]) -> list[float]:
    """Return the chances adjusted for their number, so that the level holds for all together.

    This is Holm's method with weights. A test gets the part of the level that its weight is of all
    weights. If it is rejected, it leaves its part to the others. The weights may not depend on the
    rows that the chances come from.

    Examples
    --------
    >>> holm([0.004, 0.001, 0.5], [1.0, 0.5, 0.25])
    [0.005, 0.0035, 0.5]
    """
    order = np.argsort(np.asarray(chances) / np.asarray(weights), kind="stable").tolist()
    out, so_far = [0.0] * len(chances), 0.0
    for place, which in enumerate(order):
        left = sum(weights[other] for other in order[place:])
        so_far = max(so_far, min(1.0, left * chances[which] / weights[which]))
        out[which] = so_far
    return out


def falling(first: float, number: int) -> list[float]:
    """Return weights ``first`` times 1, 1/2, 1/3, …, as a search finds the best region first."""
    return [first / (place + 1) for place in range(number)]

"""Weights of given columns, by Newton steps: what every subset search asks for most.

Columns come *signed*: row j of ``S`` holds y_i x_ij, so that margins are w S and a search never
sees labels. Entries are -1, 0 or 1.

All of it is left to NumPy, BLAS and LAPACK. Supports are small, but rows are many: a kernel of the
same steps would be no quicker, and takes ten seconds to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from laconic.losses import BinaryLoss
from laconic.subset.quadratic import choose_orthant, least_of_model

# Times that a fall of the objective may be more than `reach` says; more where the Newton step is by
# the curvature of another point, or the first ones from no weights.
HOPE, STALE_HOPE = 2.0, 12.0
# Steps by one curvature go on while what they promise shrinks by this factor each.
SHRINK = 0.4
# A value of less than this counts as this where gains are compared with it, since the loss of
# separable data has no least value to come near.
SMALL = 1e-3
# Added to curvatures, by their mean: weights that rows all but agree on do not run away.
RIDGE = 1e-8
# In solves finer than this: once steps promise a relative gain below `NEAR` the ridge
# is less, down to what keeps curvatures invertible, since steps would crawl where the loss is flat.
FINE, NEAR, LEAST_DAMP = 1e-12, 1e-10, 1e-5
# Times the loss of no weights above which Newton steps take longer from a start than from none.
LOST = 20.0
# Steps from no weights that are not given up as soon as others: the first ones promise little.
PATIENCE = 8
# Longest change of a weight in a step: longer ones overflow the loss and teach nothing. After so
# many steps of that length in a row, a tilted objective has no least point, or one beyond interest.
FAR, RUNAWAY = 20.0, 15


class SubsetObjective(NamedTuple):
    """Mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over the weights of the rows of ``S``.

    Row ``free`` of ``S``, if that is not -1, is not bounded, and its price must be zero.
    """

    loss: BinaryLoss
    S: np.ndarray
    weight: np.ndarray
    price: np.ndarray
    positive: bool
    free: int
    most: float
    """A start of a higher value is worse than one at zero."""
    tilt: np.ndarray | None = None

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The value, and the dual weights u = −l′ of the rows."""
        losses, u = self.loss.at(w @ self.S)
        value = self.weight @ losses + self.price @ np.abs(w)
        if self.tilt is not None:
            value -= self.tilt @ w
        return float(value), u

    def slope(self, u: np.ndarray) -> np.ndarray:
        """Gradient of all but the prices."""
        slope: np.ndarray = -(self.S @ (self.weight * u))
        return slope if self.tilt is None else slope - self.tilt


def differentiate(
    loss: BinaryLoss, margins: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Weighted mean loss, and its first and second derivatives in the margins."""
    losses, u = loss.at(margins)
    return float(weight @ losses), -weight * u, weight * loss.bend(u)


def reach(value: float, decrement: float) -> float:
    """Least value along the Newton step under the exponential loss: P e^-d + N e^d at its best.

    P + N is the value and ½ (P − N)² / (P + N) what the quadratic model promises, so that the
    least, 2 √(PN), is this.
    """
    return value * math.sqrt(max(1.0 - 2.0 * decrement / value, 0.0)) if value != 0 else 0.0


def curvature(S: np.ndarray, second: np.ndarray, damp: float = 1.0) -> np.ndarray:
    """Curvature among the rows of ``S``, with a ridge: rows that repeat do not spoil it."""
    rooted = S * np.sqrt(second)
    H: np.ndarray = rooted @ rooted.T  # half the work of a product of two matrices
    diagonal = H.ravel()[:: len(H) + 1]
    diagonal += damp * RIDGE * diagonal.sum() / max(len(H), 1) + 1e-30
    return H


def solve(
    objective: SubsetObjective, start: np.ndarray, tol: float, target: float = np.inf
) -> tuple[np.ndarray, float, float]:
    """Minimise the objective: each step goes to the least point of its quadratic model.

    Gives up where the objective can hardly come down to ``target``, or has no least point.

    Returns
    -------
    weights : ndarray
    value : float
    promised : float
        Predicted gain of the last step; infinity if there seems to be no least point.
    """
    w = start
    value, u = objective.at(w)
    patience = 0
    if not value <= objective.most:
        w, patience = np.zeros_like(w), PATIENCE
        value, u = objective.at(w)
    decrement, far = np.inf, 0
    for taken in range(200):
        damp, noise = 1.0, 0.0
        if tol < FINE:
            damp = max(min(1.0, decrement / (NEAR * max(value, SMALL))), LEAST_DAMP)
            # Differences of the objective below its own rounding say nothing about the step.
            noise = 4.0 * np.finfo(np.float64).eps * abs(value)
        step, slope, decrement = _newton_step(objective, w, u, damp)
        if not decrement > 0:
            break
        hope = HOPE if taken >= patience else STALE_HOPE
        if target < np.inf and reach(value, hope * decrement) > target:
            break
        t = min(1.0, FAR / max(float(np.abs(step).max()), 1e-300))
        far = far + 1 if t < 1.0 and objective.tilt is not None else 0
        if far > RUNAWAY:
            return w, value, np.inf
        moved = _search_line(objective, w, value, step, slope, t, noise)
        if moved is None:
            break
        w, value, u = moved
        if decrement <= tol * max(value, SMALL):
            break
    return w, value, decrement


def _newton_step(
    objective: SubsetObjective, w: np.ndarray, u: np.ndarray, damp: float
) -> tuple[np.ndarray, float, float]:
    """Step to the least point of the quadratic model, its slope, and the decrease it promises.

    Weights at zero that the gradient does not ask to leave it stay there. The slope, of the
    objective at the beginning of the step, has prices for the straight way to its end.
    """
    S, price, positive, free = objective.S, objective.price, objective.positive, objective.free
    gradient = objective.slope(u)
    every, own, at = w.all() and len(w) > 0, w, free
    if not every:
        moving = np.flatnonzero(choose_orthant(w, gradient, price, positive, free))
        if len(moving) == 0:
            return np.zeros_like(w), 0.0, 0.0
        every = len(moving) == len(w)
    if not every:
        S, gradient, price, own = S[moving], gradient[moving], price[moving], w[moving]
        at = int(np.searchsorted(moving, free)) if free >= 0 else -1
    H = curvature(S, objective.weight * objective.loss.bend(u), damp)
    x = least_of_model(H, gradient, price, own, positive, at)
    d = x - own
    slope = float(gradient @ d + price @ (np.abs(x) - np.abs(own)))
    promised = -slope - 0.5 * float(d @ (H @ d))
    if every:
        return d, slope, promised
    step = np.zeros_like(w)
    step[moving] = d
    return step, slope, promised


def _search_line(
    objective: SubsetObjective,
    w: np.ndarray,
    value: float,
    step: np.ndarray,
    slope: float,
    t: float,
    noise: float,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Halve a step until it lowers the objective, but for ``noise``."""
    for _ in range(50):
        trial = w + t * step
        new, u = objective.at(trial)
        if new <= value + 1e-4 * t * slope + noise and new < value + noise:
            return trial, new, u
        t *= 0.5
    return None


def settle(
    objective: SubsetObjective, start: np.ndarray, inverse: np.ndarray, tol: float, target: float
) -> tuple[np.ndarray, float, float]:
    """`solve` from a start that is nearly right, with an inverse curvature that nearly is, too.

    Steps by a given inverse cost two products with ``S`` each, and most starts that cannot reach
    the target show it after a few. Where steps no longer shrink fast, the curvature is taken anew;
    where a weight would change its sign, the rest is left to `solve`.
    """
    w, price = start, objective.price
    value, u = objective.at(w)
    last, fresh, factor = np.inf, False, None
    for _ in range(60):
        if not value <= objective.most:
            break
        slope = objective.slope(u) + price * np.sign(w)
        step = inverse @ slope if factor is None else dpotrs(factor, slope)[0]
        decrement = 0.5 * float(slope @ step)
        if reach(value, (HOPE if fresh else STALE_HOPE) * decrement) > target:
            return w, value, decrement
        new = np.inf
        if 0 <= decrement <= SHRINK * last:
            trial = w - step
            if _crosses(objective, w, trial):
                break
            new, above = objective.at(trial)
        if new <= value:
            w, value, u, last, fresh = trial, new, above, decrement, False
            if decrement <= tol * max(value, SMALL):
                return w, value, decrement
        elif fresh:
            break
        else:
            H = curvature(objective.S, objective.weight * objective.loss.bend(u))
            factor, indefinite = dpotrf(H)
            if indefinite:
                break
            last, fresh = np.inf, True
    return solve(objective, w, tol, target)


def _crosses(objective: SubsetObjective, w: np.ndarray, trial: np.ndarray) -> bool:
    """Whether a weight would pass a kink of its price or the bound of the positive ones."""
    passes = (trial * w <= 0) & (objective.price > 0)
    if objective.positive:
        passes |= trial <= 0
    if not passes.any():
        return False
    passes &= trial != w
    if objective.free >= 0:
        passes[objective.free] = False
    return bool(passes.any())

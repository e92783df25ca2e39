"""Optimise the weights of given columns by Newton steps, the main work of every subset search.

Columns are *signed*: row j of ``S`` holds y_i x_ij. So the margins are w S, and a search never sees
labels. Entries are -1, 0 or 1.

NumPy, BLAS and LAPACK do all the work. Supports are small, but rows are many. A compiled kernel of
the same steps would not be faster, and would take ten seconds to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from laconic.losses import BinaryLoss
from laconic.numeric.newton_steps import backtrack, first_part
from laconic.subset.quadratic import choose_orthant, least_of_model

# A solve is given up if `reach`, with the predicted gain times `HOPE`, is still above the target.
# `STALE_HOPE` takes the place of `HOPE` if the Newton step uses the curvature of another point, and
# for the first steps from zero weights.
HOPE, STALE_HOPE = 2.0, 12.0
# One curvature is used for several steps as long as each predicted gain is at most this part of the
# one before.
SHRINK = 0.4
# When gains are compared with a value, a smaller value counts as this. The loss of separable data
# has no minimum that a solve could come near.
SMALL = 1e-3
# Added to curvatures, as a part of their mean. It keeps weights finite that the rows hardly
# determine.
RIDGE = 1e-8
# If the tolerance of a solve is below `FINE`, the ridge shrinks once the predicted relative gain is
# below `NEAR`, because steps would be too short where the loss is flat. It shrinks at most by the
# factor `LEAST_DAMP`, so that curvatures stay invertible.
FINE, NEAR, LEAST_DAMP = 1e-12, 1e-10, 1e-5
# If the value at a start is more than this many times the loss of zero weights, Newton steps from
# zero weights are faster.
LOST = 20.0
# Number of first steps from zero weights that are given up less readily. They predict little gain.
PATIENCE = 8
# After this many steps in a row that had to be cut, a tilted objective has no minimum, or one too
# far away to matter.
RUNAWAY = 15


class SubsetObjective(NamedTuple):
    """Mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over the weights of the rows of ``S``.

    The weight of row ``free`` of ``S`` has no bound, and its price must be zero. ``free`` is -1 if
    there is no such row.
    """

    loss: BinaryLoss
    S: np.ndarray
    weight: np.ndarray
    price: np.ndarray
    positive: bool
    free: int
    most: float
    """If the value at a start is above this, the solve starts from zero weights instead."""
    tilt: np.ndarray | None = None

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value, and the dual weights u = −l′ of the rows."""
        losses, u = self.loss.at(w @ self.S)
        value = self.weight @ losses + self.price @ np.abs(w)
        if self.tilt is not None:
            value -= self.tilt @ w
        return float(value), u

    def slope(self, u: np.ndarray) -> np.ndarray:
        """Return the gradient of the objective without the prices."""
        slope: np.ndarray = -(self.S @ (self.weight * u))
        return slope if self.tilt is None else slope - self.tilt


def differentiate(
    loss: BinaryLoss, margins: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the weighted mean loss, and its first and second derivatives in the margins."""
    losses, u = loss.at(margins)
    return float(weight @ losses), -weight * u, weight * loss.bend(u)


def reach(value: float, decrement: float) -> float:
    """Return the smallest value along the Newton step under the exponential loss.

    Along the step the value is P e^-d + N e^d, with P + N the present value. The predicted gain of
    the quadratic model is ½ (P − N)² / (P + N). These two numbers give the minimum, 2 √(PN).
    """
    return value * math.sqrt(max(1.0 - 2.0 * decrement / value, 0.0)) if value != 0 else 0.0


def curvature(S: np.ndarray, second: np.ndarray, damp: float = 1.0) -> np.ndarray:
    """Return the curvature among the rows of ``S``.

    A ridge keeps it invertible if rows repeat.
    """
    rooted = S * np.sqrt(second)
    H: np.ndarray = rooted @ rooted.T  # half the work of a product of two matrices
    diagonal = H.ravel()[:: len(H) + 1]
    diagonal += damp * RIDGE * diagonal.sum() / max(len(H), 1) + 1e-30
    return H


def solve(
    objective: SubsetObjective, start: np.ndarray, tol: float, target: float = np.inf
) -> tuple[np.ndarray, float, float]:
    """Minimise the objective. Each step goes towards the minimum of its quadratic model.

    The solve gives up if the objective can hardly fall to ``target``, or has no minimum.

    Returns
    -------
    weights : ndarray
    value : float
    promised : float
        Predicted gain of the last step, or infinity if there seems to be no minimum.
    """
    w = start
    value, u = objective.at(w)
    patience = 0
    if not value <= objective.most:
        w, patience = np.zeros_like(w), PATIENCE
        value, u = objective.at(w)
    decrement, cut, tilted = np.inf, 0, objective.tilt is not None
    for taken in range(200):
        damp, noise = 1.0, 0.0
        if tol < FINE:
            damp = max(min(1.0, decrement / (NEAR * max(value, SMALL))), LEAST_DAMP)
            # Differences of the objective below its rounding say nothing about the step.
            noise = 4.0 * np.finfo(np.float64).eps * abs(value)
        step, slope, decrement = _newton_step(objective, w, u, damp)
        if not decrement > 0:
            break
        hope = HOPE if taken >= patience else STALE_HOPE
        if target < np.inf and reach(value, hope * decrement) > target:
            break
        t = first_part(step, 0 if tilted else cut)
        cut = cut + 1 if t < 1.0 else 0
        if tilted and cut > RUNAWAY:
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
    """Return the step to the minimum of the quadratic model, its slope and its predicted gain.

    Weights at zero that the gradient does not move away from zero stay there. The slope is that of
    the objective at the start of the step. For the prices it takes the change of Σ_j price_j |w_j|
    over the whole step.
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
    """Halve a step until it lowers the objective, up to ``noise``. Return None if it never does."""

    def trial(t: float) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
        candidate = w + t * step
        new, u = objective.at(candidate)
        return new, t * slope, (candidate, u)

    found = backtrack(trial, t, value, noise, strictly=True)
    if found is None:
        return None
    _, new, (candidate, u) = found
    return candidate, new, u


def settle(
    objective: SubsetObjective, start: np.ndarray, inverse: np.ndarray, tol: float, target: float
) -> tuple[np.ndarray, float, float]:
    """Minimise the objective like `solve`, from a good start with a good inverse curvature.

    A step with a given inverse costs two products with ``S``. Most starts that cannot reach the
    target show this after a few steps. If the steps no longer shrink fast, the curvature is
    computed again. If a weight would change its sign, `solve` does the rest.
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
    """Return whether a weight would pass the kink of its price, or the bound at zero."""
    passes = (trial * w <= 0) & (objective.price > 0)
    if objective.positive:
        passes |= trial <= 0
    if not passes.any():
        return False
    passes &= trial != w
    if objective.free >= 0:
        passes[objective.free] = False
    return bool(passes.any())

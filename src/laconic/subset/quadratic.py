"""Minimise a quadratic model with prices on its weights, to find a Newton step.

Notes
-----
Let g and H be the gradient and the curvature at w. The model is

    q(x) = g·(x − w) + ½ (x − w)ᵀ H (x − w) + Σ_j price_j (|x_j| − |w_j|) ,

over all x, or over x ≥ 0. It is minimised face by face. The face of a point consists of the weights
that are not zero, with their signs, and of the weights at zero that the slope of the model moves
away from zero. The Newton step of the face can still move some weights at zero the other way,
because of the other weights. These weights leave the face, and the step is computed again. Not all
of them leave: each weight that leaves has slope_j step_j > 0, but the sum over the face is below
zero. A step stops where the first weight reaches zero. That weight is then off the face, or on a
face with its other sign.

So q falls with every step, no face comes back, and the last point is the minimum. Wherever the
steps stop, q(x) < q(w). So the objective itself falls in the direction x − w, at a rate of at least
½ (x − w)ᵀ H (x − w).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

# A step to the next face must gain more than this part of the gain so far.
NOTHING = 1e-12
# First ridge, as a part of the mean of the diagonal, if rounding makes a matrix indefinite.
LEAST_RIDGE = 1e-15
# Mark of a weight that may have either sign.
EITHER = 2.0


def choose_orthant(
    w: np.ndarray, gradient: np.ndarray, price: np.ndarray, positive: bool, free: int
) -> np.ndarray:
    """Return the sign that each weight may have.

    A weight that is not zero keeps its sign. A weight at zero gets the sign of the direction in
    which the objective falls, or 0 if it stays at zero. `EITHER` marks weights without a price and
    a bound. These are weight ``free`` and, if weights may be negative, all weights of price zero.
    """
    sign = np.sign(w)
    still = w == 0
    if still.any():
        leaves = gradient + price < 0
        if positive:
            sign[still] = leaves[still]
        else:
            sign[still] = (leaves * 1.0 - (gradient - price > 0))[still]
    if not positive:
        sign[price == 0] = EITHER
    if free >= 0:
        sign[free] = EITHER
    return sign


def solve_positive(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve H x = b for positive definite H. If rounding made H indefinite, add a ridge."""
    _, found, info = dposv(H, b)
    ridge = LEAST_RIDGE
    while info:
        _, found, info = dposv(H + (ridge * np.trace(H) / len(H) + 1e-300) * np.eye(len(H)), b)
        ridge *= 100.0
    return np.asarray(found)


def step_on_face(
    H: np.ndarray, slope: np.ndarray, price: np.ndarray, x: np.ndarray, sign: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the Newton step of the weights that have a sign, and how far the model falls with it.

    Weights at zero that the step would move against their sign lose it: ``sign`` is changed.
    """
    while True:
        on = np.flatnonzero(sign)
        pull = slope + price * sign
        if not pull[on].any():
            return np.zeros(len(x)), 0.0
        if len(on) == len(x):
            step = -solve_positive(H, pull)
        else:
            step = np.zeros(len(x))
            step[on] = -solve_positive(H[on[:, None], on], pull[on])
        leaves = (step * sign < 0) & (x == 0) & (sign != EITHER)
        if not leaves.any():
            return step, -0.5 * float(pull @ step)
        sign[leaves] = 0.0


def least_of_model(
    H: np.ndarray,
    gradient: np.ndarray,
    price: np.ndarray,
    w: np.ndarray,
    positive: bool,
    free: int,
) -> np.ndarray:
    """Return the minimum of the model at ``w``. The price of weight ``free`` must be zero."""
    kinks = np.full(len(w), True) if positive else price > 0
    if free >= 0:
        kinks[free] = False
    if (w != 0)[kinks].all():  # usually no weight is at a kink or reaches one
        x = w - solve_positive(H, gradient + price * np.sign(w))
        if not (x * w < 0)[kinks].any():
            return x
    x, slope, fallen = w, gradient, 0.0
    for _ in range(10 * len(w) + 10):
        sign = choose_orthant(x, slope, price, positive, free)
        step, fall = step_on_face(H, slope, price, x, sign)
        if not fall > NOTHING * fallen:
            break
        end = x + step
        passes = (end * x < 0) & (sign != EITHER)
        if passes.any():
            times = np.full(len(x), np.inf)
            times[passes] = -x[passes] / step[passes]
            first = int(times.argmin())
            part = float(times[first])
            end = x + part * step
            end[(end * x < 0) & (sign != EITHER)] = 0.0
            end[first] = 0.0
        elif sign.all():  # the face has every weight, so this is the minimum
            return end
        else:
            part = 1.0
        x, fallen = end, fallen + part * (2.0 - part) * fall
        slope = gradient + H @ (x - w)
    return x

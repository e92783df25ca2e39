"""The least point of a quadratic model with prices on its weights: what a Newton step goes to.

Notes
-----
With g and H the gradient and the curvature at w, the model is

    q(x) = g·(x − w) + ½ (x − w)ᵀ H (x − w) + Σ_j price_j (|x_j| − |w_j|) ,

over x, or over x ≥ 0. Its least point is found face by face. The face of a point has the weights
that are not zero, with their signs, and those at zero that the slope of the model moves out of it.
The Newton step of the face can still take some of the latter the other way, because of what the
others do; these leave the face, and the step is taken anew. Some remain: each that leaves has
slope_j step_j > 0, and the sum over the face is below zero. A step stops where the first weight
reaches zero, which is then off the face, or on one of the other sign.

So q falls with every step, no face comes back, and the end is the least point. Wherever it stops,
q(x) < q(w) makes x − w a direction in which the objective itself falls, at a rate of at least
½ (x − w)ᵀ H (x − w).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

# Share of the fall so far below which a step to the next face is not worth taking.
NOTHING = 1e-12
# What is first added to a diagonal, by its mean, if rounding makes a matrix indefinite.
LEAST_RIDGE = 1e-15
# The sign of a weight that may have either.
EITHER = 2.0


def choose_orthant(
    w: np.ndarray, gradient: np.ndarray, price: np.ndarray, positive: bool, free: int
) -> np.ndarray:
    """The sign that each weight may have: its own, or where the gradient asks it to go.

    Zero for a weight that stays at zero, two for those that have no price and no bound: weight
    ``free``, and all whose price is zero where they may have either sign.
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
    """Solve with a positive definite matrix; one that rounding made indefinite gets a ridge."""
    _, found, info = dposv(H, b)
    ridge = LEAST_RIDGE
    while info:
        _, found, info = dposv(H + (ridge * np.trace(H) / len(H) + 1e-300) * np.eye(len(H)), b)
        ridge *= 100.0
    return np.asarray(found)


def step_on_face(
    H: np.ndarray, slope: np.ndarray, price: np.ndarray, x: np.ndarray, sign: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton step of the weights that have a sign, and how far the model falls with it.

    Weights at zero that it would take the other way lose their sign.
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
    """The least point of the model at ``w``; the price of weight ``free`` must be zero."""
    kinks = np.full(len(w), True) if positive else price > 0
    if free >= 0:
        kinks[free] = False
    if (w != 0)[kinks].all():  # most often no weight stands or stops at a kink
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
        elif sign.all():  # the face has every weight, so this is the least point
            return end
        else:
            part = 1.0
        x, fallen = end, fallen + part * (2.0 - part) * fall
        slope = gradient + H @ (x - w)
    return x

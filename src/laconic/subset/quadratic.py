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

from laconic.compiled import compiled

# Share of the fall so far below which a step to the next face is not worth taking.
NOTHING = 1e-12
# Least pivot of a factorisation, as a part of the diagonal.
LEAST_PIVOT = 1e-15


@compiled
def choose_orthant(w, gradient, price, positive, free, sign):  # type: ignore[no-untyped-def]
    """Fill the sign that each weight may have: its own, or where the gradient asks it to go.

    Zero for a weight that stays at zero, two for those that have no price and no bound: weight
    ``free``, and all whose price is zero where they may have either sign.
    """
    for j in range(len(w)):
        sign[j] = 0.0
        if j == free or (price[j] == 0 and not positive):
            sign[j] = 2.0
        elif w[j] != 0:
            sign[j] = np.sign(w[j])
        elif gradient[j] + price[j] < 0:
            sign[j] = 1.0
        elif not positive and gradient[j] - price[j] > 0:
            sign[j] = -1.0


@compiled
def solve_positive(H, chosen, b):  # type: ignore[no-untyped-def]
    """Solve with some rows and columns of a positive definite matrix; ``b`` becomes the answer.

    By Cholesky's factors. What Numba makes of `np.linalg.solve` takes seconds to compile, most of
    them for its error messages. A pivot that rounding takes to zero counts as rounding.
    """
    n = len(chosen)
    L = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            rest = H[chosen[i], chosen[j]]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = np.sqrt(max(rest, LEAST_PIVOT * H[chosen[i], chosen[i]]))
            else:
                L[i, j] = rest / L[j, j]
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        for k in range(i):
            b[k] -= L[i, k] * b[i]


@compiled
def step_on_face(H, gradient, price, x, sign):  # type: ignore[no-untyped-def]
    """Newton step of the weights that have a sign, and how far the model falls with it.

    Weights at zero that it would take the other way lose their sign.
    """
    while True:
        moving = np.flatnonzero(sign)
        step = np.zeros(len(x))
        slope = gradient[moving] + price[moving] * sign[moving]
        if len(moving) == 0 or np.abs(slope).max() == 0:
            return step, 0.0
        solve_positive(H, moving, slope)
        for a in range(len(moving)):
            step[moving[a]] = -slope[a]
        left = False
        for j in moving:
            if sign[j] != 2.0 and x[j] == 0 and step[j] * sign[j] < 0:
                sign[j] = 0.0
                left = True
        if not left:
            fall = 0.0
            for j in moving:
                fall -= 0.5 * (gradient[j] + price[j] * sign[j]) * step[j]
            return step, fall


@compiled
def least_of_model(H, gradient, price, w, positive, free):  # type: ignore[no-untyped-def]
    """The least point of the model at ``w``; the price of weight ``free`` must be zero."""
    n = len(w)
    x, slope, sign = w.copy(), gradient.copy(), np.empty(n)
    fallen = 0.0
    for _ in range(10 * n + 10):
        choose_orthant(x, slope, price, positive, free, sign)
        step, fall = step_on_face(H, slope, price, x, sign)
        if not fall > NOTHING * fallen:
            break
        t, first = 1.0, -1
        for j in range(n):
            if sign[j] != 2.0 and (x[j] + t * step[j]) * x[j] < 0:
                t, first = -x[j] / step[j], j
        for j in range(n):
            moved = x[j] + t * step[j]
            x[j] = 0.0 if j == first or (sign[j] != 2.0 and moved * x[j] < 0) else moved
        slope = gradient + np.dot(H, x - w)
        fallen += t * (2.0 - t) * fall
    return x

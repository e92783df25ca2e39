"""Compiled parts of the subset searches: solve on a support, and score every column.

Columns come *signed*: row j of ``S`` holds y_i x_ij, so that margins are w S and a search never
sees labels. Entries are -1, 0 or 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EXPONENTIAL, LOGISTIC, SQUARED_HINGE = 0, 1, 2


@njit(nogil=True, cache=True)
def differentiate(code, margins, weight, first, second):  # type: ignore[no-untyped-def]
    """Weighted mean loss; fills its first and second derivatives in the margins."""
    total = 0.0
    for i in range(len(margins)):
        g = margins[i]
        if code == EXPONENTIAL:
            value = np.exp(-g)
            slope, bend = -value, value
        elif code == LOGISTIC:
            small = np.exp(-abs(g))
            value = np.log1p(small) + max(-g, 0.0)
            p = small / (1.0 + small) if g > 0 else 1.0 / (1.0 + small)
            slope, bend = -p, p * (1.0 - p)
        else:
            short = max(1.0 - g, 0.0)
            value, slope = short * short, -2.0 * short
            bend = 2.0 if short > 0 else 0.0
        total += weight[i] * value
        first[i] = weight[i] * slope
        second[i] = weight[i] * bend
    return total


@njit(nogil=True, cache=True)
def choose_orthant(w, gradient, price, positive, free, sign):  # type: ignore[no-untyped-def]
    """Fill the sign that each weight may have: its own, or where the gradient asks it to go.

    Zero for a weight that stays at zero, two for the one (``free``) that has no price and no bound.
    Returns the number of weights that may move.
    """
    count = 0
    for j in range(len(w)):
        sign[j] = 0.0
        if j == free:
            sign[j] = 2.0
        elif w[j] != 0:
            sign[j] = np.sign(w[j])
        elif gradient[j] + price[j] < 0:
            sign[j] = 1.0
        elif not positive and gradient[j] - price[j] > 0:
            sign[j] = -1.0
        if sign[j] != 0:
            count += 1
    return count


@njit(nogil=True, cache=True)
def newton_step(S, second, gradient, price, sign, free, count):  # type: ignore[no-untyped-def]
    """Slope and Newton step of every weight that may move, and the decrease the step promises."""
    n, m = S.shape
    slope, step = np.zeros(n), np.zeros(n)
    moving = np.empty(count, dtype=np.int64)
    sub = np.empty((count, m))
    at = 0
    for j in range(n):
        if sign[j] != 0:
            slope[j] = gradient[j] + (0.0 if j == free else price[j] * sign[j])
            moving[at] = j
            sub[at] = S[j]
            at += 1
    if count == 0 or np.abs(slope).max() == 0:
        return slope, step, 0.0
    H = np.dot(sub * second, sub.T)
    ridge = 1e-10 * (np.trace(H) / count + 1e-300)
    for a in range(count):
        H[a, a] += ridge
    step[moving] = -np.linalg.solve(H, slope[moving])
    decrement = -0.5 * np.dot(slope, step)
    if not decrement > 0:
        # Rounding spoiled the Newton step: go downhill by the diagonal.
        step[moving] = -slope[moving] / np.diag(H)
        decrement = -0.5 * np.dot(slope, step)
    return slope, step, decrement


@njit(nogil=True, cache=True)
def search_line(  # type: ignore[no-untyped-def]
    S, weight, code, price, tilt, w, value, sign, free, slope, step, first, second
):
    """Halve a step until it lowers the objective; a weight about to change its sign stops at zero.

    Fills the derivatives at the new weights. Returns whether there are any, the weights and their
    objective.
    """
    # Very long steps overflow the loss and teach nothing.
    t = min(1.0, 20.0 / max(np.abs(step).max(), 1e-300))
    for _ in range(50):
        trial = w + t * step
        for j in range(len(w)):
            if j != free and trial[j] * sign[j] < 0:
                trial[j] = 0.0
        new = differentiate(code, np.dot(trial, S), weight, first, second)
        new += np.dot(price, np.abs(trial)) - np.dot(tilt, trial)
        if new <= value + 1e-4 * np.dot(slope, trial - w) and new < value:
            return True, trial, new
        t *= 0.5
    return False, w, value


@njit(nogil=True, cache=True)
def solve(  # type: ignore[no-untyped-def]
    S, weight, start, code, price, tilt, positive, intercept, tol
):
    """Minimise mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over the weights of the rows of ``S``.

    By Newton steps within the orthant of the present signs: a weight that would change its sign
    stops at zero, and leaves it only where the gradient asks for it. With ``intercept`` the last
    row of ``S`` is not bounded, and its price must be zero.

    Returns the weights, the objective, and the predicted gain of the last step.
    """
    n, m = S.shape
    w, sign = start.copy(), np.zeros(n)
    first, second = np.empty(m), np.empty(m)
    new_first, new_second = np.empty(m), np.empty(m)
    free = n - 1 if intercept else n
    value = differentiate(code, np.dot(w, S), weight, first, second)
    value += np.dot(price, np.abs(w)) - np.dot(tilt, w)
    decrement = np.inf
    for _ in range(200):
        gradient = np.dot(S, first) - tilt
        count = choose_orthant(w, gradient, price, positive, free, sign)
        slope, step, decrement = newton_step(S, second, gradient, price, sign, free, count)
        if decrement == 0:
            break
        lower, w, value = search_line(
            S, weight, code, price, tilt, w, value, sign, free, slope, step, new_first, new_second
        )
        if not lower:
            break
        first, new_first = new_first, first
        second, new_second = new_second, second
        if decrement <= tol * max(value, 1e-3):
            break
    return w, value, decrement


@njit(nogil=True, cache=True)
def gains(S, first, second, code, l1, nonnegative, out):  # type: ignore[no-untyped-def]
    """Decrease of the objective by the best step along each column alone, from zero.

    Exact for the exponential loss, whose step has a closed form: with P and N the loss of the rows
    that agree and disagree, P e^-d + N e^d + l1 d is least at e^d = 2P / (l1 + √(l1² + 4PN)).
    By the quadratic model for the other losses.
    """
    n, m = S.shape
    for j in range(n):
        column = S[j]
        if code == EXPONENTIAL:
            P, N = 0.0, 0.0
            for i in range(m):
                x = column[i]
                if x > 0:
                    P -= first[i]
                elif x < 0:
                    N -= first[i]
            if P < N and not nonnegative:
                P, N = N, P
            if l1 >= P - N:
                out[j] = 0.0
            elif N <= 0 and l1 <= 0:
                out[j] = P
            else:
                root = l1 + np.sqrt(l1 * l1 + 4.0 * P * N)
                grow = 2.0 * P / root
                out[j] = P + N - P / grow - N * grow - l1 * np.log(grow)
        else:
            slope, bend = 0.0, 0.0
            for i in range(m):
                x = column[i]
                if x != 0:
                    slope -= x * first[i]
                    bend += second[i]
            pull = slope if nonnegative else abs(slope)
            out[j] = 0.5 * max(pull - l1, 0.0) ** 2 / max(bend, 1e-300)

"""Compiled parts of the subset searches: solve on a support, and rank the swaps.

Columns come *signed*: row j of ``S`` holds y_i x_ij, so that margins are w S and a search never
sees labels. Entries are -1, 0 or 1.
"""

from __future__ import annotations

import numpy as np

from laconic.compiled import compiled
from laconic.losses import ExponentialLoss, LogisticLoss, SquaredHingeLoss
from laconic.subset.quadratic import choose_orthant, least_of_model

EXPONENTIAL, LOGISTIC, SQUARED_HINGE = 0, 1, 2
# Times that a fall of the objective may be more than `reach` says; more where the Newton step is by
# the curvature of another point.
HOPE, STALE_HOPE = 2.0, 12.0
# Steps by one curvature go on while what they promise shrinks by this factor each.
SHRINK = 0.4
# Added to curvatures, by their mean: weights that rows all but agree on do not run away.
RIDGE = 1e-8
# In solves finer than this: once steps promise a relative gain below `NEAR` the ridge
# is less, down to what keeps curvatures invertible, since steps would crawl where the loss is flat.
FINE, NEAR, LEAST_DAMP = 1e-12, 1e-10, 1e-5


# The losses themselves, compiled: what they are is written once.
_exponential, _bend_exponential = compiled(ExponentialLoss.at), compiled(ExponentialLoss.bend)
_logistic, _bend_logistic = compiled(LogisticLoss.at), compiled(LogisticLoss.bend)
_hinge, _bend_hinge = compiled(SquaredHingeLoss.at), compiled(SquaredHingeLoss.bend)


@compiled
def differentiate(code, margins, weight, first, second):  # type: ignore[no-untyped-def]
    """Weighted mean loss; fills its first and second derivatives in the margins."""
    total = 0.0
    for i in range(len(margins)):
        if code == EXPONENTIAL:
            value, u = _exponential(margins[i])
            bend = _bend_exponential(u)
        elif code == LOGISTIC:
            value, u = _logistic(margins[i])
            bend = _bend_logistic(u)
        else:
            value, u = _hinge(margins[i])
            bend = _bend_hinge(u)
        total += weight[i] * value
        first[i] = -weight[i] * u
        second[i] = weight[i] * bend
    return total


@compiled
def reach(value, decrement):  # type: ignore[no-untyped-def]
    """Least value along the Newton step under the exponential loss: P e^-d + N e^d at its best.

    P + N is the value and ½ (P − N)² / (P + N) what the quadratic model promises, so that the
    least, 2 √(PN), is this.
    """
    return value * np.sqrt(max(1.0 - 2.0 * decrement / value, 0.0))


@compiled
def newton_step(S, second, gradient, price, w, positive, free, damp):  # type: ignore[no-untyped-def]
    """Step to the least point of the quadratic model, its slope, and the decrease it promises.

    Weights at zero that the gradient does not ask to leave it stay there. The slope, of the
    objective at the beginning of the step, has prices for the straight way to its end.
    """
    n, m = S.shape
    sign, step = np.empty(n), np.zeros(n)
    choose_orthant(w, gradient, price, positive, free, sign)
    moving = np.flatnonzero(sign)
    count, at = len(moving), -1
    sub = np.empty((count, m))
    for a in range(count):
        sub[a] = S[moving[a]]
        if moving[a] == free:
            at = a
    H = np.dot(sub * second, sub.T)
    ridge = damp * RIDGE * np.trace(H) / max(count, 1) + 1e-30
    for a in range(count):
        H[a, a] += ridge
    x = least_of_model(H, gradient[moving], price[moving], w[moving], positive, at)
    d = x - w[moving]
    slope = 0.0
    for a in range(count):
        j = moving[a]
        step[j] = d[a]
        if x[a] * w[j] < 0:
            slope += gradient[j] * d[a] + price[j] * (abs(x[a]) - abs(w[j]))
        else:
            slope += (gradient[j] + price[j] * sign[j]) * d[a]
    return step, slope, -slope - 0.5 * np.dot(d, np.dot(H, d))


@compiled
def search_line(  # type: ignore[no-untyped-def]
    S, weight, code, price, tilt, w, value, slope, step, noise, first, second
):
    """Halve a step until it lowers the objective, but for ``noise``.

    Fills the derivatives at the new weights. Returns whether there are any, the weights and their
    objective.
    """
    # Very long steps overflow the loss and teach nothing.
    t = min(1.0, 20.0 / max(np.abs(step).max(), 1e-300))
    for _ in range(50):
        trial = w + t * step
        new = differentiate(code, np.dot(trial, S), weight, first, second)
        new += np.dot(price, np.abs(trial)) - np.dot(tilt, trial)
        if new <= value + 1e-4 * t * slope + noise and new < value + noise:
            return True, trial, new
        t *= 0.5
    return False, w, value


@compiled
def solve(  # type: ignore[no-untyped-def]
    S, weight, start, code, price, tilt, positive, free, tol, target
):
    """Minimise mean loss + Σ_j (price_j |w_j| − tilt_j w_j) over the weights of the rows of ``S``.

    By Newton steps: each goes to the least point of the quadratic model with the same prices and
    bounds (`laconic.subset.quadratic`). Row ``free`` of ``S``, if that is not -1, is not bounded,
    and its price must be zero. Gives up where the objective can hardly come down to ``target``.

    Returns the weights, the objective, and the predicted gain of the last step.
    """
    m = S.shape[1]
    w = start.copy()
    first, second = np.empty(m), np.empty(m)
    new_first, new_second = np.empty(m), np.empty(m)
    value = differentiate(code, np.dot(w, S), weight, first, second)
    if not np.isfinite(value):
        w[:] = 0.0
        value = differentiate(code, np.dot(w, S), weight, first, second)
    value += np.dot(price, np.abs(w)) - np.dot(tilt, w)
    decrement = np.inf
    for _ in range(200):
        gradient = np.dot(S, first) - tilt
        damp, noise = 1.0, 0.0
        if tol < FINE:
            damp = max(min(1.0, decrement / (NEAR * max(value, 1e-3))), LEAST_DAMP)
            # Differences of the objective below its own rounding say nothing about the step.
            noise = 4.0 * np.finfo(np.float64).eps * abs(value)
        step, slope, decrement = newton_step(S, second, gradient, price, w, positive, free, damp)
        if not decrement > 0 or reach(value, HOPE * decrement) > target:
            break
        lower, w, value = search_line(
            S, weight, code, price, tilt, w, value, slope, step, noise, new_first, new_second
        )
        if not lower:
            break
        first, new_first = new_first, first
        second, new_second = new_second, second
        if decrement <= tol * max(value, 1e-3):
            break
    return w, value, decrement


@compiled
def settle(  # type: ignore[no-untyped-def]
    S, weight, start, code, price, inverse, positive, free, tol, target
):
    """`solve` from a start that is nearly right, with an inverse curvature that nearly is, too.

    Steps by a given inverse cost two products with ``S`` each, and most starts that cannot reach
    the target show it after a few. Where steps no longer shrink fast, the curvature is taken anew;
    where a weight would change its sign, the rest is left to `solve`.
    """
    n, m = S.shape
    w, slope = start.copy(), np.empty(n)
    first, second = np.empty(m), np.empty(m)
    new_first, new_second = np.empty(m), np.empty(m)
    value = differentiate(code, np.dot(w, S), weight, first, second) + np.dot(price, np.abs(w))
    last, fresh = np.inf, False
    for _ in range(60):
        if not np.isfinite(value):
            break
        slope[:] = np.dot(S, first) + price * np.sign(w)
        step = -np.dot(inverse, slope)
        decrement = -0.5 * np.dot(slope, step)
        if reach(value, (HOPE if fresh else STALE_HOPE) * decrement) > target:
            return w, value, decrement
        trial = w + step
        new = np.inf
        if 0 <= decrement <= SHRINK * last:
            if crosses(w, trial, price, positive, free):
                break
            new = differentiate(code, np.dot(trial, S), weight, new_first, new_second)
            new += np.dot(price, np.abs(trial))
        if new <= value:
            w, value, last, fresh = trial, new, decrement, False
            first, new_first = new_first, first
            second, new_second = new_second, second
            if decrement <= tol * max(value, 1e-3):
                return w, value, decrement
        elif fresh:
            break
        else:
            inverse = inverse_curvature(S, second)
            last, fresh = np.inf, True
    return solve(S, weight, w, code, price, np.zeros(n), positive, free, tol, target)


@compiled
def crosses(w, trial, price, positive, free):  # type: ignore[no-untyped-def]
    """Whether a weight would pass a kink of its price or the bound of the positive ones."""
    for j in range(len(w)):
        if j != free and trial[j] != w[j]:
            if price[j] > 0 and trial[j] * w[j] <= 0:
                return True
            if positive and trial[j] <= 0:
                return True
    return False


@compiled
def inverse_curvature(S, second):  # type: ignore[no-untyped-def]
    """Inverse of the curvature among the rows of ``S``; rows that repeat do not spoil it."""
    H = np.dot(S * second, S.T)
    ridge = RIDGE * np.trace(H) / max(len(H), 1) + 1e-30
    for j in range(len(H)):
        H[j, j] += ridge
    return np.ascontiguousarray(np.linalg.inv(H))


@compiled
def grow_inverse(inverse, along, left):  # type: ignore[no-untyped-def]
    """Inverse of a matrix with one more row and column, from H⁻¹, H⁻¹h and what is left of h."""
    n = len(inverse)
    out = np.empty((n + 1, n + 1))
    for a in range(n):
        for b in range(n):
            out[a, b] = inverse[a, b] + along[a] * along[b] / left
        out[a, n] = out[n, a] = -along[a] / left
    out[n, n] = 1.0 / left
    return out


@compiled
def shrink_inverse(inverse, out):  # type: ignore[no-untyped-def]
    """Inverse of a matrix without one row and column; those of the answer are left zero."""
    column = inverse[:, out].copy()
    less = inverse - np.outer(column, column) / max(column[out], 1e-300)
    less[out, :] = 0.0
    less[:, out] = 0.0
    return less


@compiled
def best_swaps(  # type: ignore[no-untyped-def]
    along, slope, bend, barred, weights, spare, l1, positive, into, change
):
    """For every column of a support, the best one to come in its stead by the quadratic model.

    Fills its number and the change of the objective. ``along`` is H_jS H_SS⁻¹, ``slope`` the
    gradient, ``bend`` the curvature that is left of a column beside the support, and ``spare`` the
    diagonal of H_SS⁻¹. See `laconic.subset.moves` for the formula.
    """
    k = len(weights)
    for s in range(k):
        into[s], change[s] = -1, np.inf
    for j in range(len(slope)):
        if barred[j]:
            continue
        for s in range(k):
            shared = along[j, s] / spare[s]
            pull = weights[s] * shared - slope[j]
            if pull < 0 and not positive:
                pull = -pull
            pull = max(pull - l1, 0.0)
            kept = bend[j] + along[j, s] * shared
            new = 0.5 * (weights[s] * weights[s] / spare[s] - pull * pull / kept)
            if new < change[s]:
                into[s], change[s] = j, new

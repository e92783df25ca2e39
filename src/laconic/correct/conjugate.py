"""Preconditioned conjugate gradients, for the steps of Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Factor by which conjugate gradients reduce the residual of a Newton step, in the preconditioner's
# norm. Tenfold was fastest: a coarser solve takes more evaluations, a finer one more products.
FORCING = 0.1
# Most numbers in the residuals that conjugate gradients remember (they keep twice as many).
REMEMBERED = 1 << 20


def conjugate_gradients(
    curve: Callable[[np.ndarray], np.ndarray],
    apply: Callable[[np.ndarray], np.ndarray],
    r: np.ndarray,
    forcing: float = FORCING,
) -> tuple[np.ndarray, int]:
    """Solve curve(step) = r approximately; return the step and the number of products.

    ``apply`` is the preconditioner. ``forcing`` is the factor by which the residual is reduced, in
    the preconditioner's norm.

    Every residual is orthogonal to all earlier ones in the preconditioner's inner product. Rounding
    destroys this more and more as the solve goes on, and would then decide where it ends. So
    residuals are made orthogonal again. This costs almost nothing compared with the products.
    """
    z = apply(r)
    p, rz = z, float(np.vdot(r, z))
    goal = rz * forcing**2
    step = np.zeros_like(r)
    limit = 2 * r.size + 10
    room = min(limit, REMEMBERED // r.size)
    residuals, duals = np.empty((2, room, r.size))
    for products in range(1, limit + 1):
        Hp = curve(p)
        pHp = float(np.vdot(p, Hp))
        if not pHp > 0:
            return (step if products > 1 else z), products
        a = rz / pHp
        step = step + a * p
        if products <= room:
            residuals[products - 1], duals[products - 1] = r.ravel(), z.ravel() / rz
        r = r - a * Hp
        known = slice(min(products, room))
        r -= ((duals[known] @ r.ravel()) @ residuals[known]).reshape(r.shape)
        z = apply(r)
        rz, old = float(np.vdot(r, z)), rz
        if not rz > goal:
            break
        p = z + (rz / old) * p
    return step, products

"""Balls and bumps of `laconic.model.balls` on a device.

Distances are formed from differences in double precision, so none is lost to rounding near a
centre.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from laconic.model.balls import FAR, BallPrimitive, Balls, Heights
from laconic.numeric.namespaces import to_host
from laconic.numeric.threads import row_blocks

# Most numbers that are held at once in double precision.
HELD = 1 << 24


def heights_of(p: BallPrimitive, X: Tensor) -> Tensor:
    """Return the height of every ball at some rows, (n_rows, n_balls), in float64."""
    rows = _times_power(X.double(), -p.power).clamp_(-FAR, FAR)
    centres, radii = (torch.as_tensor(part, device=X.device) for part in (p.distinct, p.radii))
    # With this mode, differences are squared. The other one multiplies, and cancels digits.
    d2 = torch.cdist(rows, centres, compute_mode="donot_use_mm_for_euclid_dist").square_()
    d2 = d2[:, torch.as_tensor(p.which, device=X.device)]
    d2 /= radii.square().clamp_(min=np.finfo(np.float64).tiny)
    d2 = torch.where(radii == 0.0, 1.0, d2)
    return (1.0 - d2).clamp_(min=0.0) if p.soft else (d2 < 1.0).double()


def bump_columns(p: Heights, X: Tensor) -> Tensor:
    """Return the heights of bumps, (n_rows, n_bumps), in the type of the rows."""
    _check_finite(p, X)
    out = X.new_empty((len(X), len(p)))
    for s in _blocks(p, X, 1) if len(p) else []:
        out[s] = heights_of(p, X[s])
    return out


def ball_columns(p: Balls, X: Tensor) -> Tensor:
    """Return the columns of balls, in the type of the rows."""
    _check_finite(p, X)
    d = X.shape[1]
    out = X.new_empty((len(X), len(p), d + 1))
    origin = torch.as_tensor(p.origin, device=X.device)
    for s in _blocks(p, X, d) if len(p) else []:
        heights = heights_of(p, X[s])[:, :, None]
        moved = heights * (X[s, None].double() - origin)
        out[s, :, :d] = torch.where(heights > 0, moved, 0.0)
        out[s, :, d] = heights[:, :, 0]
    return out.flatten(1)


def ball_scores(p: Balls, X: Tensor, weights: Tensor) -> Tensor:
    """Return columns times weights (n_columns, n_outputs) without the columns, in float64."""
    _check_finite(p, X)
    (n, d), k = X.shape, weights.shape[1]
    out = weights.new_zeros((n, k))
    if not len(p):
        return out
    by_ball = weights.view(len(p), d + 1, k)
    slopes, constants = by_ball[:, :-1], by_ball[:, -1]
    origin = torch.as_tensor(p.origin, device=X.device)
    if len(origin) > 1:
        constants = constants - (origin[:, None] @ slopes)[:, 0]
        origin = torch.zeros_like(origin[:1])
    # In the units of the balls, products do not overflow.
    slopes = _times_power(slopes, p.power).transpose(0, 1).flatten(1)
    for s in _blocks(p, X, k):
        heights = heights_of(p, X[s])[:, :, None]
        along = _times_power(X[s].double() - origin, -p.power) @ slopes
        along = along.view(-1, len(p), k) + constants
        # A row far outside a ball may overflow there, and counts for nothing.
        out[s] = torch.where(heights > 0, heights * along, 0.0).sum(1)
    return out


def _blocks(p: BallPrimitive, X: Tensor, each: int) -> list[slice]:
    """Return blocks of rows, for ``each`` numbers of every row and ball."""
    return row_blocks(len(X), max(HELD // (len(p) * each + X.shape[1]), 1))


def _check_finite(p: BallPrimitive, X: Tensor) -> None:
    if not bool(torch.isfinite(X).all()):
        p.columns(to_host(X))  # it raises the error


def _times_power(values: Tensor, power: int) -> Tensor:
    """Return values times 2^power, in two steps, because the power itself may overflow."""
    if not power:
        return values
    half = power // 2
    return values * 2.0**half * 2.0 ** (power - half)

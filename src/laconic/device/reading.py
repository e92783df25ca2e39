"""Read a lowered map on a device: the columns and scores of new rows, as tensors.

The primitives in `READINGS` are computed there. All others are computed on the processor, and their
answers are moved back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.balls import ball_columns, ball_scores, bump_columns
from laconic.device.precision import full_precision
from laconic.device.surveys import blocks_of_rows
from laconic.device.tensors import can_hold
from laconic.device.windows import window_maxima
from laconic.model.arrange import Arrange
from laconic.model.balls import Balls, Heights
from laconic.model.conditions import EQUAL, MISSING
from laconic.model.feature_maps import GAPS, FeatureMap
from laconic.model.hinges import Hinge
from laconic.model.lowering import Primitive, primitives_of, width_of
from laconic.model.primitives import Compare, Filled, Gather, Multiply
from laconic.model.windows import WindowMaximum
from laconic.numeric.magnitudes import LARGEST_SCORE, checked_scores
from laconic.numeric.namespaces import to_host
from laconic.numeric.threads import row_blocks

# Most numbers of the columns that are held at once in double precision.
HELD = 1 << 26

# What has the same bytes as an unsigned type. GPUs take no rows of tensors of unsigned types.
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def columns(map: FeatureMap, X: Tensor) -> Tensor:
    """Return the values of a map on new rows, (n_rows, n_columns), in the units of the input."""
    with full_precision():
        return _columns(primitives_of(map), X)


def scores(map: FeatureMap, X: Tensor, weights: np.ndarray, intercept: np.ndarray) -> Tensor:
    """Return the scores of a model on new rows, (n_rows, n_outputs), in float64."""
    primitives = primitives_of(map)
    given = torch.from_numpy(np.ascontiguousarray(weights, dtype=np.float64)).to(X.device)
    base = torch.from_numpy(np.ascontiguousarray(intercept, dtype=np.float64)).to(X.device)
    out = base.repeat(len(X), 1)
    with full_precision():
        if len(primitives) == 1 and type(primitives[0]) in SCORES:
            out += SCORES[type(primitives[0])](primitives[0], X, given)
        else:
            for s in row_blocks(len(X), max(HELD // max(width_of(primitives), 1), 1)):
                out[s] += _columns(primitives, X[s]).double() @ given
    if not bool((out.abs() < LARGEST_SCORE).all()):
        _refuse(primitives, X, out)
    return out


def labels(classes: np.ndarray, codes: Tensor) -> Any:
    """Return the labels of class codes. Labels that are no numbers come back as an array."""
    if not can_hold(classes.dtype):
        return classes[to_host(codes)]
    known = torch.from_numpy(classes).to(codes.device)
    own, signed = known.dtype, SIGNED.get(known.dtype, known.dtype)
    return known.view(signed)[codes].view(own)


def _refuse(primitives: Sequence[Primitive], X: Tensor, found: Tensor) -> None:
    """Say why scores are not finite: because of gaps in the rows, or because they overflow."""
    wrong = X[~(found.abs() < LARGEST_SCORE).all(1)][:1]
    if not bool(torch.isfinite(_columns(primitives, wrong)).all()):
        raise ValueError(GAPS)
    checked_scores(np.full((1, 1), np.inf))


def _columns(primitives: Sequence[Primitive], X: Tensor) -> Tensor:
    parts = [_read(primitive, X) for primitive in primitives]
    if len(parts) == 1:
        return parts[0]
    return torch.cat(parts, 1) if parts else X.new_empty((len(X), 0), dtype=torch.float64)


def _read(primitive: Primitive, X: Tensor) -> Tensor:
    own = READINGS.get(type(primitive))
    if own is not None:
        return own(primitive, X)
    return _on_host(primitive, X)


def _on_host(primitive: Primitive, X: Tensor) -> Tensor:
    return torch.from_numpy(primitive.columns(to_host(X))).to(X.device)


def _there(values: np.ndarray, X: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(X.device)


def _gather(p: Any, X: Tensor) -> Tensor:
    return X[:, _there(p.feature, X)]


def _filled(p: Any, X: Tensor) -> Tensor:
    v = _gather(p, X).double()
    return torch.where(torch.isnan(v), _there(p.value, X), v)


def _compare(p: Any, X: Tensor) -> Tensor:
    v, value, test = _gather(p, X), _there(p.value, X), _there(p.test, X)
    # Single precision is compared with thresholds in double precision, as NumPy does it.
    yes = torch.where(test == EQUAL, v.double() == value, v.double() <= value)
    return torch.where(test == MISSING, torch.isnan(v), yes).to(v.dtype)


def _multiply(p: Any, X: Tensor) -> Tensor:
    first, second = X[:, _there(p.first, X)], X[:, _there(p.second, X)]
    product, wide = first * second, first.double() * second.double()
    least = torch.finfo(product.dtype).tiny
    lost = ~torch.isfinite(product) | ((wide.abs() < least) & (wide != 0))
    if not bool(lost.any()):
        return product
    over = torch.isinf(wide) & torch.isfinite(first) & torch.isfinite(second)
    if bool(over.any()):
        p.columns(to_host(X[over.any(1)][:1]))  # it raises the error
    return torch.where(lost, wide, product.double())


def _hinge(p: Any, X: Tensor) -> Tensor:
    out = X.new_empty((len(X), p.n_columns), dtype=torch.float64)
    reads, which, knot = (_there(part, X) for part in (p.reads(), p.which, p.knot))
    directions = _there(p.directions.toarray(), X)
    for s in blocks_of_rows(X):
        along = X[s][:, reads].double() @ directions.T
        torch.clamp(along[:, which] - knot, min=0.0, out=out[s])
    if bool(torch.isfinite(out).all()):
        return out
    # A dense product spreads gaps to hinges that do not read them, and does not say what overflows.
    return _on_host(p, X)


def _arrange(p: Any, X: Tensor) -> Tensor:
    return _columns(p.primitives, X)[:, _there(p.order, X)]


READINGS: dict[type[Primitive], Callable[[Any, Tensor], Tensor]] = {
    Gather: _gather,
    Filled: _filled,
    Compare: _compare,
    Multiply: _multiply,
    Hinge: _hinge,
    Arrange: _arrange,
    WindowMaximum: window_maxima,
    Heights: bump_columns,
    Balls: ball_columns,
}
"""Primitives that are computed on a device."""

SCORES: dict[type[Primitive], Callable[[Any, Tensor, Tensor], Tensor]] = {Balls: ball_scores}
"""Primitives whose scores are computed without their columns."""

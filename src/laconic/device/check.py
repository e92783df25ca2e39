"""Checks of rows, labels and weights on a device.

Only a few rows come to the host. They are checked there as all rows are, so that the messages are
the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d
from torch import Tensor

from laconic.data.labels import check_labels, class_factors
from laconic.device.place import moved
from laconic.device.sums import BLOCK, sums_over_rows
from laconic.device.tensors import can_hold
from laconic.numeric.namespaces import is_tensor, to_host
from laconic.numeric.threads import row_blocks

# Rows that are looked at on the host, besides those that are not finite.
FEW = 2
# Numbers that are looked at together.
LOOKED_AT = 1 << 26


def few_rows(X: Tensor) -> np.ndarray:
    """Return some rows: the first, and the first that holds NaN or infinity, if there are any."""
    few: np.ndarray
    if X.ndim != 2 or X.numel() == 0 or not X.dtype.is_floating_point:
        few = to_host(X[:FEW] if X.numel() else X)
        return few
    blocks = row_blocks(len(X), max(LOOKED_AT // max(X.shape[1], 1), 1))
    tests = (torch.isnan, torch.isinf)
    found = torch.stack([torch.stack([test(X[s]).any() for s in blocks]) for test in tests])
    rows = [X[:FEW]]
    for test, blocks_with in zip(tests, to_host(found), strict=True):
        for s in (blocks[number] for number in np.flatnonzero(blocks_with)[:1]):
            rows.append(X[s][test(X[s]).any(1)][:1])
    few = to_host(torch.cat(rows))
    return few


class LabelsThere(NamedTuple):
    """Labels and weights on a device. Rows of weight zero are left out."""

    keep: Tensor | None
    """Which rows are kept, or None for all."""
    classes: np.ndarray
    codes: Tensor
    weight: Tensor
    """Weights that sum to one, in float64."""
    shares: np.ndarray
    """Share of each class in the sum of the weights, before ``class_weight``."""
    factors: np.ndarray
    """What ``class_weight`` multiplied the weights of each class by."""
    total: float
    """Sum of the weights as they were given, times the factors."""


def coded(y: Any, sample_weight: Any, class_weight: Any, X: Tensor) -> LabelsThere:
    """Check labels and weights for the rows X, and bring them to their device."""
    weight = _weights(sample_weight, X)
    classes, codes = _codes(y, X.device)
    keep = weight > 0
    every = bool(keep.all())
    if not every:
        codes, weight = codes[keep], weight[keep]
    # Scale first, because the sum of huge weights would overflow. A power of two changes no digit.
    power = int(np.frexp(float(weight.max()) if len(weight) else 0.0)[1])
    half = power // 2
    weight = weight * 2.0**-half * 2.0 ** (half - power)
    sums = _class_sums(codes, weight, len(classes))
    used = sums > 0
    if used.sum() < 2:
        only = f"one class, {classes[used].tolist()[0]!r}" if used.any() else "no class"
        raise ValueError(f"y must hold at least two classes with positive weight; it has {only}")
    if not used.all():  # classes that occur only in rows of weight zero
        numbers = torch.from_numpy(np.cumsum(used) - 1).to(codes.device)
        classes, codes, sums = classes[used], numbers[codes], sums[used]
    factors = class_factors(class_weight, classes, np.arange(len(classes)), sums)
    total = float((sums * factors).sum())
    weight *= torch.from_numpy(factors / total).to(codes.device)[codes]
    with np.errstate(over="ignore"):
        as_given = float(np.ldexp(total, power))
    shares = sums / sums.sum()
    return LabelsThere(None if every else keep, classes, codes, weight, shares, factors, as_given)


def _codes(y: Any, device: torch.device) -> tuple[np.ndarray, Tensor]:
    """Return the classes, and the code of every row on the device."""
    if not is_tensor(y):
        check_labels(y)
        labels = column_or_1d(np.asarray(y), warn=True)
        if not can_hold(labels.dtype):
            check_classification_targets(labels)
            classes, numbers = np.unique(labels, return_inverse=True)
            return classes, torch.from_numpy(numbers.ravel()).to(device)
        y = moved(labels, device)
    y = y.detach().to(device)
    if y.ndim == 2 and y.shape[1] == 1:
        column_or_1d(to_host(y[:1]), warn=True)
        y = y[:, 0]
    if y.ndim != 1:
        column_or_1d(to_host(y))
    found, codes = torch.unique(y, return_inverse=True)
    classes = to_host(found)
    assert_all_finite(classes, input_name="y")
    # Every class is there twice, as many different labels in few rows would look like numbers.
    check_classification_targets(np.repeat(classes, 2))
    return classes, codes


def _weights(sample_weight: Any, X: Tensor) -> Tensor:
    """Return checked weights in float64."""
    if sample_weight is None:
        return torch.ones(len(X), dtype=torch.float64, device=X.device)
    if not is_tensor(sample_weight) or sample_weight.is_complex():
        sample_weight = to_host(sample_weight)
        rows = np.broadcast_to(0.0, (len(X), 1))  # they have only the length
        sample_weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        return torch.from_numpy(np.array(sample_weight)).to(X.device)
    weight = sample_weight.detach().to(X.device, torch.float64)
    if weight.shape != (len(X),):
        raise ValueError(f"sample_weight.shape == {tuple(weight.shape)}, expected {(len(X),)}!")
    ends = to_host(torch.stack([weight.min(), weight.max()]))  # NaN if there is one
    _check_sample_weight(ends, np.zeros((2, 1)), dtype=np.float64, ensure_non_negative=True)
    return weight


def _class_sums(codes: Tensor, weight: Tensor, n_classes: int) -> np.ndarray:
    """Return the sum of the weights of every class, in one pass over the rows."""
    classes = torch.arange(n_classes, device=codes.device)[:, None]
    total = weight.new_zeros(n_classes)
    for s in row_blocks(len(codes), BLOCK * max(LOOKED_AT // (BLOCK * n_classes), 1)):
        hot = (codes[s] == classes).double()
        total += sums_over_rows(hot, weight[None, s])[:, 0]
    return np.asarray(to_host(total))

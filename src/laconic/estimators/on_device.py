"""Fits and answers of estimators for rows on a device, which torch knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from laconic.data.doubts import warn_of_amounts
from laconic.data.elsewhere import in_words, is_elsewhere, is_on_device
from laconic.data.fingerprint import fingerprint
from laconic.data.labels import check_labels, held_out_rows, refuse_absent
from laconic.device.names import check_name
from laconic.numeric.namespaces import check_tensor, is_tensor, to_host
from laconic.pools import make_pool
from laconic.rows.asked import RowsAsked
from laconic.rows.rows import Rows

# What installs torch, for messages.
NO_TORCH = 'a device needs torch, which is not installed: pip install ".[gpu]"'


class TrainingOnDevice(NamedTuple):
    """Checked rows that go to a device, or are there."""

    X: Any
    codes: Any
    weight: Any
    device: Any

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows on the device; see `laconic.estimators.training.Training`."""
        from laconic.device.place import moved
        from laconic.device.pool import device_pool
        from laconic.device.shard import on_device
        from laconic.device.signs import as_device_signs

        X, codes, weight = (moved(given, self.device) for given in self[:3])
        bound = device_pool(asked.pool, X, weight, asked.threads, codes)
        bound = as_device_signs(bound) if asked.signs else bound
        shard = on_device(bound, asked.loss, codes, weight, asked.n_outputs, asked.limits)
        return Rows(shard, asked.intercept, asked.threads)

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings, rows, labels and weights, wherever they are."""
        return fingerprint(to_host(self.X), to_host(self.codes), to_host(self.weight), settings)


class OnDevice(NamedTuple):
    """Rows that were checked on their device, and what a fit must know of them."""

    training: TrainingOnDevice
    total: float
    """Sum of the weights as they were given, times the factors of the classes."""
    held: tuple[Any, Any, Any] | None
    """Rows, class codes and weights that were held out."""
    few: np.ndarray
    """Some rows, as they were given."""


def asked_device(estimator: Any) -> Any:
    """Return the device that a setting asks for, or None. Refuse one that cannot be used."""
    if estimator.device is None:
        return None
    check_name(estimator.device)
    try:
        from laconic.device.place import find_device
    except ImportError as error:
        raise ImportError(NO_TORCH) from error
    return find_device(estimator.device)


def brought(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the rows for a fit, and the device on which it runs, or None for the processor.

    Rows are tensors if they are on that device already. Otherwise they are in the memory of the
    processor, and go there once they are checked. Refuse rows that cannot go there.
    """
    device = asked_device(estimator)
    check_tensor(X)
    if is_on_device(X):
        try:
            from laconic.device.place import check_place, same_place, tensor_of
        except ImportError as error:
            raise ImportError(NO_TORCH) from error
        X = tensor_of(X)
        if device is None or same_place(device, X.device):
            check_place(X)
            return X, X.device
    if device is not None and (is_elsewhere(X) or sparse.issparse(X)):
        what = "a sparse matrix" if sparse.issparse(X) else in_words(X)
        raise TypeError(
            f"X is {what}, and device={estimator.device!r} takes dense rows that are in one "
            "memory; leave device out, or give an array"
        )
    return to_host(X), device


def check_pool(estimator: Any) -> None:
    """Refuse a pool that has no form on a device, before the data is touched."""
    from laconic.device.pool import named

    pool = make_pool(estimator._pool_object(), estimator.scale, estimator.groups, [])
    named(pool, estimator.pool)


def checked(estimator: Any, X: Any, y: Any, sample_weight: Any) -> OnDevice:
    """Check rows on a device, set what `fit` learns of them, and hold out rows if asked for."""
    from laconic.device.check import coded, few_rows
    from laconic.device.place import tensor_of
    from laconic.device.tensors import as_floats

    y, sample_weight = (tensor_of(v) if is_on_device(v) else v for v in (y, sample_weight))
    if estimator.cv is not None:
        raise ValueError(
            "cv cuts rows in the memory of the processor, and X is on a device; give X as an array "
            f'of NumPy and set device="{X.device}", or choose the size by early_stopping'
        )
    few = few_rows(X)
    if y is None:
        estimator._validated(few, y, reset=True)  # it raises the error
    labels = y if is_tensor(y) else np.asarray(y)
    if not is_tensor(labels):
        check_labels(labels)
    elif labels.ndim == 1:
        refuse_absent(int((labels != labels).sum()), len(labels))
    check_consistent_length(X, labels, sample_weight if np.ndim(sample_weight) else None)
    estimator._validated(few, to_host(np.resize(to_host(labels[:1]), len(few))), reset=True)
    known = coded(y, sample_weight, estimator.class_weight, X)
    estimator.classes_, estimator.class_prior_ = known.classes, known.shares
    estimator._class_factors = known.factors / known.factors.max()
    warn_of_amounts(known.classes, len(known.codes))
    rows = as_floats(X if known.keep is None else X[known.keep])
    codes, weight, held = known.codes, known.weight, None
    if estimator.early_stopping:
        rows, *fitted, kept = held_out_rows(estimator, rows, to_host(codes), to_host(weight))
        codes, weight = _there(fitted, X)
        held = (kept[0], *_there(kept[1:], X))
    return OnDevice(TrainingOnDevice(rows, codes, weight, X.device), known.total, held, few)


def _there(arrays: Any, X: Any) -> list[Any]:
    from laconic.device.place import moved

    return [moved(array, X.device) for array in arrays]


# -- answers ---------------------------------------------------------------------------------------


def in_kind_of(model: Any, method: Callable[[Any, Any], Any], X: Any) -> Any:
    """Return what a method of a fitted model answers for a tensor, as X is and where X is.

    Models that cannot read tensors answer on the processor, and the answer is moved back.
    """
    from laconic.device.place import in_kind, tensor_of

    check_is_fitted(model, model._fitted)
    return in_kind(method(model, tensor_of(X)), X)


def new_rows(estimator: Any, X: Any) -> Any:
    """Check new rows on a device for a fitted estimator, and return them where it reads them."""
    from laconic.device.check import few_rows
    from laconic.device.place import tensor_of
    from laconic.device.tensors import as_floats

    X = tensor_of(X)
    if not _reads_tensors(estimator):
        return estimator._validated(to_host(X))
    estimator._validated(few_rows(X))
    return as_floats(X)


def _reads_tensors(model: Any) -> bool:
    """Return whether a model is read on a device: it has flat arrays, and no dates."""
    return getattr(model._predictor, "reads_tensors", False) and not model._units

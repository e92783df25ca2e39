"""Rows in batches, in an order drawn at random, as they are or in copies made on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from laconic.numeric.namespaces import is_tensor, to_host


class Copies(Protocol):
    """Makes copies of rows, such as `laconic.deform.Deform`."""

    def copies_of(self, X: Any, number: int) -> np.ndarray:
        """Return one copy of every row. Every number gives other copies."""


class Batch(NamedTuple):
    """Some rows."""

    X: Any
    """An array, a sparse matrix or a tensor."""
    codes: Any
    weight: Any
    """Weights that are 1 in the mean over all rows, over the number of rows of the batch."""


class Batches:
    """The rows of a fit, batch by batch.

    Every row comes once in an epoch. The order depends on the seed and the epoch only.

    Parameters
    ----------
    X, codes, weight
        Rows, class codes, and weights that sum to one. All are arrays of NumPy, or all are tensors
        on one device.
    size : int
        Rows of a batch. The last one of an epoch may have fewer.
    seed : int
    copies : Copies, optional
        What makes new copies of the rows for every epoch. Without it, rows come as they are.
    """

    def __init__(
        self, X: Any, codes: Any, weight: Any, size: int, seed: int, copies: Copies | None = None
    ) -> None:
        self._X, self._codes, self._weight = X, codes, weight * float(len(codes))
        self._seed, self._copies = seed, copies
        self._size = min(size, len(codes))
        self.n_batches = -(-len(codes) // self._size)

    def rows(self, epoch: int) -> Any:
        """Return all rows of an epoch, in the order in which they were given."""
        if self._copies is None:
            return self._X
        given = _on_host(self._X)
        made = np.asarray(self._copies.copies_of(given, epoch))
        if made.shape != given.shape or not np.isfinite(made).all():
            raise ValueError(
                f"copies_of must return one copy of every row: finite numbers of shape "
                f"{given.shape}; {type(self._copies).__name__} returned shape {made.shape}"
                + ", with some that are missing or infinite"
                * (made.shape == given.shape)
            )
        return there(made, self._X)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        X, n = self.rows(number), len(self._codes)
        order = there(order_of(self._seed, number, n), self._codes)
        for start in range(0, n, self._size):
            chosen = order[start : start + self._size]
            weight = self._weight[chosen] / float(len(chosen))
            yield Batch(X[chosen], self._codes[chosen], weight)


def order_of(seed: int, epoch: int, n: int) -> np.ndarray:
    """Return numbers up to n in the order of an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def _on_host(array: Any) -> np.ndarray:
    """Return rows that copies can be made of."""
    array = to_host(array)
    return array.toarray() if sparse.issparse(array) else array


def there(array: np.ndarray, like: Any) -> Any:
    """Return an array as it is, or as a tensor of its type where another tensor is."""
    if not is_tensor(like):
        return array
    from laconic.device.place import moved

    return moved(array, like.device)

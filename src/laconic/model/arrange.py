"""`Arrange`: the columns of some primitives, in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.lowering import (
    Primitive,
    columns_of,
    operations_of,
    reads_of,
    scores_of,
    width_of,
)


class Arrange(Primitive):
    """The columns of some primitives, in another order.

    Only weights are moved. Each primitive computes all of its columns together, and a program
    (`laconic.model.program`) does not need the order at all.

    Parameters
    ----------
    primitives : sequence of Primitive
    order : array of shape (n_columns,)
        Column j is column ``order[j]`` of the primitives. Each number occurs once.
    """

    fields = ("order",)

    def __init__(self, primitives: Sequence[Primitive], order: Any) -> None:
        self.primitives = list(primitives)
        self.order = np.asarray(order, dtype=np.int64)
        if not np.array_equal(np.sort(self.order), np.arange(width_of(self.primitives))):
            raise ValueError("the order must name every column of the primitives once")
        self._back = np.argsort(self.order)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.order)

    def moved(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of the columns in the order of the primitives."""
        return weights[self._back]

    def columns(self, X: Any) -> np.ndarray:
        """Return the columns in their order."""
        return columns_of(self.primitives, X)[:, self.order]

    def scores(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return columns times weights. The columns are not moved, only their weights."""
        return scores_of(self.primitives, X, self.moved(weights))

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return reads_of(self.primitives)

    def operations(self) -> int:
        """Return the operations of the primitives. The order costs nothing."""
        return operations_of(self.primitives)

    def score_operations(self, n_outputs: int) -> int:
        """Return the operations of the primitives, with weights."""
        return sum(primitive.score_operations(n_outputs) for primitive in self.primitives)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the order, and the arrays of the primitives."""
        out = super().arrays()
        for number, primitive in enumerate(self.primitives):
            out |= {f"{number}_{name}": array for name, array in primitive.arrays().items()}
        return out

    def every(self) -> Iterator[Primitive]:
        """Yield this primitive and all primitives inside it."""
        yield self
        for primitive in self.primitives:
            yield from primitive.every()

"""An orthonormal basis of the columns that are in, as weights of these columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# A column counts as a combination of earlier ones if what it adds is shorter than this part of it.
NOTHING = 1e-5


class Span:
    """The basis that Gram-Schmidt finds in the weighted inner product.

    Each column adds a direction, which is a combination of the columns up to it. A column that
    depends on earlier ones adds a zero direction.
    """

    def __init__(self) -> None:
        self._directions: list[np.ndarray] = []

    def cut(self, n: int) -> None:
        """Keep the directions of the first n columns."""
        del self._directions[n:]

    def grown(self, n: int, gram_product: Callable[[np.ndarray], np.ndarray]) -> list[np.ndarray]:
        """Return the directions of the first n columns, (n,) each.

        ``gram_product`` returns Σ_i weight_i x_i ⟨x_i, t⟩ for weights t of the n columns.
        """
        for column in range(len(self._directions), n):
            self._directions.append(self._direction(column, n, gram_product))
        return [np.append(own, np.zeros(n - len(own))) for own in self._directions]

    def _direction(
        self, column: int, n: int, gram_product: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return the direction that a column adds to the span of the columns before it."""
        t = np.zeros(n)
        t[column] = 1.0
        length = rest = 0.0
        for step in range(3):
            products = gram_product(t)
            rest = np.sqrt(max(float(t @ products), 0.0))
            length = length or rest
            if step < 2:  # twice is enough (Kahan, Parlett)
                for other in self._directions:
                    t[: len(other)] -= (other @ products[: len(other)]) * other
        found = t[: column + 1]
        return found / rest if rest > NOTHING * length else np.zeros_like(found)

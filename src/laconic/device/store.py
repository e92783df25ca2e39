"""The columns that are in, of all rows of a device."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.device.sums import sums_over_rows


class DeviceStore:
    """Columns in one tensor that grows, (room, n_rows).

    A store may hold more columns than are in, because some may have been removed again. So a method
    is told how many of the first columns to use.

    Parameters
    ----------
    room : Tensor of shape (room, n_rows)
        Memory for the columns. What it holds does not matter.
    """

    def __init__(self, room: Tensor) -> None:
        self.room = room

    def put(self, first: int, columns: Tensor) -> None:
        """Write columns (new columns, n_rows) from position ``first`` on."""
        need = first + len(columns)
        if need > len(self.room):
            grown = self.room.new_empty((2 * need, self.room.shape[1]))
            grown[:first] = self.room[:first]
            self.room = grown
        self.room[first:need] = columns

    def product(self, weights: Tensor) -> Tensor:
        """Return weights (n_outputs, n) times the first n columns, (n_outputs, n_rows)."""
        return weights @ self.room[: weights.shape[1]]

    def sums(self, values: Tensor, n: int) -> Tensor:
        """Return sums over rows of the first n columns times values: (n, n_outputs) in float64."""
        return sums_over_rows(self.room[:n], values)

    def some(self, rows: Tensor | slice, n: int) -> Tensor:
        """Return some rows of the first n columns, (n, …)."""
        return self.room[:n][:, rows]

    def copy(self, n: int) -> DeviceStore:
        """Return an independent store with the first n columns."""
        return DeviceStore(self.room[:n].clone(memory_format=torch.contiguous_format))

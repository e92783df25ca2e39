"""The columns that are in, of all rows of a device."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.device.row_passes import ALIGNED, MOST_OUTPUTS, RowPass
from laconic.device.sums import sums_over_rows
from laconic.device.triton_or_twin import has_triton, padded
from laconic.losses import BINARY_LOSSES, LOSSES, Loss


class DeviceStore:
    """Columns in one tensor that grows, (room, padded rows), minus their means.

    A store may hold more columns than are in, because some may have been removed again. So a method
    is told how many of the first columns to use.

    Parameters
    ----------
    like : Tensor of shape (n_rows,)
        A tensor of the type and device of the columns.
    """

    def __init__(self, like: Tensor) -> None:
        self.n_rows = len(like)
        self._like = like
        self._room = self._new_room(8)

    def _new_room(self, n: int) -> Tensor:
        """Return memory for columns. Rows beyond the last one are zero."""
        return self._like.new_zeros((n, padded(self.n_rows, ALIGNED)))

    def put(self, first: int, columns: Tensor, means: Tensor) -> None:
        """Write columns (new columns, n_rows) from position ``first`` on, minus their means."""
        need = first + len(columns)
        if need > len(self._room):
            grown = self._new_room(2 * need)
            grown[:first] = self._room[:first]
            self._room = grown
        self._write(slice(first, need), columns, means)

    def _write(self, at: slice, columns: Tensor, means: Tensor) -> None:
        self._room[at, : self.n_rows] = columns - means.to(columns.dtype)[:, None]

    def product(self, weights: Tensor) -> Tensor:
        """Return weights (n_outputs, n) times the first n columns, (n_outputs, n_rows)."""
        return weights @ self._room[: weights.shape[1], : self.n_rows]

    def sums(self, values: Tensor, n: int) -> Tensor:
        """Return sums over rows of the first n columns times values: (n, n_outputs) in float64."""
        return sums_over_rows(self._room[:n, : self.n_rows], values)

    def curve(self, loss: Loss, weight: Tensor, state: Tensor, weights: Tensor) -> Tensor:
        """Return the sums of the columns times the second derivative of a loss in a direction.

        ``weights`` (n_outputs, n) are the direction, as weights of the first columns.
        """
        if not (has_triton(state) and state.dtype == torch.float32 and len(state) <= MOST_OUTPUTS):
            bent = loss.curve(weight, state, self.product(weights))
            return self.sums(bent, weights.shape[1])
        read = self._read(weights.shape[1])
        if type(loss) in LOSSES.values():
            return read.bent(weights, state, weight, centres=True)
        if type(loss) in BINARY_LOSSES.values():
            bend = loss.curvature(torch.ones_like(weight), state)
            return read.bent(weights, bend, weight, centres=False)
        return self.sums(loss.curve(weight, state, self.product(weights)), weights.shape[1])

    def _read(self, n: int) -> RowPass:
        return RowPass(self._room, n, self.n_rows)

    def some(self, rows: Tensor | slice, n: int) -> Tensor:
        """Return some rows of the first n columns, (n, …)."""
        return self._room[:n, : self.n_rows][:, rows]

    def copy(self, n: int) -> DeviceStore:
        """Return an independent store with the first n columns."""
        out = type(self)(self._like)
        out._room = self._room[:n].clone(memory_format=torch.contiguous_format)
        return out


class CodedStore(DeviceStore):
    """Columns of 0 and 1 in a byte for each row. Only the Triton kernel reads them."""

    def __init__(self, like: Tensor) -> None:
        super().__init__(like)
        self._shifts = like.new_zeros(0, dtype=torch.float64)

    def _new_room(self, n: int) -> Tensor:
        shape = (n, padded(self.n_rows, ALIGNED))
        return self._like.new_zeros(shape, dtype=torch.uint8)

    def _write(self, at: slice, columns: Tensor, means: Tensor) -> None:
        self._room[at, : self.n_rows] = columns > 0
        self._shifts = torch.cat([self._shifts[: at.start], means])

    def product(self, weights: Tensor) -> Tensor:
        """Return weights times the first columns."""
        return self._read(weights.shape[1]).product(weights)

    def sums(self, values: Tensor, n: int) -> Tensor:
        """Return sums over rows."""
        read = self._read(n)
        return torch.cat([read.sums(some) for some in values.split(MOST_OUTPUTS)], dim=1)

    def _read(self, n: int) -> RowPass:
        return RowPass(self._room, n, self.n_rows, self._shifts)

    def some(self, rows: Tensor | slice, n: int) -> Tensor:
        """Return some rows of the first columns, as numbers."""
        codes = super().some(rows, n).to(self._like.dtype)
        shifts = self._shifts[:n].to(codes.dtype)
        return codes - shifts.view(-1, *[1] * (codes.ndim - 1))

    def copy(self, n: int) -> CodedStore:
        """Return an independent store with the first n columns."""
        out = super().copy(n)
        assert isinstance(out, CodedStore)
        out._shifts = self._shifts[:n].clone()
        return out


def make_store(like: Tensor, binary: bool, n_outputs: int) -> DeviceStore:
    """Return an empty store for columns of the type of ``like``.

    ``binary`` says that columns hold 0 and 1. They take a byte where the kernel can read it.
    """
    short = like.dtype == torch.float32 and n_outputs <= MOST_OUTPUTS
    return CodedStore(like) if binary and short and has_triton(like) else DeviceStore(like)

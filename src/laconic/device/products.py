"""The pool of products of two input columns on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from laconic.device.pool import on_a_row
from laconic.device.surveys import first_row, sizes_of_columns
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.products import Products
from laconic.pools.scaling import column_scales, needs_double

# Rows that are summed in the dtype of the data.
ROWS = 4096
# First features of a piece. A piece that starts at the diagonal wastes half of their square.
TALL = 128
# Most numbers of a piece: sums in float64, or rows of first features times outputs.
NUMBERS = 1 << 27


def bind(pool: Products, X: Tensor, weight: Tensor, threads: Threads) -> DeviceProducts:
    """Find the scales of the features, and keep X as it is."""
    return DeviceProducts(pool, X, weight, threads)


class DeviceProducts:
    """`Products` over rows on a device.

    Sums over rows are blocks of Xᵀ diag(r_c) X for every output c. One matrix product serves some
    first features, all outputs and all second features. Only the triangle i < j is computed, up to
    the squares at the diagonal.
    """

    def __init__(self, pool: Products, X: Tensor, weight: Tensor, threads: Threads) -> None:
        row, survey = first_row(X), sizes_of_columns(pool, X, weight)
        self.facts = on_a_row(pool, row, survey, threads)
        self.dtype = self.facts.dtype
        self._X = X
        factors = column_scales(survey, pool.scale)
        self._factors = torch.as_tensor(factors, device=X.device)
        self._summed = torch.float64 if needs_double(row, factors) else X.dtype

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the sums Σ_n x_ni x_nj residual_cn of every product, in blocks of atoms."""
        return self._sums(residual, squared=False)

    def squares(self, weight: Tensor) -> Tensor:
        """Return the weighted squared norm Σ_n weight_n x_ni² x_nj² of every product."""
        return torch.cat([sums[:, 0] for _, sums in self._sums(weight[None], squared=True)])

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the scaled products on the training rows, one after the other."""
        out = self._X.new_empty(len(atoms), self._X.shape[0])
        for column, atom in zip(out, atoms, strict=True):
            i, j = self.facts.atom(atom)
            first, second = (self._X[:, f].double() * self._factors[f] for f in (i, j))
            column.copy_(first * second)
        return out

    def _sums(self, residual: Tensor, squared: bool) -> Iterator[tuple[int, Tensor]]:
        """Yield the `gradients` of the products or of their squares."""
        d, k = self._X.shape[1], len(residual)
        tall = max(1, min(TALL, NUMBERS // (k * max(d, ROWS))))
        first = 0
        for some in row_blocks(d - 1, tall):
            sums = self._piece(some, residual.to(self._summed), squared)
            yield first, sums
            first += len(sums)

    def _piece(self, some: slice, outputs: Tensor, squared: bool) -> Tensor:
        """Return the sums of the products whose first features are ``some``, (pairs, k)."""
        (n_rows, d), k = self._X.shape, len(outputs)
        tall, wide = some.stop - some.start, d - some.start - 1
        total = self._factors.new_zeros(tall * k, wide)
        for rows in row_blocks(n_rows, ROWS):
            # One product serves all outputs: (first features x outputs, rows) @ (rows, features).
            factor = self._X[rows, some].T * self._factors[some, None]
            factor = (factor.square() if squared else factor).to(self._summed).contiguous()
            left = (factor[:, None, :] * outputs[:, rows]).view(tall * k, -1)
            right = self._X[rows, some.start + 1 :]
            if squared:
                right = (right * self._factors[some.start + 1 :]).square()
            total += left @ right.to(self._summed)
        # Squares already have both factors, because X² without them could overflow.
        if not squared:
            total *= self._factors[some.start + 1 :]
        i, j = torch.triu_indices(tall, wide, device=total.device)
        return total.view(tall, k, wide)[i, :, j]

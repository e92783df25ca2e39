"""The pool of decision stumps on a device."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from laconic.device.code_sums import ALIGNED, CODES, code_sums
from laconic.device.fixed_point import Whole, sums_by_code, whole_numbers
from laconic.device.pool import on_a_row
from laconic.device.stump_codes import encode, find_codings
from laconic.device.surveys import first_row
from laconic.device.triton_or_twin import padded
from laconic.numeric.threads import Threads
from laconic.pools.stumps import Stumps

if TYPE_CHECKING:
    from laconic.pools.codings import Coding


def bind(pool: Stumps, X: Tensor, weight: Tensor, threads: Threads) -> DeviceStumps:
    """Code every feature. X is not kept."""
    return DeviceStumps(pool, X, weight, threads)


class DeviceStumps:
    """`Stumps` over rows on a device, with one byte for every row and feature.

    A feature with more than 256 codes takes four bytes for every row. A *slot* is a feature that
    has at least one stump.
    """

    def __init__(self, pool: Stumps, X: Tensor, weight: Tensor, threads: Threads) -> None:
        codings = find_codings(pool, X, weight, threads)
        self.facts = on_a_row(pool, first_row(X), codings, threads)
        self.dtype = self.facts.dtype
        self._slots = [c for c in codings if c.n_atoms]
        self._firsts = np.cumsum([0, *(c.n_atoms for c in self._slots)]).tolist()
        self._like = X.new_empty(0)
        self._n_rows = len(X)
        self._write_codes(X, [f for f, c in enumerate(codings) if c.n_atoms])
        self._places = self._find_places()

    def _write_codes(self, X: Tensor, features: list[int]) -> None:
        """Code every slot. Slots of one byte share a tensor, and its rows are padded."""
        narrow = [slot for slot, c in enumerate(self._slots) if c.n_codes <= CODES]
        shape = len(narrow), padded(self._n_rows, ALIGNED)
        self._narrow = torch.zeros(shape, dtype=torch.uint8, device=X.device)
        self._codes: list[Tensor] = []
        row = dict(zip(narrow, self._narrow, strict=True))
        for slot, (feature, coding) in enumerate(zip(features, self._slots, strict=True)):
            codes = encode(X[:, feature], coding)
            if slot in row:
                codes = row[slot][: self._n_rows].copy_(codes)
            self._codes.append(codes)

    def _find_places(self) -> Tensor:
        """Return where each stump of one byte finds its sum.

        Sums of codes up to a code come first, and then sums of single codes.
        """
        narrow = [c for c in self._slots if c.n_codes <= CODES]
        places = []
        for number, coding in enumerate(narrow):
            single = (len(narrow) + number) * CODES
            first = single if coding.categorical else number * CODES
            places.append(first + np.arange(len(coding.values)))
            places.append(single + np.full(int(coding.missing), coding.n_codes - 1))
        flat = np.concatenate([np.empty(0, dtype=np.int64), *places])
        return torch.as_tensor(flat, device=self._like.device)

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield the residual sums of every stump. There is one pass over the codes."""
        k = len(residual)
        of_narrow = self._of_narrow(residual) if len(self._narrow) else None
        numbers, done = None, 0
        slots = range(len(self._slots))
        for is_narrow, run in groupby(slots, lambda s: self._slots[s].n_codes <= CODES):
            some = list(run)
            if is_narrow and of_narrow is not None:
                n = self._firsts[some[-1] + 1] - self._firsts[some[0]]
                yield self._firsts[some[0]], of_narrow[done : done + n]
                done += n
                continue
            numbers = whole_numbers(residual) if numbers is None else numbers
            for slot in some:
                yield self._firsts[slot], _of_wide(self._codes[slot], self._slots[slot], numbers)
        if not self._slots:
            yield 0, residual.new_zeros(0, k).double()

    def _of_narrow(self, residual: Tensor) -> Tensor:
        """Return the sums of all stumps of one byte."""
        single = code_sums(self._narrow, residual)
        # Running sums as a product: those of torch may add in another order on every call.
        up_to = single.new_ones(CODES, CODES).tril()
        both = torch.cat([(up_to @ single).view(-1, len(residual)), single.view(-1, len(residual))])
        return both[self._places]

    def squares(self, weight: Tensor) -> Tensor:
        """Return the weighted squared norms. Columns are 0 or 1, so these are sums of weights."""
        return torch.cat([sums[:, 0] for _, sums in self.gradients(weight[None])])

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the training columns of the atoms, 0 or 1."""
        out = self._like.new_empty(len(atoms), self._n_rows)
        for column, atom in zip(out, atoms, strict=True):
            slot = bisect_right(self._firsts, atom) - 1
            kind, _, code = self._slots[slot].question(int(atom) - self._firsts[slot])
            codes = self._codes[slot]
            column.copy_(codes <= code if kind == "le" else codes == code)
        return out


def _of_wide(codes: Tensor, coding: Coding, numbers: Whole) -> Tensor:
    """Return the sums of all stumps of a feature with many codes."""
    single = sums_by_code(codes, coding.n_codes, numbers)
    n = len(coding.values)
    sums = single[:n] if coding.categorical else single[:n].cumsum(dim=0)
    if coding.missing:
        sums = torch.cat([sums, single[-1:]])
    return sums.double() * numbers.units

"""Hessians of the loss in the weights of the columns of a device, at the last evaluated weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.device.store import DeviceStore
from laconic.device.sums import sums_over_rows
from laconic.device.tensors import on_host
from laconic.losses import Loss
from laconic.rows.limits import Limits

# Most numbers of a tensor that is made on the way.
PASSING = 1 << 27
# Curvature is counted in this many parts of the whole. Sums of integers have no rounding.
UNITS = 2.0**44


class DeviceHessians(NamedTuple):
    """The Hessians of a shard on a device."""

    loss: Loss
    weight: Tensor
    state: Tensor
    store: DeviceStore
    n_columns: int
    limits: Limits

    def whole(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian in the weights of a face, or None if there are too many weights."""
        if np.count_nonzero(face) > self.limits.face:
            return None
        columns, outputs = np.nonzero(face)
        at = torch.from_numpy(columns).to(self.state.device)
        out = torch.zeros(2 * (len(columns),), dtype=torch.float64, device=self.state.device)
        for s in self._chunks(max(len(columns), self.n_columns, 1)):
            written = self.store.some(s, self.n_columns)[at].double()
            state, weight = self.state[:, s], self.weight[s]
            for c in np.unique(outputs).tolist():
                unit = torch.zeros_like(state)
                unit[c] = 1.0
                bend = self.loss.curve(weight, state, unit).double()
                own = torch.from_numpy(np.flatnonzero(outputs == c)).to(at.device)
                weighed = written * bend[torch.from_numpy(outputs).to(at.device)]
                out[:, own] += weighed @ written[own].T
        return on_host(out)

    def blocks(self) -> Tensor:
        """Return Σ_i h_ic x_i x_iᵀ of all columns for every output c, (n_outputs, n, n).

        The answer is in float64. With many rows, the sums are estimates, as in
        `laconic.rows.curvature`: they take rows at even steps of accumulated curvature. They serve
        as a preconditioner, and to rank atoms by the cost of dropping them.
        """
        alike = len(self.state) == 2 and self.loss.shift_invariant
        bends = self.loss.curvature(self.weight, self.state)
        bends = bends[:1] if alike else bends
        few = self.limits.preconditioner_rows * max(self.n_columns, 64)
        if bends.shape[1] <= 2 * few:
            held = self.store.some(slice(None), self.n_columns)
            grams = torch.stack([sums_over_rows(held * bend, held) for bend in bends])
        else:
            room = max(PASSING // max(bends.shape[1], self.n_columns * few), 1)
            grams = torch.cat([self._of_some_rows(own, few) for own in bends.split(room)])
        found = grams.double()
        return found.repeat(2, 1, 1) if alike else found

    def _of_some_rows(self, bends: Tensor, few: int) -> Tensor:
        mass = bends.sum(1, dtype=torch.float64)
        taken = self.store.some(even_steps(bends, mass, few), self.n_columns).transpose(0, 1)
        return (taken @ taken.transpose(1, 2)) * (mass / few)[:, None, None]

    def _chunks(self, n_columns: int) -> Iterator[slice]:
        n_rows = self.state.shape[1]
        step = max(PASSING // n_columns, 1)
        return (slice(at, min(at + step, n_rows)) for at in range(0, n_rows, step))


def even_steps(bends: Tensor, mass: Tensor, few: int) -> Tensor:
    """Return ``few`` rows for every output, where its accumulated curvature passes even steps.

    ``bends`` is (n_outputs, n_rows), and ``mass`` are its sums. The answer is (n_outputs, few).
    """
    units = torch.where(mass > 0, UNITS / mass, 0.0)
    parts = (bends.double() * units[:, None]).long()
    upto = torch.stack([own.cumsum(0) for own in parts])  # a line at a time is ten times as fast
    steps = 2 * torch.arange(few, device=bends.device) + 1
    middle = steps * (upto[:, -1:] // (2 * few))
    return torch.searchsorted(upto, middle, right=True).clamp_(max=bends.shape[1] - 1)

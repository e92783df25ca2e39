"""Pools on the host and on a device side by side."""

import numpy as np
import torch

from laconic.device.pool import device_pool
from laconic.numeric.threads import Threads
from laconic.pools import bind_parts


class Both:
    """A pool over the same rows on the host and on a device."""

    def __init__(self, pool, X, weight=None, device="cpu", bind=device_pool, y=None):
        weight = np.ones(len(X)) if weight is None else weight
        self.weight = weight / weight.sum()
        self.dtype = X.dtype
        self.device = device
        given = (X, self.weight) if y is None else (X, y, self.weight)
        [self.host] = bind_parts(pool, [given], Threads(1))
        there = torch.as_tensor(X, device=device)
        codes = () if y is None else (self.to(y),)
        self.there = bind(pool, there, self.to(self.weight), Threads(1), *codes)

    def to(self, array):
        return torch.as_tensor(np.ascontiguousarray(array), device=self.device)

    def same_facts(self):
        """Whether atoms have the same numbers, names and costs."""
        facts, host = self.there.facts, self.host
        atoms = range(host.n_atoms)
        assert (facts.n_atoms, facts.n_columns) == (host.n_atoms, host.n_columns)
        assert [facts.atom(a) for a in atoms] == [host.atom(a) for a in atoms]
        assert self.there.dtype == facts.dtype == host.dtype == self.dtype
        return True

    def gradients(self, residual):
        """Return the sums of a residual (n_rows, k), on the host and on the device."""
        return self._sums(self.host.gradients(residual)), self.on_device(residual)

    def on_device(self, residual):
        blocks = [(f, s.cpu().numpy()) for f, s in self.there.gradients(self.to(residual.T))]
        assert {s.dtype for _, s in blocks} == {np.dtype(np.float64)}
        assert [f for f, _ in blocks] == np.cumsum([0, *(len(s) for _, s in blocks)])[:-1].tolist()
        assert set(self.host.seams()) <= {f for f, _ in blocks}
        return self._sums(blocks)

    def _sums(self, blocks):
        return np.concatenate([sums for _, sums in blocks])

    def squares(self):
        """Return the squares on the host and on the device."""
        there = self.there.squares(self.to(self.weight))
        return self.host.squares(self.weight), there.cpu().numpy()

    def columns(self, atoms):
        """Return some columns (n_rows, width) on the host and on the device."""
        there = self.there.columns(atoms)
        assert there.is_contiguous()
        return self.host.columns(atoms), there.cpu().numpy().T


def close(sums, of, terms, dtype, rounding=8.0):
    """Whether sums differ by rounding in ``dtype`` from ``of``, sums of terms of size ``terms``."""
    error = np.abs(sums - of)
    return bool((error <= rounding * np.finfo(dtype).eps * terms + 1e-300).all())

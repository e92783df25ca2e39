"""A shard on a device of torch. It answers as `laconic.rows.shard.Shard` does.

Scores, loss state, residual and the columns that are in stay on the device, with rows along the
last axis. Each question sends a few numbers there, and brings one small answer back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from weakref import proxy

import numpy as np
import torch
from torch import Tensor

from laconic.device.hessians import PASSING, DeviceHessians
from laconic.device.newton_steps import DeviceSteps
from laconic.device.own_losses import check_loss
from laconic.device.pool import DevicePool
from laconic.device.precision import full_precision
from laconic.device.store import DeviceStore, make_store
from laconic.device.sums import sums_over_rows
from laconic.device.tensors import like, on_host, tensor_type
from laconic.losses import BINARY_LOSSES, LOSSES, Loss
from laconic.pools.base import Choice, best_of
from laconic.rows.exchanges import Exchanges
from laconic.rows.limits import Limits


class DeviceRows(NamedTuple):
    """What a shard on a device and its trials share: the rows without the columns that are in."""

    pool: DevicePool
    loss: Loss
    y: Tensor
    n_outputs: int
    target: Tensor
    weight: Tensor
    """(n_rows,) in the type of the columns."""
    hot: Tensor
    """(n_classes, n_rows): 1 for the class of each row, else 0."""
    limits: Limits


class DeviceShard:
    """Training rows on a device: their columns, scores and residual.

    Parameters
    ----------
    rest : DeviceRows
        The parts that do not change; see `on_device`.
    store : DeviceStore, optional
        The columns that are already in.
    n_columns : int
        Number of these columns.
    offset : Tensor of shape (n_outputs, n_rows), optional
        Scores that are added to the scores of the columns.
    tries : bool
        Whether this is a trial. Several threads make trials at the same time, and each is short. So
        no graph repeats their steps.
    """

    exchanges: Exchanges | None = None

    def __init__(
        self,
        rest: DeviceRows,
        store: DeviceStore | None = None,
        n_columns: int = 0,
        offset: Tensor | None = None,
        tries: bool = False,
    ) -> None:
        self.rest = rest
        self._tries = tries
        self.pool, self.loss, self.n_outputs = rest.pool.facts, rest.loss, rest.n_outputs
        self.dtype = rest.pool.dtype
        self.n_rows = len(rest.y)
        self.gathers = self.n_rows <= rest.limits.gathered
        self.n_columns = n_columns
        self._store = store or make_store(rest.weight, self.pool.binary, self.n_outputs)
        self._offset = offset
        self._state = rest.weight.new_empty((self.n_outputs, self.n_rows))
        self._coming = self._state[:0]
        self._steps: DeviceSteps | None = None

    # -- which columns are in ------------------------------------------------------------------

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""
        with full_precision():
            return on_host(sums_over_rows(self.rest.hot, self.rest.weight[None]))[:, 0]

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Add a column of ones as the first column. Return the same sums as `take`."""
        self._coming = torch.ones_like(self.rest.weight)[None]
        return self.take(np.zeros(1))

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Write down the columns of some atoms, for `take` to add. Return their weighted sums."""
        self._coming = self.rest.pool.columns(atoms)
        weight = self.rest.weight[None]
        # Columns are summed one by one, so that no sum depends on the other columns.
        with full_precision():
            sums = [sums_over_rows(column[None], weight)[0] for column in self._coming]
        return on_host(torch.cat(sums))

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the offered columns, minus their means.

        Return their class sums (new columns, n_classes) and their rows of the Gram matrix
        (new columns, all columns in).
        """
        columns, self._coming = self._coming, self._state[:0]
        shift = torch.from_numpy(means).to(columns.device)
        self._store.put(self.n_columns, columns, shift)
        self.n_columns += len(columns)
        self._forget_steps()
        columns = (columns - shift.to(columns.dtype)[:, None]) * self.rest.weight
        with full_precision():
            by_class = sums_over_rows(columns, self.rest.hot)
            gram = self._store.sums(columns, self.n_columns).T
        both = on_host(torch.cat([by_class, gram], dim=1))
        return both[:, : by_class.shape[1]], both[:, by_class.shape[1] :]

    def put_local(self, atom: int) -> np.ndarray:
        """Refuse a local atom. No pool on a device has any."""
        raise TypeError(f"atom {atom} is local, and shards on a device write all columns down")

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns."""
        self.n_columns = n_written
        self._forget_steps()

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return that there are no local atoms."""
        return 0, np.empty(0, dtype=int)

    def forget(self) -> None:
        """Do nothing: no answer depends on what was asked before."""

    def trial(self, keep: bool) -> DeviceShard:
        """Return a shard in which atoms are tried.

        With ``keep``, it has the columns that are in. Without, it has no columns, and the current
        scores are a fixed offset.
        """
        if keep:
            store = self._store.copy(self.n_columns)
            return DeviceShard(self.rest, store, self.n_columns, tries=True)
        with full_precision():
            return DeviceShard(self.rest, offset=self._scores(), tries=True)

    # -- sums over rows ------------------------------------------------------------------------

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` (n_columns, n_outputs) and its gradient there.

        From then on, scores and residual are those of ``W``.
        """
        rest, state = self.rest, self._state
        self._weights = like(W.T, rest.weight)
        with full_precision():
            value = rest.loss.evaluate(self._scores(), rest.target, rest.weight, state)
            self._residual = rest.loss.residual(rest.target, rest.weight, state)
            sums = self._store.sums(self._residual, self.n_columns)
        value = torch.as_tensor(value, dtype=torch.float64, device=sums.device)
        answer = on_host(torch.cat([value.reshape(1), sums.reshape(-1)]))
        return float(answer[0]), -answer[1:].reshape(W.shape)

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return what `evaluate` returns at several points."""
        return [self.evaluate(W) for W in points]

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``."""
        with full_precision():
            return on_host(self._bent(like(V.T, self.rest.weight)))

    def _bent(self, direction: Tensor) -> Tensor:
        """Return the same for a direction (n_outputs, n_columns) on the device."""
        return self._store.curve(self.loss, self.rest.weight, self._state, direction)

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian of the loss in the weights of ``face``, a mask (n_columns, n_outputs).

        Return None if there are more weights than the limit.
        """
        with full_precision():
            return self._hessians().whole(face)

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return one diagonal block of the Hessian for every output, (n_outputs, n, n)."""
        with full_precision():
            return [on_host(self._hessians().blocks())] if self.n_columns else []

    def steps(self) -> DeviceSteps | None:
        """Return what finds the steps of Newton's method on the device; see `correct.steps`."""
        if not self.n_columns:
            return None
        if self._steps is None:
            known = type(self.loss) in (*LOSSES.values(), *BINARY_LOSSES.values())
            given = self.rest.weight, self.loss.shift_invariant, known and not self._tries
            # The steps do not hold the shard, so its memory is free as soon as the shard is.
            own = proxy(self)
            curve, blocks = lambda p: own._bent(p), lambda: own._hessians().blocks()
            self._steps = DeviceSteps(curve, blocks, *given)
        return self._steps

    def _forget_steps(self) -> None:
        if self._steps is not None:
            self._steps.forget()

    def _hessians(self) -> DeviceHessians:
        rest = self.rest
        limits, n = rest.limits, self.n_columns
        return DeviceHessians(rest.loss, rest.weight, self._state, self._store, n, limits)

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""
        given = torch.from_numpy(t).to(self._state.device)
        out = torch.zeros_like(given)
        for s in self._chunks():
            held = self._store.some(s, len(t)).double()
            out += held @ ((given @ held) * self.rest.weight[s])
        return on_host(out)

    # -- sums over rows of the columns of the pool ---------------------------------------------

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm. Only the norms leave the device."""
        with full_precision():
            blocks = self.rest.pool.gradients(self._residual)
            norms = [(first, sums.abs().sum(1)) for first, sums in blocks]
        found = ((first, on_host(block)) for first, block in norms)
        return best_of(self.pool, found, forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool, in blocks."""
        return self._pool_sums(self._residual)

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool, like `gradients`."""
        given = torch.from_numpy(t).to(self._state.device)
        values = torch.empty_like(self.rest.weight)
        for s in self._chunks():
            own = self.rest.weight[s]
            values[s] = (given @ self._store.some(s, len(t)).double()) * own
        return self._pool_sums(values[None])

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""
        with full_precision():
            return on_host(self.rest.pool.squares(self.rest.weight.double()))

    def _pool_sums(self, values: Tensor) -> Iterator[tuple[int, np.ndarray]]:
        with full_precision():
            blocks = [(first, on_host(sums)) for first, sums in self.rest.pool.gradients(values)]
        return iter(blocks)

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        return on_host(self._residual.T)

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of all rows."""
        return on_host(self.rest.y), on_host(self.rest.weight)

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width)."""
        return on_host(self.rest.pool.columns(atoms)).T

    def _scores(self) -> Tensor:
        scores = self._store.product(self._weights)
        return scores if self._offset is None else scores.add_(self._offset)

    def _chunks(self) -> Iterator[slice]:
        step = max(PASSING // max(self.n_columns, 1), 1)
        return (slice(at, at + step) for at in range(0, self.n_rows, step))


def on_device(
    pool: DevicePool,
    loss: Loss,
    y: Tensor,
    weight: Tensor,
    n_outputs: int,
    limits: Limits | None = None,
) -> DeviceShard:
    """Return a shard of rows on a device.

    Parameters
    ----------
    pool : DevicePool
        The atoms over these rows.
    loss : Loss
    y : Tensor of shape (n_rows,)
        Class codes.
    weight : Tensor of shape (n_rows,)
        Positive row weights that sum to one, in float64.
    n_outputs : int
    limits : Limits, optional
    """
    dtype: Any = tensor_type(pool.dtype)
    check_loss(loss, weight.new_zeros((n_outputs, 2), dtype=dtype))
    classes = torch.arange(max(n_outputs, 2), device=y.device)
    hot = (y[None] == classes[:, None]).to(dtype)
    target = loss.targets(y, n_outputs)
    own = weight.to(dtype)
    return DeviceShard(DeviceRows(pool, loss, y, n_outputs, target, own, hot, limits or Limits()))

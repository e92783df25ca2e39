"""Steps of Newton's method on a device: preconditioner and conjugate gradients stay there.

The mathematics is that of `laconic.correct.objective.Objective.preconditioner` and
`laconic.correct.conjugate`. Only the residual goes to the device, and only the step and two numbers
for each product come back. On a GPU, the kernels of one product and of all that follows it are
launched together, as a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.precision import full_precision
from laconic.device.tensors import on_host

Curve = Callable[[Tensor], Tensor]
"""Takes a direction (n_outputs, n), and returns the Hessian of the loss times it, (n, n_outputs)
in float64."""

# Added to the scaled diagonals of the preconditioner, as in `Objective.class_inverses`.
RIDGE = 1e-6


class DeviceSteps:
    """Finds steps on a device; see `laconic.correct.steps.Steps`.

    Parameters
    ----------
    curve : Curve
        Products with the Hessian at the last evaluated weights.
    blocks : callable
        Returns the class-diagonal of this Hessian, (n_outputs, n, n) in float64.
    like : Tensor
        A tensor in the type of directions, on the device.
    shift_invariant : bool
        Whether the loss stays the same if all scores of a row are shifted.
    graphs : bool
        Whether a graph may repeat the curve on a GPU. It must not wait for the device then.
    """

    def __init__(
        self,
        curve: Curve,
        blocks: Callable[[], Tensor],
        like: Tensor,
        shift_invariant: bool,
        graphs: bool,
    ) -> None:
        self._curve, self._blocks = curve, blocks
        self._like, self._shift_invariant = like, shift_invariant
        self._graphs = graphs and like.is_cuda
        self._iteration: Iteration | None = None
        self._before: Any = None

    def renew(self, bend: np.ndarray, free: int, eps: float) -> None:
        """Make the preconditioner anew. ``bend`` is the curvature of the penalty, (n - free, k)."""
        with full_precision():
            blocks = self._blocks()
        own = self._padded(bend, blocks.shape[1])
        diagonal = blocks.diagonal(dim1=1, dim2=2)
        diagonal += own.T
        unit = diagonal.clamp_min(float(np.finfo(np.float32).tiny)).rsqrt()
        blocks *= unit[:, :, None] * unit[:, None, :]
        diagonal += RIDGE
        inverse = torch.linalg.inv_ex(blocks).inverse
        inverse *= unit[:, :, None] * unit[:, None, :]
        # The penalty alone has curvature in the direction of a shift; see `Objective`.
        mean = own.mean(dim=1)
        least = eps / inverse.diagonal(dim1=1, dim2=2).mean(dim=0)
        bends = mean > least.clamp_min(0.0)
        bends[:free] = False
        self._inverse = inverse
        self._shift = torch.where(bends, 1.0 / mean, 0.0)

    def find(
        self, bend: np.ndarray, r: np.ndarray, centred: bool, forcing: float, room: int
    ) -> tuple[np.ndarray, int]:
        """Return the step, and the number of products.

        The residual is reduced by the factor ``forcing``. At most ``room`` residuals are
        remembered, so that rounding does not decide where the solve ends.
        """
        limit = 2 * r.size + 10
        iteration = self._iteration_for((*r.shape, min(limit, room)))
        iteration.inverse.copy_(self._inverse)
        iteration.shift.copy_(torch.zeros_like(self._shift) if centred else self._shift)
        iteration.bend.copy_(self._padded(bend, len(r)))
        rz = iteration.begin(torch.from_numpy(np.ascontiguousarray(r)))
        goal = rz * forcing**2
        with full_precision():
            for products in range(1, limit + 1):
                bent, rz = iteration.run()
                if not bent > 0:
                    step = iteration.step if products > 1 else iteration.first
                    return on_host(step.clone()), products
                if not rz > goal:
                    break
        return on_host(iteration.step.clone()), products

    def forget(self) -> None:
        """Forget what depends on the memory of columns, because columns were added or removed."""
        if self._iteration is not None and self._iteration.graph is not None:
            self._before = self._iteration.graph  # the next one takes its memory
        self._iteration = None

    def _iteration_for(self, shape: tuple[int, ...]) -> Iteration:
        known = self._iteration
        if known is None or known.shape != shape:
            self.forget()
            given = self._curve, self._like, shape, self._shift_invariant, self._graphs
            self._iteration = known = Iteration(*given, self._before)
        return known

    def _padded(self, bend: np.ndarray, n: int) -> Tensor:
        """Return the curvature of the penalty with zeros for the intercept."""
        out = np.zeros((n, bend.shape[1]))
        out[n - len(bend) :] = bend
        return torch.from_numpy(out).to(self._like.device)


class Iteration:
    """One product and what follows it, over fixed memory, so that a graph can repeat it."""

    def __init__(
        self,
        curve: Curve,
        like: Tensor,
        shape: tuple[int, ...],
        shift_invariant: bool,
        graphs: bool,
        before: Any,
    ) -> None:
        self.shape = n, k, room = shape
        self._curve, self._type, self._shift_invariant = curve, like.dtype, shift_invariant

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float64, device=like.device)

        self.inverse, self.shift, self.bend = zeros(k, n, n), zeros(n), zeros(n, k)
        self.step, self.first = zeros(n, k), zeros(n, k)
        self._p, self._r, self._z, self._rz = zeros(n, k), zeros(n, k), zeros(n, k), zeros()
        self._told = zeros(2)
        # The last line takes the residuals for which there is no room.
        self._residuals, self._duals = zeros(room + 1, n * k), zeros(room + 1, n * k)
        self._number = torch.zeros(1, dtype=torch.int64, device=like.device)
        self.graph: Any = None
        self._graphs, self._before = graphs, before
        self._runs = 0

    def begin(self, r: Tensor) -> float:
        """Start from a residual. Return its square in the norm of the preconditioner."""
        for kept in (self.step, self._residuals, self._duals, self._number):
            kept.zero_()
        self._r.copy_(r)
        self.first.copy_(self._apply(self._r))
        self._z.copy_(self.first)
        self._p.copy_(self.first)
        self._rz.copy_(_dot(self._r, self._z))
        return float(self._rz)

    def run(self) -> tuple[float, float]:
        """Make a product. Return the curvature along the direction, and the new square."""
        self._runs += 1
        if self.graph is None and self._graphs and self._runs > 1:
            self.graph = captured(self._once, self._r.device, self._before)
        if self.graph is None:
            self._once()
        else:
            self.graph.replay()
        bent, rz = self._told.tolist()
        return bent, rz

    def _once(self) -> None:
        p, r, z = self._p, self._r, self._z
        bent = self._unshifted(self._curve(p.T.to(self._type))) + self.bend * p
        along = _dot(p, bent)
        length = torch.where(along > 0, self._rz / along, 0.0)
        self.step += length * p
        self._residuals.index_copy_(0, self._number, r.reshape(1, -1))
        self._duals.index_copy_(0, self._number, (z / self._rz).reshape(1, -1))
        for kept in (self._residuals, self._duals):
            kept[-1].zero_()
        self._number.add_(1).clamp_(max=len(self._duals) - 1)
        r -= length * bent
        r -= ((self._duals @ r.view(-1)) @ self._residuals).view_as(r)
        z.copy_(self._apply(r))
        rz = _dot(r, z)
        p.copy_(z + (rz / self._rz) * p)
        self._rz.copy_(rz)
        torch.stack([along, rz], out=self._told)

    def _apply(self, r: Tensor) -> Tensor:
        if not self._shift_invariant:
            return self._solved(r)
        mean = r.mean(dim=1, keepdim=True)
        z = self._solved(r - mean)
        z -= z.mean(dim=1, keepdim=True)
        return z + self.shift[:, None] * mean

    def _solved(self, r: Tensor) -> Tensor:
        return torch.bmm(self.inverse, r.T[:, :, None])[:, :, 0].T

    def _unshifted(self, sums: Tensor) -> Tensor:
        return sums - sums.mean(dim=1, keepdim=True) if self._shift_invariant else sums


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


_recording = Lock()


@cache
def _stream(device: torch.device) -> Any:
    """Return the stream on which graphs of a device are recorded.

    Libraries keep memory for every stream, so there is one.
    """
    return torch.cuda.Stream(device)


def captured(work: Callable[[], None], device: torch.device, before: Any) -> Any:
    """Return a graph of the kernels that ``work`` launches. They do not run meanwhile.

    It takes the memory of the graph ``before``, which must not run again. Fits of several threads
    record one after the other, because they share the stream. What other threads ask of the device
    meanwhile is not recorded, and does not disturb. Neither does an old graph that is thrown away
    meanwhile.
    """
    stream, graph = _stream(device), torch.cuda.CUDAGraph()
    with _recording:
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            pool = None if before is None else before.pool()
            graph.capture_begin(pool=pool, capture_error_mode="relaxed")
            try:
                work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(stream)
    return graph

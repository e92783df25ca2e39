"""Balls over training rows. All radii of a centre share one pass over the rows.

Distances are coded once. A round sums the rows of every code. A running sum over the codes then
gives the sums of every ball.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.local_columns import LocalColumns
from laconic.pools.radii import TOGETHER, BallGrid, CodedRows

# One task sums as many centres as have a megabyte of sums, but at most this many. If there are few
# centres, they make up this number of tasks.
MOST, MEGABYTE, TASKS = 64, 1 << 20, 32
# Bytes of sums that may wait until they are asked for.
WAVE = 1 << 26
# A sum of squares around an origin counts as zero if it is below this part of its terms. It is then
# only rounding.
ROUNDING = 1e-13


class BoundBalls(BoundPool):
    """A pool of balls over training rows.

    The ball with number ``radius`` of ``centre`` is atom centre · n_radii + radius. With the height
    h of the ball, its columns are h · linear · (v − o) and h · constant.

    Parameters
    ----------
    balls : BallGrid
    coded : CodedRows
        This part of the rows, with codes. The columns of its table, except the last one, are the v.
    threads : Threads
    soft : bool
        Whether heights fall from 1 at the centre to 0 at the edge. Otherwise they are 1.
    shift : ndarray of shape (n_centres, n_linear)
        The origins o of the linear functions, minus the mean of the rows.
    linear, constant : ndarray of shape (n_centres, n_radii)
        The factors of the columns.
    """

    local_atoms = True
    record: ClassVar[type[Any]]
    """The type of atom records."""

    def __init__(
        self,
        balls: BallGrid,
        coded: CodedRows,
        threads: Threads,
        soft: bool,
        shift: np.ndarray,
        linear: np.ndarray,
        constant: np.ndarray,
    ) -> None:
        self._threads, self._soft, self._shift = threads, soft, shift
        self._centres, self._radii, self._shares, self._nearest, self._mean = balls[:5]
        self._power = balls.power
        self._table, self._codes, self._depths = coded
        fall = (self._radii[:, -1:] / self._radii) ** 2
        self._factors = np.stack([linear, constant, fall], axis=-1)
        self._n_radii, self._n_features = self._radii.shape[1], len(self._mean)
        self._n_linear, self._width = shift.shape[1], shift.shape[1] + 1
        self.dtype = self._table.dtype
        self.n_atoms = self._radii.size
        self.n_columns = self.n_atoms * self._width

    # -- sums over rows ------------------------------------------------------------------------

    def _ball_sums(self, residual: np.ndarray) -> Callable[[slice], np.ndarray]:
        """Return a function that sums the columns of all balls of some centres, without factors.

        Its results are (centres, radii, k, width).
        """
        from laconic.pools.balls import sums_by_ball, sums_within  # it imports Numba

        residual = np.ascontiguousarray(residual, dtype=self.dtype)
        k = residual.shape[1]
        shape = (self._n_radii, 2 * k if self._soft else k, self._width)

        def sums_of(s: slice) -> np.ndarray:
            sums = np.zeros((s.stop - s.start, *shape))
            sums_within(self._codes[s], self._depths[s], self._table, residual, sums)
            return sums_by_ball(sums, k, self._shift[s], self._factors[s])

        return sums_of

    def _column_factors(self, s: slice) -> np.ndarray:
        """Return the column factors of the balls of some centres, (centres, radii, width)."""
        out = np.empty((s.stop - s.start, self._n_radii, self._width))
        out[...] = self._factors[s, :, :1]
        out[:, :, -1] = self._factors[s, :, 1]
        return out

    def _tasks(self, k: int) -> list[slice]:
        """Return slices of the centres that are summed together."""
        size = 8 * self._n_radii * k * self._width
        most = min(MOST, max(TOGETHER, len(self._centres) // TASKS))
        return row_blocks(len(self._centres), min(max(TOGETHER, MEGABYTE // size), most))

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums, a few centres at a time."""
        k, size = residual.shape[1], self._n_radii * self._width
        sums_of, tasks = self._ball_sums(residual), self._tasks(k)
        for wave in row_blocks(len(tasks), max(1, WAVE // (16 * tasks[0].stop * size * k))):
            for s, sums in zip(tasks[wave], self._threads.map(sums_of, tasks[wave]), strict=True):
                sums *= self._column_factors(s)[:, :, None]
                yield s.start * size, sums.transpose(0, 1, 3, 2).reshape(-1, k)

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms of the column sums, a few centres at a time."""
        sums_of, tasks = self._ball_sums(residual), self._tasks(residual.shape[1])

        def norms_of(s: slice) -> np.ndarray:
            sums = sums_of(s)
            norms = np.abs(sums, out=sums).sum(axis=2)
            norms *= self._column_factors(s)
            return norms.reshape(-1)

        for s, norms in zip(tasks, self._threads.map(norms_of, tasks), strict=True):
            yield s.start * self._n_radii * self._width, norms

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column, from sums by code in float64.

        Over the rows of a ball of height h(v) and origin o, Σ w h² (v_d − o_d)² is
        S₂ − 2 o_d S₁ + o_d² S₀, where S_p = Σ w h² v_d^p. A hard ball has h = 1. A soft ball has
        h² = 1 − 2 fall · t + fall² t² with the depth t. So it needs the sums of three powers of t.
        """
        from laconic.pools.balls import sums_within

        n = self._n_linear
        table = np.empty((len(self._table), 2 * n + 1))  # coordinates, 1, squared coordinates
        table[:, : n + 1] = self._table
        np.square(table[:, :n], out=table[:, n + 1 :])
        heavy = np.ascontiguousarray(weight, dtype=np.float64)[:, None]
        origins = self._shift[:, None]
        powers = 3 if self._soft else 1

        def squares_of(s: slice) -> np.ndarray:
            codes, depths = self._codes[s], self._depths[s]
            sums = np.zeros((len(codes), self._n_radii, powers, 2 * n + 1))
            sums_within(codes, depths, table, heavy, sums)
            linear, constant, fall = np.moveaxis(self._factors[s, :, :, None], 2, 0)
            inside = sums[:, :, 0]
            if self._soft:
                inside = inside - 2.0 * fall * sums[:, :, 1] + fall**2 * sums[:, :, 2]
            first, count, second = np.split(inside, [n, n + 1], axis=2)
            least = ROUNDING * (second + origins[s] ** 2 * count)
            spread = second - 2.0 * origins[s] * first + origins[s] ** 2 * count
            spread = np.where(spread > least, spread, 0.0)
            return np.concatenate([linear**2 * spread, constant**2 * count], axis=2).reshape(-1)

        tasks = row_blocks(len(self._centres), TOGETHER)
        return np.concatenate(list(self._threads.map(squares_of, tasks)))

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Sum the scores of each ball's columns."""
        return first // self._width, column_scores.reshape(-1, self._width).sum(axis=1)

    # -- atoms ---------------------------------------------------------------------------------

    def local(self, index: int) -> LocalColumns:
        """Return the columns of a ball: the rows inside it, and how the table gives the columns."""
        centre, radius = divmod(int(index), self._n_radii)
        n = self._n_linear
        linear, constant, fall = self._factors[centre, radius]
        change = np.zeros((n + 1, n + 1))
        np.fill_diagonal(change, linear)
        change[n, :n] = -linear * self._shift[centre]
        change[n, n] = constant
        rows = np.flatnonzero(self._codes[centre] <= radius)
        heights = None
        if self._soft:
            heights = 1.0 - self.dtype.type(fall) * self._depths[centre, rows]
        return LocalColumns(rows, self._table, change, heights)

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns, written down."""
        parts = [self.local(a).written() for a in atoms]
        return np.hstack(parts or [np.empty((len(self._table), 0), dtype=self.dtype)])

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factors of the columns."""
        factors = self._factors.reshape(-1, 3)[list(atoms), :2]
        factors = np.ldexp(factors, [-self._power, 0])
        return np.repeat(factors, [self._n_linear, 1], axis=1).reshape(-1)

    def width(self, index: int) -> int:
        """Return the number of columns of a ball."""
        return self._width

    def atom(self, index: int) -> Any:
        """Return the record of atom ``index``."""
        centre, radius = divmod(int(index), self._n_radii)
        length = float(self._input(self._radii[centre, radius]))
        return self.record(centre, length, self._n_features)

    def _input(self, lengths: np.ndarray) -> np.ndarray:
        """Return lengths in the units of the input."""
        return np.ldexp(lengths, self._power)

    def index(self, atom: Any) -> int:
        """Return the number of an atom record."""
        if isinstance(atom, self.record) and 0 <= atom.centre < len(self._centres):
            found = np.flatnonzero(self._input(self._radii[atom.centre]) == atom.radius)
            if len(found) and atom.n_features == self._n_features:
                return int(atom.centre * self._n_radii + found[0])
        raise ValueError(f"{atom!r} is not an atom of this pool")

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of an atom record. A feature means all atoms: every ball reads it."""
        if isinstance(item, self.record):
            return np.array([self.index(item)])
        feature_number(item, self._n_features)
        return np.arange(self.n_atoms)

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of balls: those around the centre of a chosen ball, and others."""
        known = np.zeros(self._radii.shape, dtype=np.int64)
        known[np.asarray(chosen, dtype=np.int64) // self._n_radii] = 1
        return known.reshape(-1)

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom. Every ball reads every feature."""
        return np.full(self.n_atoms, float(np.sum(feature_costs)))

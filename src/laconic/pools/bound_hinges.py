"""Hinges over training rows. All knots of a direction share one pass over the rows.

The projections of the rows on every direction are computed once, and coded by the knots that they
reach. A round sums the rows of every code. Running sums over the codes give the sums of every
hinge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.hinges import HingeAtom, HingesMap
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.directions import TOGETHER, HingeGrid

# One task sums as many directions as have a megabyte of sums, but at most this many.
MOST, MEGABYTE = 16, 1 << 20


class BoundHinges(BoundPool):
    """A pool of hinges over training rows.

    Let u be the projection on a direction. Its hinges are max(0, u − b) for the knots b but the
    last, and then max(0, b − u) for the knots b between the first and the last. The first hinge is
    a straight line, and so would the last one be. Hinges that are 0 for all rows of the sample, or
    equal to another one, are left out.

    Parameters
    ----------
    grid : HingeGrid
    X : array or CSR matrix
        This part of the rows.
    weight : ndarray
        Weights of these rows. Only ``scale="std"`` reads them.
    scale : {"max", "std"} or None
        What columns are divided by: their largest value, their standard deviation, or nothing.
    threads : Threads

    Attributes
    ----------
    knots : ndarray of shape (n_directions, n_knots + 1)
        All knots, in standardised units.
    direction, side, place : ndarray of shape (n_atoms,)
        The direction of every hinge, its side (0 above the knot, 1 below it), and the number of its
        knot among those of the direction.
    factors : ndarray of shape (n_atoms,)
        What columns in standardised units are multiplied by.
    """

    def __init__(
        self, grid: HingeGrid, X: Any, weight: np.ndarray, scale: str | None, threads: Threads
    ) -> None:
        self._grid, self._scale, self._threads = grid, scale, threads
        self._weight = weight if scale == "std" else None
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.knots = grid.standardised(grid.knots.T).T
        self._n_directions, self._n_knots = len(grid.knots), grid.knots.shape[1] - 1
        self._n_features = X.shape[1]
        self._code(X)
        self._number()
        self.factors = np.ones(self.n_atoms)

    def _code(self, X: Any) -> None:
        """Compute the projections of the rows, and their codes."""
        shape = self._n_directions, X.shape[0]
        self._heights, self._codes = np.empty(shape, dtype=self.dtype), np.empty(shape, np.uint8)

        def some(s: slice) -> None:
            self._heights[:, s] = self._grid.standardised(self._grid.projections(X[s])).T
            for j, knots in enumerate(self.knots):
                self._codes[j, s] = np.searchsorted(knots, self._heights[j, s], side="right")

        list(self._threads.map(some, row_blocks(X.shape[0], TOGETHER)))

    def _number(self) -> None:
        """Number the hinges by direction, side and knot."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        kept = np.zeros((self._n_directions, 2, self._n_knots), dtype=bool)
        kept[:, 0] = low < self.knots[:, -1:]
        kept[:, 1] = (high > self.knots[:, :1]) & (high < self.knots[:, -1:])
        kept[:, 0, 1:] &= low[:, 1:] > low[:, :-1]
        kept[:, 1, 1:] &= high[:, 1:] > high[:, :-1]
        self._kept = kept
        self.direction, self.side, place = (part.astype(np.int64) for part in np.nonzero(kept))
        self.place = place + self.side
        self._knot = self.knots[self.direction, self.place]
        self._sign = np.where(self.side == 0, 1.0, -1.0)
        # As in the records of atoms, in the units of the input. Zero has no sign.
        self._input_knot = self._sign * self._grid.knots[self.direction, self.place] + 0.0
        self.n_atoms = self.n_columns = len(self.direction)

    # -- scales --------------------------------------------------------------------------------

    def late(self) -> np.ndarray | None:
        """Return what the scales of the columns are found from, for this part of the rows.

        It is the largest value of every column, or the sums of the columns and their squares.
        """
        if self._scale is None:
            return None
        if self._weight is not None:
            mass = np.full(self.n_atoms, self._weight.sum())
            found = list(self._sums(self._weight[:, None]))
            sums = np.concatenate([np.empty((0, 1)), *found])[:, 0]
            return np.stack([mass, sums, self._squares(self._weight)])
        return self.reach(self._heights.min(axis=1), self._heights.max(axis=1))[None]

    def reach(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the largest value of every hinge, from the ends of all projections."""
        low, high = (ends.astype(np.float64)[self.direction] for ends in (low, high))
        return np.where(self.side == 0, high - self._knot, self._knot - low)

    def settle(self, late: Sequence[np.ndarray]) -> None:
        """Find the scales of the columns from the answers of all parts."""
        if self._scale == "max":
            size = np.max([part[0] for part in late], axis=0)
        else:
            mass, sums, squares = np.sum(late, axis=0)
            size = np.sqrt(np.maximum(squares / mass - (sums / mass) ** 2, 0.0))
        self.factors = np.divide(1.0, size, out=np.ones_like(size), where=size > 0.0)

    # -- sums over rows ------------------------------------------------------------------------

    def _over_rows(
        self, residual: np.ndarray, square: bool, hinges: Callable[..., np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield a number for every hinge and output, from sums over the rows that it reaches.

        Let r be a residual and u a projection. ``hinges(knot, count, total)`` gets the knots and
        the sums of r and of r u. With ``square``, it also gets those of r u².
        """
        from laconic.pools.hinge_sums import sum_by_code  # it imports Numba

        residual = np.ascontiguousarray(residual)
        k, n_codes = residual.shape[1], self._n_knots + 2

        def sums_of(s: slice) -> np.ndarray:
            heights, codes = self._heights[s], self._codes[s]
            sums = np.zeros((len(codes), n_codes, 2 * k))
            sum_by_code(codes, heights, residual, sums)
            parts = np.split(sums, 2, axis=2)
            if square:
                sums = np.zeros_like(sums)
                sum_by_code(codes, np.square(heights, dtype=np.float64), residual, sums)
                parts.append(sums[:, :, k:])
            # Rows above knot j have a code above j, and rows below it have one up to j.
            above = [np.cumsum(part[:, :0:-1], axis=1)[:, :0:-1] for part in parts]
            below = [np.cumsum(part, axis=1)[:, 1:-1] for part in parts]
            knots = self.knots[s, :, None]
            out = np.stack([hinges(knots[:, :-1], *above), hinges(knots[:, 1:], *below)], axis=1)
            out[:, 1] *= 1.0 if square else -1.0  # below a knot b, a hinge is −(u − b)
            return np.asarray(out[self._kept[s]])

        size = 16 * n_codes * k
        tasks = row_blocks(self._n_directions, min(max(1, MEGABYTE // size), MOST))
        yield from self._threads.map(sums_of, tasks)

    def _sums(self, residual: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the column sums without factors, (hinges, k), a few directions at a time."""
        return self._over_rows(residual, False, lambda b, count, total: total - b * count)

    def _squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norms without factors."""
        heavy = np.asarray(weight, dtype=np.float64)[:, None]
        found = list(self._over_rows(heavy, True, _squared))
        return np.maximum(np.concatenate([np.empty((0, 1)), *found])[:, 0], 0.0)

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums, a few directions at a time."""
        first = 0
        for sums in self._sums(residual):
            sums *= self.factors[first : first + len(sums), None]
            yield first, sums
            first += len(sums)

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column."""
        return self._squares(weight) * self.factors**2

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns."""
        out = np.empty((self._codes.shape[1], len(atoms)), dtype=self.dtype, order="F")
        for column, atom in zip(out.T, atoms, strict=True):
            above = self._heights[self.direction[atom]] - self.dtype.type(self._knot[atom])
            np.maximum(-above if self.side[atom] else above, 0.0, out=column)
            column *= self.factors[atom]
        return out

    # -- atoms ---------------------------------------------------------------------------------

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factors of the columns. In the map, the largest term has factor 1 or -1."""
        numbers = np.asarray(atoms, dtype=np.int64)
        return np.asarray(self.factors[numbers] * self._grid.unit[self.direction[numbers]])

    def extract(self, atoms: Sequence[int]) -> HingesMap:
        """Return the feature map of the hinges."""
        numbers = np.asarray(atoms, dtype=np.int64)
        rows = self._grid.directions[self.direction[numbers]]
        length = np.diff(rows.indptr).astype(np.int64)
        value = rows.data * np.repeat(self._sign[numbers], length)
        indices = rows.indices.astype(np.int64)
        return HingesMap(length, indices, value, self._input_knot[numbers])

    def atom(self, index: int) -> HingeAtom:
        """Return the record of atom ``index``."""
        return self.extract([index]).atoms()[0]

    def index(self, atom: Any) -> int:
        """Return the number of an atom record."""
        if isinstance(atom, HingeAtom):
            for number in np.flatnonzero(self._input_knot == atom.knot).tolist():
                if self.atom(number) == atom:
                    return int(number)
        raise ValueError(f"{atom!r} is not an atom of this pool")

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of an atom record, or of all atoms that read a feature."""
        if isinstance(item, HingeAtom):
            return np.array([self.index(item)])
        one = np.zeros(self._n_features)
        one[feature_number(item, self._n_features)] = 1.0
        return np.flatnonzero(self.costs(one))

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every hinge: the sum of the costs of the inputs of its direction."""
        there = (self._grid.directions != 0).astype(np.float64)
        return np.asarray((there @ feature_costs)[self.direction])

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of hinges: those with as many inputs, and as many that are new."""
        new = np.ones(self._n_features)
        new[self.extract(chosen).features()] = 0.0
        pairs = np.stack([self._lengths(), self.costs(new).astype(np.int64)])
        return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray:
        """Return the operations that each hinge adds, as `HingesMap` counts them."""
        return self._lengths() + 1.0 + n_outputs

    def _lengths(self) -> np.ndarray:
        """Return the number of inputs of every hinge."""
        return np.asarray(np.diff(self._grid.directions.indptr)[self.direction], dtype=np.int64)


def _squared(b: np.ndarray, count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> Any:
    """Return Σ r (u − b)² from the sums of r, r u and r u²."""
    return squares - 2.0 * b * total + b**2 * count

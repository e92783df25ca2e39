"""The pool of all products of two input columns. BLAS sums them over rows; none is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from laconic.model.atoms import Product, ProductsMap
from laconic.numeric.magnitudes import ENLARGE, SHRINK
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.parts import Place
from laconic.pools.scaling import (
    LARGEST,
    LARGEST_UNIT,
    SMALLEST_UNIT,
    ColumnsSurvey,
    ScaledPool,
    column_scales,
    needs_double,
)


class Tiles(NamedTuple):
    """How sums over pairs are cut into tiles. No field changes an answer by more than rounding."""

    rows: int = 1024
    """Rows summed together in the dtype of the data. The sums of such blocks are added in float64,
    which costs only a few hundredths of the work."""
    left: int = 512
    """First features times classes in one BLAS product. With fewer, BLAS does not run at full
    speed."""
    tall: int = 64
    """Most first features of a piece. A piece that starts at the diagonal wastes half of their
    square."""
    sums: int = 1 << 20
    """Most sums of a piece, 8 MB in float64. This bounds the memory of a thread if d or k is
    large."""
    tasks: int = 64
    """Least number of tasks. If there are fewer pieces, the rows of a piece are cut, too."""
    least_rows: int = 8192
    """Least number of rows of a task, if the rows of a piece are cut."""
    copied: int = 1024
    """Columns copied together if BLAS cannot read X in place: 8 MB in float64 for a block of
    rows."""
    together: int = 32
    """Atoms whose training columns are formed together. Row-major and CSR data are read once for
    all of them."""


@dataclass(frozen=True)
class Products(ScaledPool):
    """The pool of all products x_i x_j of two different input columns, i < j.

    There are d(d-1)/2 products, numbered (0, 1), (0, 2), ..., (0, d-1), (1, 2), ... The *features*
    are scaled. Their product is not scaled again.

    Sums over rows are blocks of Xᵀ diag(r_c) X, with one matrix for every output c. A round costs
    n k d²/2 multiply-accumulates, for the triangle i < j. If d is below 64, it costs up to twice as
    much. A round needs memory for a copy of the residual, and at most some 50 MB per thread. These
    50 MB do not depend on the numbers of rows and features. A sparse X is made dense one tile at a
    time. So sparse data saves memory but no time.

    Parameters
    ----------
    scale : {"max", "std"} or None, default="max"
        How features are scaled; see `laconic.pools.scaling.column_scales`. With ``"max"`` every
        scaled product is in [-1, 1], as Lemma 2 of ShareBoost assumes.
    """

    _tiles: ClassVar[Tiles] = Tiles()

    scale: str | None = "max"

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: ColumnsSurvey | None = None,
        place: Place | None = None,
    ) -> BoundProducts:
        """Prepare for the training rows. Find the scales of the features, and keep X as it is."""
        if not sparse.issparse(X):
            X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] < 2:
            raise ValueError(
                f"X must have at least two columns to form products of two, not {X.shape[-1]}"
            )
        if X.dtype not in (np.float32, np.float64):
            raise TypeError(f"X must be float32 or float64 in native byte order, not {X.dtype}")
        sizes = self.sizes(X, weight, threads) if survey is None else survey
        factors = column_scales(sizes, self.scale)
        self._check_sizes(sizes, factors)
        return BoundProducts(X, factors, threads, self._tiles)

    def _check_sizes(self, found: ColumnsSurvey, factors: np.ndarray) -> None:
        """Refuse features whose products overflow, or are so small that their weights overflow."""
        peaks = found.peak
        with np.errstate(divide="ignore"):
            largest, sizes = np.log10(peaks), -np.log10(factors)
        most = LARGEST_UNIT if self.scale is not None else LARGEST[found.dtype.itemsize]
        i, j = sorted(np.argsort(largest, kind="stable")[-2:])
        if largest[i] + largest[j] > np.log10(most):
            hint = SHRINK if self.scale is not None else f"set scale='max', or {SHRINK}"
            raise ValueError(
                f"columns {i} and {j} of X hold values up to {peaks[i]:.2g} and {peaks[j]:.2g}, "
                f"and their products overflow; {hint}"
            )
        i, j = sorted(np.argsort(sizes, kind="stable")[:2])
        if sizes[i] + sizes[j] < np.log10(SMALLEST_UNIT):
            raise ValueError(
                f"columns {i} and {j} of X are of size {1 / factors[i]:.2g} and "
                f"{1 / factors[j]:.2g}, and their products underflow; {ENLARGE}"
            )


class _Piece(NamedTuple):
    """The pairs (i, j), i < j, with start ≤ i < stop and left ≤ j < right."""

    start: int
    stop: int
    left: int
    right: int


def _pieces(d: int, k: int, tiles: Tiles) -> Iterator[_Piece]:
    """Cut all pairs of d features into pieces for k outputs, in the order of the atoms."""
    start = 0
    while start < d - 1:
        tall = max(1, min(tiles.tall, tiles.left // k, tiles.sums // (k * (d - 1 - start))))
        stop = min(start + tall, d - 1)
        # Only a piece with a single first feature can be too wide. So the atoms of a piece stay
        # consecutive.
        wide = max(1, tiles.sums // (k * tall))
        for left in range(start + 1, d, wide):
            yield _Piece(start, stop, left, min(left + wide, d))
        start = stop


_Finish = Callable[[np.ndarray], np.ndarray]


class BoundProducts(BoundPool):
    """`Products` over training rows."""

    def __init__(self, X: Any, factors: np.ndarray, threads: Threads, tiles: Tiles) -> None:
        self._X = X
        self._tiles = tiles
        self._factors = factors
        self._threads = threads
        self._n_rows, self._d = X.shape
        self.dtype = X.dtype
        self._summed = np.dtype(np.float64) if needs_double(X, factors) else X.dtype
        # Number of the first atom (i, i + 1) of every first feature i. A search among them needs no
        # square roots, so it is exact.
        i = np.arange(self._d - 1, dtype=np.int64)
        self._starts = i * (2 * self._d - i - 1) // 2
        self.n_atoms = self.n_columns = self._d * (self._d - 1) // 2
        self._in_place = not sparse.issparse(X) and X.dtype.itemsize in X.strides

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the sums Σ_n x_ni x_nj residual_nc of every product, in blocks of atoms."""
        return self._sums(residual)

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms of these sums. Threads compute them if they have whole sums."""
        if len(self._runs(residual.shape[1])) == 1:
            return self._sums(residual, finish=_norms)
        return ((first, _norms(sums)) for first, sums in self._sums(residual))

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm Σ_n weight_n x_ni² x_nj² of every product."""
        self._expect(self.n_atoms, 8)
        norms = np.empty(self.n_columns)
        for first, sums in self._sums(weight[:, None], squared=True):
            norms[first : first + len(sums)] = sums[:, 0]
        return norms

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled products on the training rows, in Fortran order."""
        first, second = self._pairs(atoms)
        self._expect(len(first), self._n_rows * self.dtype.itemsize)
        out = np.empty((self._n_rows, len(first)), dtype=self.dtype, order="F")
        for some in row_blocks(len(first), self._tiles.together):
            pairs = np.stack([first[some], second[some]])
            features, where = np.unique(pairs, return_inverse=True)
            i, j = where.reshape(pairs.shape)
            for rows in row_blocks(self._n_rows, self._tiles.sums // (2 * self._tiles.together)):
                read = self._tile(rows, features) * self._factors[features]
                np.multiply(read[:, i], read[:, j], out=out[rows, some], casting="same_kind")
        return out

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factor of every product: the product of the factors of its features."""
        first, second = self._pairs(atoms)
        return self._factors[first] * self._factors[second]

    def atom(self, index: int) -> Product:
        """Return the record of atom ``index``."""
        first, second = self._pairs([index])
        return Product(int(first[0]), int(second[0]))

    def index(self, atom: Any) -> int:
        """Return the number of `Product` ``(i, j)``."""
        i, j = self._features(atom)
        if not 0 <= i < j < self._d:
            raise ValueError(
                f"the pool has no product ({i}, {j}); it has (i, j) for 0 <= i < j < {self._d}"
            )
        return int(self._starts[i]) + j - i - 1

    def matching(self, item: Any) -> np.ndarray:
        """Return the atom of a pair of features, in any order, or all atoms that read a feature."""
        if not isinstance(item, tuple):
            feature = feature_number(item, self._d)
            before = np.arange(feature, dtype=np.int64)
            after = np.arange(self._d - 1 - feature, dtype=np.int64)
            if len(after):
                after += self._starts[feature]
            return np.concatenate([self._starts[:feature] + feature - before - 1, after])
        return np.array([self.index(tuple(sorted(self._features(item))))], dtype=np.int64)

    def extract(self, atoms: Sequence[int]) -> ProductsMap:
        """Return the feature map of the atoms for new rows."""
        return ProductsMap(*self._pairs(atoms))

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every product: the sum of the costs of its two features."""
        self._expect(self.n_atoms, 8)
        costs = np.empty(self.n_atoms)
        for i, start in enumerate(self._starts):
            after = feature_costs[i + 1 :]
            np.add(after, feature_costs[i], out=costs[start : start + len(after)])
        return costs

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of products: those of as many new features."""
        new = np.ones(self._d)
        for features in self._pairs(chosen):
            new[features] = 0.0
        return self.costs(new).astype(np.int64)

    def _expect(self, n_products: int, each: int) -> None:
        """Warn if this many products, of ``each`` bytes, will not fit in memory."""
        warn_if_too_large(
            float(n_products) * each,
            f"writing down {n_products} products of two of {self._d} features",
            "use fewer features, or settings (rule, costs, max_atoms) that need fewer products",
        )

    def _features(self, atom: Any) -> tuple[int, int]:
        """Return the two features of a pair as Python integers."""
        if not (
            isinstance(atom, tuple)
            and len(atom) == 2
            and all(isinstance(f, (int, np.integer)) and not isinstance(f, bool) for f in atom)
        ):
            raise ValueError(f"{atom!r} is not a product; give Product(i, j) with i < j")
        return int(atom[0]), int(atom[1])

    def _pairs(self, atoms: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and second features of the atoms."""
        numbers = np.asarray(atoms, dtype=np.int64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_atoms):
            wrong = next(a for a in numbers if not 0 <= a < self.n_atoms)
            raise ValueError(f"the pool has no atom {wrong}; it has 0 to {self.n_atoms - 1}")
        first = np.searchsorted(self._starts, numbers, side="right") - 1
        return first, numbers - self._starts[first] + first + 1

    def _runs(self, k: int) -> list[slice]:
        """Return the runs of rows that are summed by different tasks."""
        few = self._tiles.tasks // max(1, sum(1 for _ in _pieces(self._d, k, self._tiles)))
        n = max(1, min(few, self._n_rows // self._tiles.least_rows))
        blocks = -(-self._n_rows // self._tiles.rows)
        return row_blocks(self._n_rows, -(-blocks // n) * self._tiles.rows)

    def _sums(
        self, residual: np.ndarray, squared: bool = False, finish: _Finish = np.asarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the `gradients` of the products or of their squares, or what is made of them."""
        outputs = np.ascontiguousarray(residual.T, dtype=self._summed)
        runs = self._runs(len(outputs))
        first, total = 0, np.empty(0)

        def compute(task: tuple[_Piece, slice]) -> np.ndarray:
            return finish(self._piece(*task, outputs, squared))

        tasks = ((piece, run) for piece in _pieces(self._d, len(outputs), self._tiles)
                 for run in runs)  # fmt: skip
        for number, part in enumerate(self._ahead(compute, tasks)):
            if number % len(runs) == 0:
                total = part
            else:
                total += part
            if number % len(runs) == len(runs) - 1:
                yield first, total
                first += len(total)

    def _ahead(
        self, compute: Callable[[Any], np.ndarray], tasks: Iterator[Any]
    ) -> Iterator[np.ndarray]:
        """Yield the results of the tasks, in order.

        The next batch is in the threads' queue while this one is consumed. So threads stay busy,
        and at most two batches are in memory.
        """
        ready: Iterator[np.ndarray] = iter(())
        while batch := list(islice(tasks, self._threads.n_jobs)):
            coming = self._threads.map(compute, batch)
            yield from ready
            ready = coming
        yield from ready

    def _piece(self, piece: _Piece, run: slice, outputs: np.ndarray, squared: bool) -> np.ndarray:
        """Return the sums of one piece over a run of rows, (pairs, k).

        One thread computes them. The shapes depend on the piece alone, and so do the sums.
        """
        start, stop, left, right = piece
        tall, wide, k = stop - start, right - left, len(outputs)
        step = wide if self._in_place and not squared else self._tiles.copied
        total = np.zeros((tall * k, wide))
        most = min(self._tiles.rows, run.stop - run.start)
        weighted = np.empty((tall, k, most), dtype=self._summed)
        for at in row_blocks(run.stop - run.start, self._tiles.rows):
            rows = slice(run.start + at.start, run.start + at.stop)
            # One product serves all outputs: (first features x outputs, rows) @ (rows, features).
            factor = self._tile(rows, slice(start, stop)).T * self._factors[start:stop, None]
            factor = (factor**2 if squared else factor).astype(self._summed)
            lhs = weighted[:, :, : rows.stop - rows.start]
            np.multiply(factor[:, None, :], outputs[:, rows], out=lhs)
            lhs = lhs.reshape(tall * k, -1)
            for some in row_blocks(wide, step):
                second = slice(left + some.start, left + some.stop)
                rhs = self._tile(rows, second).astype(self._summed, copy=False)
                if squared:
                    rhs = ((rhs * self._factors[second]) ** 2).astype(self._summed)
                total[:, some] += lhs @ rhs
        # Squares already have both factors, because X² without them could overflow.
        factors = np.ones(wide) if squared else self._factors[left:right]
        return _pairs_first(total.reshape(tall, k, wide), piece, factors)

    def _tile(self, rows: slice, columns: slice | np.ndarray) -> np.ndarray:
        """Return a part of X that BLAS can read. It is a view if possible."""
        tile = self._X[rows, columns]
        if sparse.issparse(tile):
            return np.asarray(tile.toarray())
        return tile if self._in_place else np.ascontiguousarray(tile)


def _norms(sums: np.ndarray) -> np.ndarray:
    """Return the l1 norms of sums of atoms. The sums are lost."""
    return np.asarray(np.abs(sums, out=sums).sum(axis=1))


def _pairs_first(total: np.ndarray, piece: _Piece, factors: np.ndarray) -> np.ndarray:
    """Turn (first features, k, second features) into (pairs of the triangle, k), times factors."""
    lengths = [piece.right - max(i + 1, piece.left) for i in range(piece.start, piece.stop)]
    sums = np.empty((sum(lengths), total.shape[1]))
    at = 0
    for of_first, length in zip(total, lengths, strict=True):
        out = sums[at : at + length]
        np.multiply(of_first[:, -length:].T, factors[-length:, None], out=out)
        at += length
    return sums

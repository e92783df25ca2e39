"""The contract of a pool: a set of atoms over the training rows, never written down whole.

A pool object (`Columns`, `Stumps`, `Products`, or your own) holds settings only. Its ``bind``
prepares once for the training rows and returns a `BoundPool`, which answers with sums over rows.
It does not know which booster asks, nor what the loss is.

Rows may come in parts: see `laconic.pools.parts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.numeric.threads import Threads
from laconic.pools.local_columns import LocalColumns


class Pool(Protocol):
    """Settings of a pool; ``bind`` makes it answer for the training rows."""

    def bind(self, X: Any, weight: np.ndarray, threads: Threads) -> BoundPool:
        """Prepare once for the training rows.

        ``weight`` has one positive number per row, summing to one.
        """


class Choice(NamedTuple):
    """What `BoundPool.best` found."""

    index: int  # type: ignore[assignment]
    """Number of the best atom, or -1 if none is admissible."""
    score: float
    """Its score."""
    steepest: float
    """Largest ‖∇_r L‖₁ over *all* columns of the pool, admissible or not; infinity where the pool
    cannot know it."""


def feature_number(item: Any, n_features: int) -> int:
    """An item of an include or exclude list as the number of an input feature."""
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise TypeError(f"expected an atom of the pool or the number of a feature, got {item!r}")
    if not 0 <= item < n_features:
        raise ValueError(f"feature {item} does not exist; X has {n_features} features")
    return int(item)


class BoundPool(ABC):
    """A pool over training rows, whose atoms are numbered 0 to ``n_atoms - 1``.

    Every column is scaled (see each pool); ``gradients`` and ``columns`` speak in scaled units and
    ``scales`` leads back to the units of the input. Unless the pool forms groups, atom r is
    column r.
    """

    n_atoms: int
    n_columns: int
    dtype: np.dtype[Any]
    binary = False
    """Whether every column holds zeros and ones only, and so can be kept eight to a byte."""
    signs = False
    """Whether every column holds -1 and 1 only."""
    local_atoms = False
    """Whether the atoms are wide and zero outside some rows: `local` then answers for all."""

    @abstractmethod
    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Column sums Xᵀ residual in blocks ``(first_column, sums)``, columns in order.

        ``residual`` is (n_rows, k); ``sums`` is (columns in the block, k) in float64.
        """

    @abstractmethod
    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Weighted squared norms Σ_i weight_i x_ir² of every column."""

    @abstractmethod
    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Scaled training columns of the atoms, (n_rows, total width), in ``dtype``."""

    def late(self) -> Any:
        """What only bound rows know and all parts must, for `settle`; ``None`` if nothing."""
        return None

    def settle(self, late: Sequence[Any]) -> None:
        """Hear what `late` said of every part, in the order of the rows."""
        raise TypeError(f"{type(self).__name__} has a late method, but no settle method")

    @abstractmethod
    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Factor of every column of the atoms: scaled column = factor times input column."""

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """What every column of the atoms has less than its factor times the input column."""
        return np.zeros(sum(self.width(atom) for atom in atoms))

    @abstractmethod
    def atom(self, index: int) -> Any:
        """The record of atom ``index``."""

    @abstractmethod
    def index(self, atom: Any) -> int:
        """The number of an atom record; a `ValueError` if the pool has no such atom."""

    @abstractmethod
    def matching(self, item: Any) -> np.ndarray:
        """Numbers of the atoms an item of an include or exclude list means.

        An item is an atom record or an input feature's number (every atom that reads it).
        """

    @abstractmethod
    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """The feature map of the atoms for new rows."""

    @abstractmethod
    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Cost of every atom: the sum of the costs of the input features it reads."""

    def operations(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Operations that each atom adds to a model of the atoms ``chosen``, for pools that count.

        Ranking by them is for pools whose atoms are computed; most read their features as they are.
        """
        raise ValueError(
            'costs="operations" needs a pool whose atoms differ in the operations they take, such '
            "as Patches; give one cost per feature otherwise"
        )

    def width(self, index: int) -> int:
        """Number of columns of atom ``index``."""
        return 1

    def local(self, index: int) -> LocalColumns:
        """Columns of an atom of a pool of `local_atoms`; rows keep them unwritten."""
        raise TypeError(f"the atoms of a {type(self).__name__} are not local")

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """l1 norms over the outputs of the column sums, in blocks like `gradients`."""
        for first, sums in self.gradients(residual):
            yield first, np.abs(sums).sum(axis=1)

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """From the scores of a block of columns to ``(first_atom, scores of its atoms)``."""
        return first, column_scores

    def best(
        self,
        residual: np.ndarray,
        forbidden: np.ndarray | None = None,
        normaliser: np.ndarray | None = None,
        costs: np.ndarray | None = None,
    ) -> Choice:
        """The atom of largest l1 gradient norm, ShareBoost eq. (7), ties to the lowest number.

        Parameters
        ----------
        residual : ndarray of shape (n_rows, k)
            Negative gradient of the loss in the scores, sample weights included.
        forbidden : ndarray of int, optional
            Atoms that must not be chosen.
        normaliser : ndarray of shape (n_columns,), optional
            Every column's l1 norm is divided by its entry.
        costs : ndarray of shape (n_atoms,), optional
            Rank by (score / 2)² / cost instead of score: for a single column in [-1, 1], the
            decrease of the loss that Lemma 2 guarantees, per cost.
        """
        return best_of(self, self.norms(residual), forbidden, normaliser, costs)


class Offer(NamedTuple):
    """A hypothesis that a weak learner offers."""

    hypothesis: Any
    column: np.ndarray
    """Its answers on the training rows, -1 or 1."""
    score: float
    """|Σ_i u_i y_i h(x_i)|."""


@runtime_checkable
class WeakLearner(Protocol):
    """A bound pool that cannot be written down: its atoms come into being as they are asked for."""

    def fitted(self, residual: np.ndarray) -> Offer | None:
        """The hypothesis for this residual; None if it is nothing new. The pool stays as it is."""

    def join(self, offer: Offer) -> int:
        """Take an offer into the pool; the number of the new atom."""


def best_of(
    pool: BoundPool,
    norms: Iterable[tuple[int, np.ndarray]],
    forbidden: np.ndarray | None,
    normaliser: np.ndarray | None,
    costs: np.ndarray | None,
) -> Choice:
    """What `BoundPool.best` answers, from the l1 norms of all columns, in blocks and in order."""

    def scored() -> Iterator[tuple[int, np.ndarray, float]]:
        for first, block in norms:
            divided = block if normaliser is None else block / normaliser[first:][: len(block)]
            yield first, divided, float(block.max(initial=0.0))

    return best_scored(pool, scored(), forbidden, costs)


def best_scored(
    pool: BoundPool,
    blocks: Iterable[tuple[int, np.ndarray, float]],
    forbidden: np.ndarray | None,
    costs: np.ndarray | None,
) -> Choice:
    """The atom of the largest score, by itself or for its cost.

    ``blocks`` are the first column, scores of columns and the largest gradient among them.
    """
    leader, steepest = Leader(forbidden, pool.dtype), 0.0
    for first, block, largest in blocks:
        steepest = max(steepest, largest)
        start, scores = pool.collect(first, block)
        value = scores
        if costs is not None:
            value = (scores / 2) ** 2 / costs[start : start + len(scores)]
        leader.see(start, scores, value)
    return Choice(leader.index, leader.score, steepest)


class Leader:
    """The best atom of the blocks of scores seen so far, ties to the lowest number."""

    def __init__(self, forbidden: np.ndarray | None, dtype: np.dtype[Any]) -> None:
        self.index, self.score = -1, -np.inf
        self._value = -1.0
        self._forbidden = np.sort(np.empty(0, dtype=np.int64) if forbidden is None else forbidden)
        self._rounding = 64.0 * np.finfo(dtype).eps

    def see(self, start: int, scores: np.ndarray, value: np.ndarray) -> None:
        """Scores of the atoms from number ``start`` on, and what they are ranked by."""
        low, high = np.searchsorted(self._forbidden, [start, start + len(scores)])
        if high > low:
            value = value.copy()
            value[self._forbidden[low:high] - start] = -np.inf
        if len(value) == 0:
            return
        # Equal columns may differ by rounding: what comes that close is a tie.
        top = int(np.argmax(value >= value.max() * (1.0 - self._rounding)))
        if value[top] > self._value * (1.0 + self._rounding):
            self.index, self._value = start + top, value[top]
            self.score = float(scores[top])

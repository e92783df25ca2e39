"""The contract of a pool: a set of atoms over the training rows, never written down as a whole.

A pool object (`Columns`, `Stumps`, `Products`, or your own) holds only settings. Its ``bind``
method prepares once for the training rows and returns a `BoundPool`. A bound pool answers with
sums over rows. It knows neither the booster that asks nor the loss.

Rows may come in parts. See `laconic.pools.parts`.
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
    """Settings of a pool, and a ``bind`` method that prepares it for the training rows."""

    def bind(self, X: Any, weight: np.ndarray, threads: Threads) -> BoundPool:
        """Prepare once for the training rows.

        ``weight`` has one positive number per row. They sum to one.
        """


class Choice(NamedTuple):
    """The answer of `BoundPool.best`."""

    index: int  # type: ignore[assignment]
    """Number of the best atom, or -1 if none is admissible."""
    score: float
    """Its score."""
    steepest: float
    """Largest ‖∇_r L‖₁ over *all* columns of the pool, admissible or not. It is infinite if the
    pool cannot know it."""


def feature_number(item: Any, n_features: int) -> int:
    """Return an item of an include or exclude list as the number of an input feature."""
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise TypeError(f"expected an atom of the pool or the number of a feature, got {item!r}")
    if not 0 <= item < n_features:
        raise ValueError(f"feature {item} does not exist; X has {n_features} features")
    return int(item)


class BoundPool(ABC):
    """A pool over training rows. Its atoms are numbered 0 to ``n_atoms - 1``.

    Every column is scaled (see each pool). ``gradients`` and ``columns`` answer in scaled units.
    ``scales`` has the factors that lead back to the units of the input. Unless the pool forms
    groups, atom r is column r.
    """

    n_atoms: int
    n_columns: int
    dtype: np.dtype[Any]
    loads_numba = False
    """Whether the pool loads Numba, besides those whose columns are bits or local."""
    binary = False
    """Whether every column holds only zeros and ones. Eight columns can then share a byte."""
    signs = False
    """Whether every column holds only -1 and 1."""
    local_atoms = False
    """Whether atoms have several columns that are zero outside some rows. `local` returns them. All
    local atoms have equally many columns. In a mix of pools, `is_local` says which atoms do."""

    @abstractmethod
    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the column sums Xᵀ residual in blocks ``(first_column, sums)``, columns in order.

        ``residual`` is (n_rows, k). ``sums`` is (columns in the block, k) in float64.
        """

    @abstractmethod
    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm Σ_i weight_i x_ir² of every column."""

    @abstractmethod
    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns of the atoms, (n_rows, total width), in ``dtype``."""

    def late(self) -> Any:
        """Return what this part must tell all parts once it is bound, or ``None``; see `settle`."""
        return None

    def settle(self, late: Sequence[Any]) -> None:
        """Receive the answers of `late` from all parts, in the order of the rows."""
        raise TypeError(f"{type(self).__name__} has a late method, but no settle method")

    @abstractmethod
    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factor of every column of the atoms: scaled column = factor · input column."""

    def shifts(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the shift of every column of the atoms: column = factor · input column − shift."""
        return np.zeros(sum(self.width(atom) for atom in atoms))

    @abstractmethod
    def atom(self, index: int) -> Any:
        """Return the record of atom ``index``."""

    @abstractmethod
    def index(self, atom: Any) -> int:
        """Return the number of an atom record. Raise a `ValueError` if it is not in the pool."""

    @abstractmethod
    def matching(self, item: Any) -> np.ndarray:
        """Return the numbers of the atoms that an item of an include or exclude list means.

        An item is an atom record, or the number of an input feature. A feature means every atom
        that reads it.
        """

    @abstractmethod
    def extract(self, atoms: Sequence[int]) -> FeatureMap:
        """Return the feature map of the atoms for new rows."""

    @abstractmethod
    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom: the sum of the costs of the input features it reads."""

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray | None:
        """Return a number for every atom: atoms that add the same to a model have the same number.

        The model has the atoms ``chosen``. Alike are atoms that add as many columns, features that
        are new to it, and other parts. The numbers are small, from 0. Budgets then measure one
        atom of each kind, and not all atoms. The default is None: no atoms are known to be alike.
        In a large pool, budgets then check an atom only when it is chosen, and each atom that is
        too large takes one more pass over the pool.
        """
        return None

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray | None:
        """Return how many operations each atom adds to a model of the atoms ``chosen``.

        With ``n_outputs`` scores, the weights of its columns count too. None, the default, means
        that atoms which are `alike` add the same, so that the feature map of one can tell.
        """
        return None

    def width(self, index: int) -> int:
        """Return the number of columns of atom ``index``."""
        return 1

    def is_local(self, index: int) -> bool:
        """Return whether atom ``index`` is local; see `local_atoms`."""
        return self.local_atoms

    def local(self, index: int) -> LocalColumns:
        """Return the columns of a local atom without writing them down; see `local_atoms`."""
        raise TypeError(f"the atoms of a {type(self).__name__} are not local")

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms over the outputs of the column sums, in blocks like `gradients`."""
        for first, sums in self.gradients(residual):
            yield first, np.abs(sums).sum(axis=1)

    def collect(self, first: int, column_scores: np.ndarray) -> tuple[int, np.ndarray]:
        """Turn the scores of a block of columns into ``(first_atom, scores of its atoms)``."""
        return first, column_scores

    def seams(self) -> list[int]:
        """Return the columns at which a block for `collect` must begin."""
        return [0]

    def best(
        self,
        residual: np.ndarray,
        forbidden: np.ndarray | None = None,
        normaliser: np.ndarray | None = None,
        costs: np.ndarray | None = None,
    ) -> Choice:
        """Return the atom of largest l1 gradient norm, ShareBoost eq. (7).

        Of equal atoms, the one with the lowest number is chosen.

        Parameters
        ----------
        residual : ndarray of shape (n_rows, k)
            Negative gradient of the loss in the scores, sample weights included.
        forbidden : ndarray of int, optional
            Atoms that must not be chosen.
        normaliser : ndarray of shape (n_columns,), optional
            The l1 norm of every column is divided by its entry.
        costs : ndarray of shape (n_atoms,), optional
            If given, rank by (score / 2)² / cost instead of the score. For a single column in
            [-1, 1], (score / 2)² is the decrease of the loss that Lemma 2 guarantees.
        """
        return best_of(self, self.norms(residual), forbidden, normaliser, costs)


class Offer(NamedTuple):
    """An atom that a pool does not have yet."""

    atom: Any
    """What the pool keeps of it."""
    score: float
    """Its score for the residual that it was found for."""
    column: np.ndarray | None = None
    """Its training column, if it was needed to find the atom."""


@runtime_checkable
class Joinable(Protocol):
    """A bound pool that atoms may join on the way."""

    def join(self, offer: Offer) -> int:
        """Add an offer to the pool, and return the number of the new atom."""


@runtime_checkable
class WeakLearner(Joinable, Protocol):
    """A bound pool that cannot be written down, because it makes each atom on request."""

    def fitted(self, residual: np.ndarray) -> Offer | None:
        """Return a hypothesis for this residual, or None if it is not new. The pool stays as is.

        Its column are the answers on the training rows, -1 or 1. Its score is |Σ_i u_i y_i h(x_i)|.
        """


def best_of(
    pool: BoundPool,
    norms: Iterable[tuple[int, np.ndarray]],
    forbidden: np.ndarray | None,
    normaliser: np.ndarray | None,
    costs: np.ndarray | None,
) -> Choice:
    """Return the answer of `BoundPool.best`, from l1 norms of all columns in ordered blocks."""

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
    """Return the atom of the largest score. With ``costs``, weigh the score against the cost.

    A block has the number of its first column, the scores of its columns, and the largest gradient
    among them.
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
    """The best atom of the blocks of scores seen so far. The lowest number wins a tie."""

    def __init__(self, forbidden: np.ndarray | None, dtype: np.dtype[Any]) -> None:
        self.index, self.score = -1, -np.inf
        self._value = -1.0
        self._forbidden = np.sort(np.empty(0, dtype=np.int64) if forbidden is None else forbidden)
        self._rounding = 64.0 * np.finfo(dtype).eps

    def see(self, start: int, scores: np.ndarray, value: np.ndarray) -> None:
        """Look at the scores of the atoms from ``start`` on, and at the values that rank them."""
        low, high = np.searchsorted(self._forbidden, [start, start + len(scores)])
        if high > low:
            value = value.copy()
            value[self._forbidden[low:high] - start] = -np.inf
        if len(value) == 0:
            return
        # The scores of equal columns may differ by rounding. Scores this close are a tie.
        top = int(np.argmax(value >= value.max() * (1.0 - self._rounding)))
        if value[top] > self._value * (1.0 + self._rounding):
            self.index, self._value = start + top, value[top]
            self.score = float(scores[top])

"""Rows in parts that atoms are tuned on.

The gradient of the objective in the parameters of atoms is a sum over rows (see
`laconic.tune.contract`), so each part answers with its sum, and the sums are added in a fixed tree.
A question carries the model and what the batch is drawn with. So a part that was lost and made
again answers the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.beyond.check import CheckedPart
from laconic.beyond.drawn import Drawn, DrawnBatches, held_numbers
from laconic.beyond.in_parts import Join, TrainingInParts
from laconic.beyond.scratch import is_mapped, on_disk
from laconic.boost.held_out import HeldOut
from laconic.boost.path import PathEntry
from laconic.losses import Loss
from laconic.model.feature_maps import FeatureMap
from laconic.numeric.parts import Here, Parts, Question
from laconic.numeric.threads import Threads
from laconic.pools.parts import Place, numbers_among_all
from laconic.rows.asked import RowsAsked
from laconic.rows.rows import Rows
from laconic.rows.tree import tree_sum
from laconic.tune.batches import Batch
from laconic.tune.contract import Tunable
from laconic.tune.descent import Frame, TunedModel, batch_sums
from laconic.tune.kinds import TunableKind
from laconic.tune.rows import scaled_columns
from laconic.tune.settings import Tuning

# Units of parameters come from at most so many rows at even distances, and so many numbers.
SEEN, ENTRIES, LEAST = 65_536, 1 << 25, 1024


class PartToTune(NamedTuple):
    """A part of the rows, and which of them are held out. The others are fitted."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray
    """The weights of all parts sum to one."""
    held: np.ndarray
    """Places of the rows that are held out, in order."""
    first: int
    """Number of its first fitted row among those of all parts."""

    @property
    def n_fitted(self) -> int:
        """Number of rows that are fitted."""
        return len(self.codes) - len(self.held)

    def places(self, fitted: np.ndarray) -> np.ndarray:
        """Return the places of fitted rows, which are given by their numbers among these."""
        return numbers_among_all(fitted, self.held)

    def taken(self, places: np.ndarray, total: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return some rows, their class codes, and their weights divided by ``total``."""
        return self.X[places], self.codes[places], self.weights(places, total)

    def weights(self, places: np.ndarray, total: float) -> np.ndarray:
        """Return weights divided by ``total``. If all are the same, they take no memory."""
        if self.weight.strides == (0,):
            return np.broadcast_to(self.weight[0] / total, len(places))
        divided: np.ndarray = self.weight[places] / total
        return divided


class JudgedParts:
    """Parts of the rows with those that are held out, before anything is tuned.

    Parameters
    ----------
    estimator : estimator
    training : TrainingInParts

    Attributes
    ----------
    numbers : ndarray
        Numbers of the rows that are held out, in order.
    """

    def __init__(self, estimator: Any, training: TrainingInParts) -> None:
        given = training.parts
        self._lengths = lengths = given.lengths or given.ask(_length)
        self._training = training.join, training.check_files
        ends = np.cumsum([0, *lengths]).tolist()
        places = [Place(first, ends[-1]) for first in ends[:-1]]
        self.numbers = held = held_numbers(estimator, given, places)
        cuts = np.searchsorted(held, ends)
        each = [
            (held[cuts[n] : cuts[n + 1]] - first, first - int(cuts[n]))
            for n, first in enumerate(ends[:-1])
        ]
        self._parts = given.become(_judged, (), each)
        n_held = np.diff(cuts).tolist()
        self._fitted = [n - held for n, held in zip(lengths, n_held, strict=True)]
        self._totals = tree_sum(self._parts.ask(_weights))

    def to_grow(self) -> TrainingInParts:
        """Return the rows that are fitted, to grow a path on."""
        return self._those_fitted().written_as_given()

    def rows(self, loss: Loss, threads: Threads) -> tuple[RowsInParts, RowsInParts, HeldInParts]:
        """Return all rows, those that are fitted, and those that are held out."""
        self._parts.threads = threads
        held = HeldInParts(self._parts, loss, self._totals[1])
        return self._every(), self._those_fitted(), held

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of all rows, also those that judge."""
        return self._every().written_as_given().fingerprint({**settings, "judged": True})

    def _every(self) -> RowsInParts:
        return RowsInParts(self._parts, *self._training, self._lengths, None)

    def _those_fitted(self) -> RowsInParts:
        return RowsInParts(self._parts, *self._training, self._fitted, self._totals[0])


class RowsInParts:
    """All rows, or those that are fitted; see `laconic.tune.rows.RowsToTune`.

    Parameters
    ----------
    parts : Parts
        Each part is a `PartToTune`.
    join : Join
    check_files : callable
        Refuses files that were changed.
    lengths : list of int
        Number of these rows in every part.
    total : float or None
        Sum of their weights. None means all rows.
    """

    def __init__(
        self,
        parts: Parts,
        join: Join,
        check_files: Callable[[], None],
        lengths: list[int],
        total: float | None,
    ) -> None:
        self._parts, self._join, self._check_files = parts, join, check_files
        self._lengths, self._total, self._n_rows = lengths, total, sum(lengths)

    def tunable(self, kind: TunableKind, given: FeatureMap, free: bool) -> Tunable:
        """Return the atoms of a map as functions of their parameters."""
        firsts = np.cumsum([0, *self._lengths])[:-1].tolist()
        places = [Place(first, self._n_rows) for first in firsts]
        seen = np.concatenate(self._parts.ask(_seen, (), places))
        threads = self._parts.threads if isinstance(self._parts, Here) else Threads(1)
        return kind.tunable(given, seen, threads, None, free)

    def batches(self, tuning: Tuning, seed: int) -> DrawnBatches:
        """Return the batches that a descent goes through."""
        size = tuning.rows_of_a_batch(self._n_rows, most=self._n_rows)
        return DrawnBatches(self._n_rows, size, seed)

    def of_epoch(self, batches: DrawnBatches, number: int) -> RowsInParts:
        """Return these rows: there are no copies."""
        return self

    def sums(
        self, atoms: Tunable, model: TunedModel, frame: Frame, batch: Drawn
    ) -> tuple[float, list[Any]]:
        """Return the sums over a batch; see `laconic.tune.descent.batch_sums`."""
        self._check_files()
        assert self._total is not None
        total = self._total * batch.size / self._n_rows
        answers = self._parts.ask(_sums, (atoms, model, frame, batch, total))
        value, slopes = tree_sum(answer for answer in answers if answer is not None)
        return value, slopes

    def written(self, made: FeatureMap, scales: np.ndarray) -> TrainingInParts:
        """Return the scaled columns of a map in the place of the inputs."""
        self._check_files()
        return self._with(_columns, made, scales)

    def written_as_given(self) -> TrainingInParts:
        """Return these rows as they were given."""
        return self._with(_these)

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows, and return their shards."""
        return self.written_as_given().rows(asked)

    def _with(self, make: Question, *shared: Any) -> TrainingInParts:
        """Return what ``make`` makes of each part that has any of these rows."""
        kept = [number for number, length in enumerate(self._lengths) if length]
        made = self._parts.chosen(kept).become(make, (*shared, self._total))
        made.lengths = [self._lengths[number] for number in kept]
        return TrainingInParts(made, self._join)


class HeldInParts:
    """Rows that are held out; see `laconic.tune.path.Held`.

    Parameters
    ----------
    parts : Parts
        Each part is a `PartToTune`.
    loss : Loss
    total : float
        Sum of their weights.
    """

    def __init__(self, parts: Parts, loss: Loss, total: float) -> None:
        self._parts, self._loss, self._total = parts, loss, total

    def loss(self, entry: PathEntry) -> float:
        """Return the loss of an entry's model on these rows."""
        answers = self._parts.ask(_held_loss, (entry, self._loss, self._total))
        return float(tree_sum(answer for answer in answers if answer is not None))


# -- questions to one part -------------------------------------------------------------------------


def _length(part: Any, threads: Threads) -> int:
    return len(part[-1])


def _judged(part: CheckedPart, threads: Threads, own: tuple[np.ndarray, int]) -> PartToTune:
    return PartToTune(*part, *own)


def _weights(part: PartToTune, threads: Threads) -> np.ndarray:
    """Return the sums of the weights of the rows that are fitted, and of those that are held."""
    held = part.weight[part.held].sum(dtype=np.float64)
    return np.array([part.weight.sum(dtype=np.float64) - held, held])


def _seen(part: PartToTune, threads: Threads, place: Place) -> np.ndarray:
    """Return the rows of a sample of all rows, as a dense array."""
    most = min(SEEN, max(LEAST, ENTRIES // max(part.X.shape[1], 1)))
    rows = part.X[part.places(place.sample(part.n_fitted, most))]
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _sums(
    part: PartToTune,
    threads: Threads,
    atoms: Tunable,
    model: TunedModel,
    frame: Frame,
    batch: Drawn,
    total: float,
) -> tuple[float, list[Any]] | None:
    """Return the sums over the rows that are in a batch, or None if there are none."""
    own = batch.among(part.first, part.n_fitted)
    if not len(own):
        return None
    rows = Batch(*part.taken(part.places(own), total))
    value, slopes = batch_sums(atoms, model, frame, rows)
    return float(value), slopes


def _these(part: PartToTune, threads: Threads, total: float | None) -> CheckedPart:
    """Return all rows, or those that are fitted. They go to a disk if the part is on one."""
    found = CheckedPart(part.X, part.codes, part.weight)
    if total is not None:
        found = CheckedPart(*part.taken(part.places(np.arange(part.n_fitted)), total))
    return found._replace(X=on_disk(found.X)) if is_mapped(part.X) else found


def _columns(
    part: PartToTune, threads: Threads, made: FeatureMap, scales: np.ndarray, total: float | None
) -> CheckedPart:
    """Return the columns of a map for all rows, or for those that are fitted."""
    found = _these(part._replace(X=scaled_columns(made, part.X, scales)), threads, total)
    return found._replace(X=on_disk(found.X)) if is_mapped(part.X) else found


def _held_loss(
    part: PartToTune, threads: Threads, entry: PathEntry, loss: Loss, total: float
) -> float | None:
    if not len(part.held):
        return None
    return HeldOut(*part.taken(part.held, total), loss, 1).loss(entry)

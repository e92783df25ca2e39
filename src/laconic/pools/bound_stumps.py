"""Stumps over training rows, with codes of every feature and sums by code."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laconic.model.atoms import STUMP_KINDS, Stump, StumpsMap
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.stump_limits import StumpLimits

if TYPE_CHECKING:
    from laconic.pools.codings import Coding

TOGETHER = 8  # neighbouring features that one worker reads or codes
# Least and most neighbouring features that one worker sums. With more of them, a worker reads the
# residual less often. With fewer, there are more pieces of work to share. There are so many that a
# pool has at least this number of pieces.
SUMMED, PIECES = (2, 8), 32
# Additions for each thread. With fewer, handing them out costs more than it saves.
SUMS_OF_THREAD = 1 << 18


class _Job(NamedTuple):
    """Sums that one worker computes, for whole features or for some codes of a sorted feature."""

    first: int
    """The first atom."""
    start: int
    stop: int
    """The slots are those from ``start`` to ``stop``."""
    codes: slice | None = None
    """The codes of a sorted feature, or None for whole features."""
    running: bool = False
    """Whether to add the last sums of the job before, for lower codes of the same feature."""


class BoundStumps(BoundPool):
    """Stumps over training rows; see `laconic.pools.Stumps`.

    Columns are 0 or 1 and are not scaled. A *slot* is a feature that has at least one stump.
    """

    binary = True

    def __init__(
        self,
        X: Any,
        codings: list[Coding],
        blocks: list[slice],
        threads: Threads,
        limits: StumpLimits,
    ) -> None:
        self.threads = threads
        self._limits = limits
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._feature = np.array([f for f, c in enumerate(codings) if c.n_atoms], dtype=np.int64)
        self._coding = [codings[f] for f in self._feature]
        self._offsets = np.cumsum([0, *(c.n_atoms for c in self._coding)])
        self._firsts: list[int] = self._offsets.tolist()
        self.n_atoms = self.n_columns = self._firsts[-1]
        self._known_jobs: dict[int, list[_Job]] = {}
        self._write_codes(X, blocks)

    def _write_codes(self, X: Any, blocks: list[slice]) -> None:
        """Code every slot that is not sorted. Slots of the same type share an array."""
        from laconic.pools import codings  # here, because it imports Numba

        rows = {0: 0, 8: 0, 16: 0}  # counts of slots by the bits of a code (0 if sorted)
        self._place: list[tuple[int, int]] = []
        for coding in self._coding:
            bits = 0 if coding.order is not None else 8 if coding.n_codes <= 256 else 16
            self._place.append((bits, rows[bits]))
            rows[bits] += 1
        warn_if_too_large(
            float(self.n_rows) * (rows[8] + 2 * rows[16]),
            f"coding {rows[8] + rows[16]} features of {self.n_rows} rows for a pool of stumps",
            "use fewer features, use pool='columns', which keeps sparse rows sparse, or fit a "
            "sample of the rows",
        )
        self._codes = {b: np.empty((rows[b], self.n_rows), dtype=f"uint{b}") for b in (8, 16)}
        todo = []
        for block in blocks:
            low, high = np.searchsorted(self._feature, [block.start, block.stop])
            how = [
                (self._feature[s] - block.start, self._coding[s], self._coded(s, s + 1)[0])
                for s in range(low, high)
                if self._place[s][0]
            ]
            todo += [(run, block, how) for run in codings.runs_of_rows(X)]
        read = self._limits.read
        list(self.threads.map(lambda job: codings.write_codes(X, *job, read), todo))

    def _coded(self, start: int, stop: int) -> np.ndarray:
        """Return the codes of consecutive slots of one type."""
        bits, row = self._place[start]
        return self._codes[bits][row : row + stop - start]

    def _jobs(self, k: int) -> list[_Job]:
        """Cut the sums into jobs. The cuts depend on shapes alone."""
        if k not in self._known_jobs:
            self._known_jobs[k] = self._cut(k)
        return self._known_jobs[k]

    def _cut(self, k: int) -> list[_Job]:
        jobs: list[_Job] = []
        least, most = SUMMED
        together = min(max(len(self._coding) // PIECES // least * least, least), most)
        for slot, coding in enumerate(self._coding):
            first, n = int(self._offsets[slot]), len(coding.values)
            bits = self._place[slot][0]
            if coding.order is not None:
                for part in row_blocks(n, max(1, self._limits.block // k)):
                    running = part.start > 0 and not coding.categorical
                    jobs.append(_Job(first + part.start, slot, slot + 1, part, running))
                if coding.missing:
                    last = slice(coding.n_codes - 1, coding.n_codes)
                    jobs.append(_Job(first + n, slot, slot + 1, last))
            elif (
                jobs
                and self._place[jobs[-1].start][0] == bits
                and slot - jobs[-1].start < (together if bits == 8 else least)
            ):
                jobs[-1] = jobs[-1]._replace(stop=slot + 1)
            else:
                jobs.append(_Job(first, slot, slot + 1))
        return jobs

    def _sums(self, job: _Job, residual: np.ndarray) -> np.ndarray:
        from laconic.pools import histograms  # here, because it imports Numba

        codings = self._coding[job.start : job.stop]
        if job.codes is not None:
            [coding] = codings
            assert coding.starts is not None
            starts = coding.starts[job.codes.start : job.codes.stop + 1]
            sums = np.empty((len(starts) - 1, residual.shape[1]))
            histograms.accumulate_sorted(
                coding.order, starts, residual, not coding.categorical, sums
            )
            return sums
        bases = np.cumsum([0, *(c.n_codes for c in codings)])
        by_code = histograms.accumulate(self._coded(job.start, job.stop), bases, residual)
        out = np.empty((self._offsets[job.stop] - job.first, residual.shape[1]))
        at = 0
        for coding, first, last in zip(codings, bases, bases[1:], strict=False):
            coding.sums(by_code[first:last], out[at : at + coding.n_atoms])
            at += coding.n_atoms
        return out

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the residual sums of every stump, a few features at a time.

        See `BoundPool.gradients`. There is one pass over the codes of a feature. It takes O(rows)
        for any number of thresholds, which is the trick of ShareBoost section 3.1. Workers share
        the features, never the rows of a feature.
        """
        dtype = residual.dtype if residual.dtype in (np.float32, np.float64) else np.float64
        residual = np.require(residual, dtype, ["C", "W"])  # one kernel for each dtype
        jobs = self._jobs(residual.shape[1])
        sizes = np.array([*(job.first for job in jobs), self.n_atoms]) * residual.shape[1]
        worth = max(1, residual.size * len(self._coding) // SUMS_OF_THREAD)
        start, carry = 0, np.zeros(residual.shape[1])
        while start < len(jobs):
            # Jobs are given out in waves. Otherwise workers would run ahead until every sum of the
            # pool is waiting.
            stop = int(np.searchsorted(sizes, sizes[start] + self._limits.wave, side="right")) - 1
            wave = jobs[start : max(stop, start + self.threads.n_jobs)]
            start += len(wave)
            answers = self.threads.map(lambda job: self._sums(job, residual), wave, most=worth)
            for job, sums in zip(wave, answers, strict=True):
                if job.running:
                    sums += carry
                carry = sums[-1].copy()
                yield job.first, sums

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norms. Columns are 0 or 1, so these are sums of weights."""
        out = np.empty(self.n_atoms)
        for first, sums in self.gradients(np.asarray(weight)[:, None]):
            out[first : first + len(sums)] = sums[:, 0]
        return out

    def _find(self, index: int) -> tuple[int, int]:
        """Return the slot of an atom, and its place among the slot's stumps."""
        if not 0 <= index < self.n_atoms:
            raise IndexError(f"atom {index} is not in this pool of {self.n_atoms} atoms")
        slot = bisect_right(self._firsts, index) - 1
        return slot, int(index) - self._firsts[slot]

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the training columns of the atoms, 0 or 1, (n_rows, len(atoms)), Fortran order."""
        out = np.zeros((self.n_rows, len(atoms)), dtype=self.dtype, order="F")
        for c, index in enumerate(atoms):
            slot, j = self._find(index)
            coding = self._coding[slot]
            kind, _, code = coding.question(j)
            if coding.order is not None and coding.starts is not None:
                start = 0 if kind == "le" else coding.starts[code]
                out[coding.order[start : coding.starts[code + 1]], c] = 1
            else:
                codes = self._coded(slot, slot + 1)[0]
                out[:, c] = codes <= code if kind == "le" else codes == code
        return out

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return ones, because stumps are not scaled."""
        return np.ones(len(atoms))

    def atom(self, index: int) -> Stump:
        """Return the record of atom ``index``."""
        slot, j = self._find(index)
        kind, value, _ = self._coding[slot].question(j)
        return Stump(int(self._feature[slot]), value, kind)

    def index(self, atom: Stump) -> int:
        """Return the number of a stump. The value of a ``"missing"`` stump does not matter."""
        if not isinstance(atom, Stump) or atom.kind not in STUMP_KINDS:
            raise ValueError(f"expected a stump of kind {', '.join(STUMP_KINDS)}, not {atom!r}")
        slot = int(np.searchsorted(self._feature, atom.feature))
        if slot == len(self._feature) or self._feature[slot] != atom.feature:
            raise ValueError(
                f"feature {atom.feature} has no stumps: it is constant or does not exist"
            )
        coding = self._coding[slot]
        j = len(coding.values)
        if atom.kind != "missing":
            j = int(np.searchsorted(coding.values, atom.value))
        if j < coding.n_atoms:
            kind, value, _ = coding.question(j)
            if kind == atom.kind and (kind == "missing" or value == atom.value):
                return int(self._offsets[slot]) + j
        raise ValueError(
            f"this pool does not have the stump {atom!r}; `matching({atom.feature})` lists the "
            "numbers of this feature's stumps, and `atom` shows each"
        )

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of a stump, or the numbers of all stumps of an input feature."""
        if isinstance(item, Stump):
            return np.array([self.index(item)], dtype=np.int64)
        feature = feature_number(item, self.n_features)
        low, high = np.searchsorted(self._feature, [feature, feature + 1])
        return np.arange(self._offsets[low], self._offsets[high], dtype=np.int64)

    def extract(self, atoms: Sequence[int]) -> StumpsMap:
        """Return the stumps as a feature map for new rows."""
        chosen = [self.atom(index) for index in atoms]
        return StumpsMap(
            np.array([a.feature for a in chosen], dtype=np.int64),
            np.array([a.value for a in chosen], dtype=np.float64),
            np.array([STUMP_KINDS.index(a.kind) for a in chosen], dtype=np.uint8),
        )

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of stumps: those that ask alike, about a new or about a known feature."""
        new = np.ones(len(self._feature), dtype=np.int64)
        new[[self._find(index)[0] for index in chosen]] = 0
        of_slot = 3 * new
        for slot, coding in enumerate(self._coding):
            of_slot[slot] += STUMP_KINDS.index("eq" if coding.categorical else "le")
        kinds = np.repeat(of_slot, np.diff(self._offsets))
        missing = [slot for slot, coding in enumerate(self._coding) if coding.missing]
        last = self._offsets[1:][missing] - 1
        kinds[last] += STUMP_KINDS.index("missing") - kinds[last] % 3
        return kinds

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every stump, which is the cost of its feature."""
        return np.repeat(np.asarray(feature_costs)[self._feature], np.diff(self._offsets))

"""Search for the rule, a conjunction of up to three conditions, with the most evidence.

* One condition: every condition on every column is tried.
* Two conditions: every pair is tried, if pairs of columns times rows are at most ``CELLS``. In a
  larger table a sample of the rows picks ``FEWEST`` or more pairs of columns, and these are tried
  on all rows.
* Three conditions: a beam. The ``BEAM`` best pairs of columns (fewer from 63 columns on) are
  extended by every condition on every other column.

The best few rules are then polished: each condition in turn is replaced by the best one on its
column, with finer cuts of numbers, while the others stay.
"""

from __future__ import annotations

from itertools import combinations
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from laconic.numeric.threads import Threads
from laconic.report.bins import COARSE, FINE, Binned, in_bins
from laconic.report.columns import TableColumn
from laconic.report.conditions import Condition, ErrorRule
from laconic.report.scan import Candidate

# Largest share of the rows that a rule may hold.
MOST = 0.5
# Most rows times pairs of columns that are counted, fewest rows of a sample, and pairs of columns
# that are kept after a sample (at least this many, and eight for each column).
CELLS, SAMPLE, FEWEST = 1_000_000_000, 4000, 500
# Most rules of two conditions that are extended, most extensions by a column, and rules that are
# polished.
BEAM, EXTENDED, POLISHED = 64, 4000, 12
# Most times that a rule is polished.
SWEEPS = 8
# Pairs of columns that one thread takes at a time.
TOGETHER = 256


class BinRange(NamedTuple):
    """One condition during the search: a column, and the first and last of its bins."""

    column: int
    first: int
    last: int


class FoundRule(NamedTuple):
    """A rule during the search."""

    parts: tuple[BinRange, ...]
    evidence: float


class RuleSearch:
    """The search for rules among the columns of some rows.

    Parameters
    ----------
    columns : list of TableColumn
        Columns of the whole table.
    rows : ndarray of int
        Rows to search. The order of the rows may not depend on that of the table.
    least : int
        Smallest number of rows in a rule.
    threads : Threads
        Their number does not change the result.
    """

    def __init__(
        self, columns: list[TableColumn], rows: np.ndarray, least: int, threads: Threads
    ) -> None:
        self.columns, self.rows, self.least = columns, rows, least
        self.threads = threads
        used = [i for i, column in enumerate(columns) if not column.left_out]
        coarse = {i: in_bins(columns[i], rows, COARSE) for i in used}
        self.coarse = {i: binned for i, binned in coarse.items() if len(binned.ranges)}
        self.fine: dict[int, Binned] = {}
        self.conditions = sum(len(binned.ranges) for binned in self.coarse.values())
        self.pairs: list[tuple[int, int]] | None = None

    def price(self, parts: int) -> float:
        """Return the logarithm of the number of rules of so many conditions."""
        return parts * log(max(self.conditions, 2)) - lgamma(parts + 1)

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the rule with the most evidence beyond its price, among the rows left."""
        scan = _Scan(self, np.flatnonzero(alive), gain)
        if not scan.possible:
            return None
        ones = scan.ones()
        twos = scan.twos(self._pairs(scan))
        width = min(BEAM, max(EXTENDED // len(self.coarse), 1))
        beam = sorted(twos, key=lambda found: -found.evidence)[:width]
        threes = [three for two in beam for three in scan.extended(two)]
        every = sorted([*ones, *twos, *threes], key=lambda found: -scan.worth(found))
        polished = [scan.polished(found) for found in every[:POLISHED]]
        if not polished:
            return None
        top = max(polished, key=scan.worth)
        inside = np.flatnonzero(alive)[scan.inside(top.parts, fine=True)]
        rule = ErrorRule(tuple(self.condition(part) for part in top.parts))
        return Candidate(rule, inside, top.evidence, self.price(len(top.parts)))

    def _pairs(self, scan: _Scan) -> list[tuple[int, int]]:
        """Return the pairs of columns to try on all rows."""
        if self.pairs is None:
            every = list(combinations(self.coarse, 2))
            self.pairs = every
            if len(every) * len(scan.rows) > CELLS:
                few = max(CELLS // len(every), SAMPLE)
                sample = scan.first(few)
                best = sorted(sample.twos(every), key=lambda found: -found.evidence)
                kept = best[: max(FEWEST, 8 * len(self.coarse))]
                self.pairs = [(f.parts[0].column, f.parts[1].column) for f in kept]
        return self.pairs

    def binned(self, column: int, fine: bool) -> Binned:
        """Return a column in coarse or fine bins."""
        if not fine:
            return self.coarse[column]
        if column not in self.fine:
            self.fine[column] = in_bins(self.columns[column], self.rows, FINE)
        return self.fine[column]

    def condition(self, part: BinRange) -> Condition:
        """Return a condition of fine bins as users see it."""
        column, binned = self.columns[part.column], self.binned(part.column, True)
        if part.first == binned.size - 1:
            return Condition(column)
        if column.names is not None:
            return Condition(column, category=part.first)
        low = float(binned.cuts[part.first - 1]) if part.first > 0 else None
        high = float(binned.cuts[part.last]) if part.last < len(binned.cuts) else None
        if low is None and high is None:  # all numbers: only missing values are outside
            low = float(np.nextafter(column.known.min(), -np.inf))
        return Condition(column, low=low, high=high)


class _Scan:
    """One round of the search: the rows that are left, and their errors."""

    def __init__(self, search: RuleSearch, rows: np.ndarray, gain: np.ndarray) -> None:
        self.search, self.rows, self.given = search, rows, gain
        self.gain = gain[rows]
        self.least = search.least
        self.codes: dict[tuple[int, bool], np.ndarray] = {}

    @property
    def possible(self) -> bool:
        """Whether a rule can have rows enough."""
        return bool(self.search.coarse) and self.least <= MOST * len(self.rows)

    def first(self, few: int) -> _Scan:
        """Return a scan of the first rows only. Their order is random."""
        sample = _Scan(self.search, self.rows[:few], self.given)
        sample.least = max(self.least * len(sample.rows) // len(self.rows), 3)
        return sample

    def worth(self, found: FoundRule) -> float:
        """Return the evidence beyond the price."""
        return found.evidence - self.search.price(len(found.parts))

    def code(self, column: int, fine: bool) -> np.ndarray:
        """Return the bins of a column in these rows."""
        if (column, fine) not in self.codes:
            self.codes[column, fine] = self.search.binned(column, fine).codes[self.rows]
        return self.codes[column, fine]

    def inside(self, parts: tuple[BinRange, ...], fine: bool) -> np.ndarray:
        """Return the numbers, among these rows, of the rows that meet all conditions."""
        met = np.ones(len(self.rows), dtype=bool)
        for column, first, last in parts:
            code = self.code(column, fine)
            met &= (code >= first) & (code <= last)
        return np.flatnonzero(met)

    def ones(self) -> list[FoundRule]:
        """Return the best condition of every column."""
        every = np.arange(len(self.rows))
        tried = [self.joined((), column, every, False) for column in self.search.coarse]
        return [found for found in tried if found is not None]

    def twos(self, pairs: list[tuple[int, int]]) -> list[FoundRule]:
        """Return the best two conditions of every pair of columns."""
        for column in self.search.coarse:  # before threads ask for them
            self.code(column, False)
        blocks = [pairs[start : start + TOGETHER] for start in range(0, len(pairs), TOGETHER)]
        found = self.search.threads.map(self._some_twos, blocks)
        return [two for block in found for two in block]

    def _some_twos(self, pairs: list[tuple[int, int]]) -> list[FoundRule]:
        out = []
        for a, b in pairs:
            binned = self.search.binned(a, False), self.search.binned(b, False)
            best = self._kernel(self.code(a, False), self.code(b, False), *binned, None)
            if best is not None:
                evidence, first, second = best
                out.append(FoundRule((BinRange(a, *first), BinRange(b, *second)), evidence))
        return out

    def extended(self, found: FoundRule) -> list[FoundRule]:
        """Return the rule with the best further condition on every other column."""
        inside = self.inside(found.parts, False)
        taken = {part.column for part in found.parts}
        others = [column for column in self.search.coarse if column not in taken]
        tried = [self.joined(found.parts, column, inside, False) for column in others]
        return [three for three in tried if three is not None]

    def joined(
        self, parts: tuple[BinRange, ...], column: int, inside: np.ndarray, fine: bool
    ) -> FoundRule | None:
        """Return the rule ``parts``, which holds ``inside``, with one more condition."""
        whole = len(inside) == len(self.rows)
        code = self.code(column, fine) if whole else self.code(column, fine)[inside]
        alone = Binned(np.zeros(len(code), np.uint8), np.zeros((1, 2), np.int64), np.empty(0), 1)
        binned = self.search.binned(column, fine)
        best = self._kernel(code, alone.codes, binned, alone, None if whole else inside)
        if best is None:
            return None
        evidence, (first, last), _ = best
        return FoundRule((*parts, BinRange(column, first, last)), evidence)

    def polished(self, found: FoundRule) -> FoundRule:
        """Improve one condition at a time until nothing is better; drop those that do not pay."""
        parts = tuple(self._fine(part) for part in found.parts)
        best = FoundRule(parts, self._evidence(parts))
        for _ in range(SWEEPS):
            before = best
            for place in range(len(best.parts)):
                if place >= len(best.parts):
                    break
                others = best.parts[:place] + best.parts[place + 1 :]
                inside = self.inside(others, True)
                other = self.joined(others, best.parts[place].column, inside, True)
                if other is not None and other.evidence > best.evidence + 1e-9:
                    moved = (*other.parts[:place], other.parts[-1], *other.parts[place:-1])
                    best = FoundRule(moved, other.evidence)
                if others:
                    fewer = FoundRule(others, self._evidence(others))
                    best = fewer if self.worth(fewer) > self.worth(best) else best
            if best == before:
                break
        return best

    def _fine(self, part: BinRange) -> BinRange:
        """Return the fine bins that a range of coarse bins holds."""
        coarse, fine = (self.search.binned(part.column, f) for f in (False, True))
        code = self.code(part.column, False)
        held = (code >= part.first) & (code <= part.last)
        if part.first == coarse.size - 1:
            return BinRange(part.column, fine.size - 1, fine.size - 1)
        inside = self.code(part.column, True)[held]
        return BinRange(part.column, int(inside.min()), int(inside.max()))

    def _evidence(self, parts: tuple[BinRange, ...]) -> float:
        inside = self.inside(parts, True)
        if not self.least <= len(inside) <= MOST * len(self.rows):
            return -np.inf
        return float(self.gain[inside].sum(axis=0).max())

    def _kernel(
        self, a: np.ndarray, b: np.ndarray, of_a: Binned, of_b: Binned, inside: np.ndarray | None
    ) -> tuple[float, tuple[int, int], tuple[int, int]] | None:
        """Return the best ranges of two columns in some rows: the evidence, and two ranges."""
        from laconic.report.rule_kernels import best_ranges

        gain = self.gain if inside is None else self.gain[inside]
        width = gain.shape[1] + 1
        out = np.zeros(3)
        limits = np.array([self.least, MOST * len(self.rows)])
        line = np.empty((of_b.size + 1, width))
        sums = np.empty((of_a.size + 1, *line.shape))
        ranges = of_a.ranges, of_b.ranges
        best_ranges(a, b, gain, *ranges, sums, line, limits, out)
        if not out[0] > 0:
            return None
        first, second = ranges[0][int(out[1])], ranges[1][int(out[2])]
        return float(out[0]), (int(first[0]), int(first[1])), (int(second[0]), int(second[1]))

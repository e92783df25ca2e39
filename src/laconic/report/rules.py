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

from laconic.numeric.threads import Threads, row_blocks
from laconic.report.bins import COARSE, FINE, Bins, in_bins
from laconic.report.columns import TableColumn
from laconic.report.conditions import ErrorRule, RuleCondition
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
TOGETHER = 128


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
        self.rows, self.least, self.threads = rows, least, threads
        binned = [(c, in_bins(c, rows, COARSE)) for c in columns if not c.left_out]
        self.columns = [column for column, bins in binned if len(bins.ranges)]
        self.coarse = Bins.of([bins for _, bins in binned if len(bins.ranges)])
        self.fine: dict[int, Bins] = {}
        self.conditions = len(self.coarse.ranges)
        self.pairs: np.ndarray | None = None

    def price(self, parts: int) -> float:
        """Return the logarithm of the number of rules of so many conditions."""
        return parts * log(max(self.conditions, 2)) - lgamma(parts + 1)

    def best(self, alive: np.ndarray, gain: np.ndarray) -> Candidate | None:
        """Return the rule with the most evidence beyond its price, among the rows left."""
        if not self.columns or self.least > MOST * int(alive.sum()):
            return None
        scan = _Scan(self, np.flatnonzero(alive), gain)
        ones = scan.joined(())
        twos = scan.twos(self._pairs(scan, ones), ones)
        width = min(BEAM, max(EXTENDED // len(self.columns), 1))
        beam = sorted(twos, key=lambda found: -found.evidence)[:width]
        threes = [three for some in self.threads.map(scan.extended, beam) for three in some]
        every = sorted([*ones, *twos, *threes], key=lambda found: -scan.worth(found))
        polished = [scan.polished(found) for found in every[:POLISHED]]
        if not polished:
            return None
        top = max(polished, key=scan.worth)
        inside = np.flatnonzero(alive)[scan.inside(top.parts, fine=True)]
        rule = ErrorRule(tuple(self.condition(part) for part in top.parts))
        return Candidate(rule, inside, top.evidence, self.price(len(top.parts)))

    def _pairs(self, scan: _Scan, ones: list[FoundRule]) -> np.ndarray:
        """Return the pairs of columns to try on all rows."""
        if self.pairs is None:
            every = np.array(list(combinations(range(len(self.columns)), 2))).reshape(-1, 2)
            self.pairs = every
            if len(every) * len(scan.rows) > CELLS:
                sample = scan.first(max(CELLS // len(every), SAMPLE))
                found = sample.twos(every, sample.joined(()))
                best = sorted(found, key=lambda found: -found.evidence)
                kept = best[: max(FEWEST, 8 * len(self.columns))]
                self.pairs = np.array([[p.column for p in f.parts] for f in kept]).reshape(-1, 2)
        return self.pairs

    def binned(self, column: int, fine: bool) -> Bins:
        """Return a column in coarse or fine bins."""
        if not fine:
            return self.coarse.only(column)
        if column not in self.fine:
            self.fine[column] = Bins.of([in_bins(self.columns[column], self.rows, FINE)])
        return self.fine[column]

    def condition(self, part: BinRange) -> RuleCondition:
        """Return a condition of fine bins as users see it."""
        column, binned = self.columns[part.column], self.binned(part.column, True)
        cuts = binned.cuts[0]
        if part.first == binned.sizes[0] - 1:
            return RuleCondition(column)
        if column.names is not None:
            return RuleCondition(column, category=part.first)
        low = float(cuts[part.first - 1]) if part.first > 0 else None
        high = float(cuts[part.last]) if part.last < len(cuts) else None
        if low is None and high is None:  # all numbers: only missing values are outside
            low = -np.inf
        return RuleCondition(column, low=low, high=high)


class _Scan:
    """One round of the search: the rows that are left, and their errors."""

    def __init__(self, search: RuleSearch, rows: np.ndarray, gain: np.ndarray) -> None:
        self.search, self.rows, self.given = search, rows, gain
        self.gain = np.ascontiguousarray(gain[rows])
        self.least = search.least
        self.coarse = search.coarse.codes[:, rows]
        self.fine: dict[int, np.ndarray] = {}

    @property
    def limits(self) -> np.ndarray:
        """Smallest and largest number of rows of a rule."""
        return np.array([self.least, MOST * len(self.rows)])

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
        if not fine:
            return self.coarse[column]
        if column not in self.fine:
            self.fine[column] = self.search.binned(column, True).codes[0][self.rows]
        return self.fine[column]

    def inside(self, parts: tuple[BinRange, ...], fine: bool) -> np.ndarray:
        """Return the numbers, among these rows, of the rows that meet all conditions."""
        met = np.ones(len(self.rows), dtype=bool)
        for column, first, last in parts:
            code = self.code(column, fine)
            met &= (code >= first) & (code <= last)
        return np.flatnonzero(met)

    def joined(self, parts: tuple[BinRange, ...], fine: int | None = None) -> list[FoundRule]:
        """Return the rule ``parts`` with the best further condition on every column.

        With ``fine``, the parts are in fine bins, and only this column is tried, in fine bins.
        """
        from laconic.report.rule_kernels import best_joined

        bins = self.search.coarse if fine is None else self.search.binned(fine, True)
        codes = self.coarse if fine is None else self.code(fine, True)[None]
        out = np.empty((len(codes), 2))
        sums = np.empty((bins.sizes.max(initial=0) + 1, self.gain.shape[1] + 1))
        rows = self.inside(parts, fine is not None)
        best_joined(codes, rows, self.gain, bins.ranges, bins.starts, sums, self.limits, out)
        columns = range(len(codes)) if fine is None else (fine,)
        return [
            FoundRule((*parts, BinRange(column, *bins.ranges[int(which)].tolist())), evidence)
            for column, (evidence, which) in zip(columns, out.tolist(), strict=True)
            if evidence > 0
        ]

    def twos(self, pairs: np.ndarray, ones: list[FoundRule]) -> list[FoundRule]:
        """Return the best two conditions of every pair of columns.

        Pairs that are no better than the rules ``ones`` on either column are left out.
        """
        from laconic.report.rule_kernels import best_pairs

        bins, width = self.search.coarse, self.gain.shape[1] + 1
        alone = np.zeros(len(bins.sizes))
        for found in ones:
            alone[found.parts[0].column] = found.evidence
        most = bins.sizes.max(initial=0) + 1

        def some(block: slice) -> np.ndarray:
            out = np.empty((len(pairs[block]), 3))
            best_pairs(
                self.coarse, pairs[block], self.gain, bins.ranges, bins.starts, bins.sizes, alone,
                np.empty((most, most, width)), np.empty((most, width)), self.limits, out,
            )  # fmt: skip
            return out

        blocks = row_blocks(len(pairs), TOGETHER)
        out = np.vstack([np.empty((0, 3)), *self.search.threads.map(some, blocks)])
        return [
            FoundRule(tuple(BinRange(column, *bins.ranges[int(which)].tolist())
                            for column, which in zip(pair, out[k, 1:], strict=True)), out[k, 0])
            for k, pair in enumerate(pairs.tolist()) if out[k, 0] > 0
        ]  # fmt: skip

    def extended(self, found: FoundRule) -> list[FoundRule]:
        """Return the rule with the best further condition on every other column."""
        taken = {part.column for part in found.parts}
        return [three for three in self.joined(found.parts) if three.parts[-1].column not in taken]

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
                for other in self.joined(others, best.parts[place].column):
                    if other.evidence > best.evidence + 1e-9:
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
        if part.first == coarse.sizes[0] - 1:
            return BinRange(part.column, int(fine.sizes[0]) - 1, int(fine.sizes[0]) - 1)
        inside = self.code(part.column, True)[held]
        return BinRange(part.column, int(inside.min()), int(inside.max()))

    def _evidence(self, parts: tuple[BinRange, ...]) -> float:
        inside = self.inside(parts, True)
        if not self.least <= len(inside) <= MOST * len(self.rows):
            return -np.inf
        return float(self.gain[inside].sum(axis=0).max())

"""Rules over training rows. Sums by pairs of codes give the sums of all rules on two features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.model.rules import Condition, RuleAtom, RulesMap
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number
from laconic.pools.stump_limits import StumpLimits

if TYPE_CHECKING:
    from laconic.pools.feature_conditions import FeatureConditions

TOGETHER = 8  # pairs of features that are summed in one pass over the rows


class BoundRules(BoundPool):
    """Rules over training rows; see `laconic.pools.Rules`.

    Columns are 0 or 1 and are not scaled. A *slot* is a feature that has at least one condition.
    Conditions are numbered slot by slot.
    """

    binary = True

    def __init__(
        self,
        X: Any,
        conditions: list[FeatureConditions],
        blocks: list[slice],
        threads: Threads,
        limits: StumpLimits,
    ) -> None:
        from laconic.pools import codings  # here, because it imports Numba

        self._threads, self._limits = threads, limits
        self._n_rows, self._n_features = X.shape
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self._feature = np.array([f for f, own in enumerate(conditions) if own.kinds], np.int64)
        self._slots = slots = [conditions[f] for f in self._feature]
        # The conditions of slot s are those from _of_slot[s] to _of_slot[s + 1] - 1.
        self._of_slot = np.cumsum([0, *(len(own.kinds) for own in slots)])
        counts = np.diff(self._of_slot)
        self._slot = np.repeat(np.arange(len(slots)), counts)
        # Second conditions of a rule are about later slots. _later has the first of them.
        self._later = self._of_slot[1:][self._slot]
        self._starts = np.cumsum([0, *(self._of_slot[-1] - self._later)])
        self.n_atoms = self.n_columns = int(self._starts[-1])
        warn_if_too_large(
            float(self._n_rows) * len(slots),
            f"coding {len(slots)} features of {self._n_rows} rows for a pool of rules",
            "use fewer features, or fit a sample of the rows",
        )
        self._codes = np.empty((len(slots), self._n_rows), dtype=np.uint8)
        todo = []
        for block in blocks:
            low, high = np.searchsorted(self._feature, [block.start, block.stop])
            places = self._feature[low:high] - block.start
            own = [(p, slots[s].coding, self._codes[s]) for s, p in enumerate(places, low)]
            todo += [(run, block, own) for run in codings.runs_of_rows(X)]
        list(threads.map(lambda job: codings.write_codes(X, *job, limits.read), todo))

    # -- sums over rows ------------------------------------------------------------------------

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the sums of every rule, one first feature at a time. Workers share the features."""
        return self._in_waves(residual, self._sums)

    def norms(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the l1 norms of the sums of every rule, one first feature at a time."""

        def norms(first: int, residual: np.ndarray) -> np.ndarray:
            sums = self._sums(first, residual)
            return np.asarray(np.abs(sums, out=sums).sum(axis=1))

        return self._in_waves(residual, norms)

    def _in_waves(
        self, residual: np.ndarray, function: Callable[[int, np.ndarray], np.ndarray]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the answers of a function of a slot and the residual, for every first feature."""
        dtype = residual.dtype if residual.dtype in (np.float32, np.float64) else np.float64
        residual = np.require(residual, dtype, ["C", "W"])  # one kernel for each dtype
        firsts = self._starts[self._of_slot]
        sizes, start = firsts * residual.shape[1], 0
        while start < len(self._slots) - 1:
            # Sums are computed in waves. Otherwise those of the whole pool could be waiting.
            stop = int(np.searchsorted(sizes, sizes[start] + self._limits.wave, side="right")) - 1
            stop = min(max(stop, start + self._threads.n_jobs), len(self._slots) - 1)
            wave = range(start, stop)
            answers = self._threads.map(lambda slot: function(slot, residual), wave)
            for slot, answer in zip(wave, answers, strict=True):
                yield int(firsts[slot]), answer
            start = stop

    def _sums(self, first: int, residual: np.ndarray) -> np.ndarray:
        """Return the sums of all rules whose first condition is about a slot, (n_rules, k)."""
        from laconic.pools import histograms  # here, because it imports Numba

        here, k = self._slots[first], residual.shape[1]
        width = here.holds.shape[1]
        codes = self._codes[first].astype(np.uint16)
        parts = []
        for block in row_blocks(len(self._slots) - first - 1, TOGETHER):
            others = range(first + 1 + block.start, first + 1 + block.stop)
            pairs = self._codes[others.start : others.stop].astype(np.uint16)
            pairs *= width
            pairs += codes
            lengths = [self._slots[slot].holds.shape[1] * width for slot in others]
            bases = np.cumsum([0, *lengths])
            sums = histograms.accumulate(pairs, bases, residual)
            for slot, low, high in zip(others, bases, bases[1:], strict=False):
                parts.append(self._slots[slot].met(sums[low:high].reshape(-1, width, k)))
        by_condition = np.concatenate(parts)
        return here.met(by_condition.transpose(1, 0, 2)).reshape(-1, k)

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norms. Columns are 0 or 1, so these are sums of weights."""
        self._expect()
        out = np.empty(self.n_atoms)
        for first, sums in self.gradients(np.asarray(weight, dtype=np.float64)[:, None]):
            out[first : first + len(sums)] = sums[:, 0]
        return out

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the training columns of the atoms, 0 or 1, in Fortran order."""
        out = np.empty((self._n_rows, len(atoms)), dtype=self.dtype, order="F")
        for c, (first, second) in enumerate(zip(*self._pairs(atoms), strict=True)):
            out[:, c] = self._holds(first) & self._holds(second)
        return out

    def _holds(self, condition: int) -> np.ndarray:
        """Return which training rows meet a condition."""
        slot = self._slot[condition]
        codes = self._slots[slot].holds[condition - self._of_slot[slot]]
        return np.asarray(codes[self._codes[slot]])

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return ones, because rules are not scaled."""
        return np.ones(len(atoms))

    # -- atoms ---------------------------------------------------------------------------------

    def _pairs(self, atoms: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the first and of the second conditions of the atoms."""
        numbers = np.asarray(atoms, dtype=np.int64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_atoms):
            wrong = next(a for a in numbers if not 0 <= a < self.n_atoms)
            raise IndexError(f"atom {wrong} is not in this pool of {self.n_atoms} atoms")
        first = np.searchsorted(self._starts, numbers, side="right") - 1
        return first, numbers - self._starts[first] + self._later[first]

    def _condition(self, number: int) -> Condition:
        slot = int(self._slot[number])
        own, place = self._slots[slot], int(number - self._of_slot[slot])
        return Condition(int(self._feature[slot]), own.values[place], own.kinds[place])

    def atom(self, index: int) -> RuleAtom:
        """Return the record of atom ``index``."""
        [first], [second] = self._pairs([index])
        return RuleAtom(self._condition(first), self._condition(second))

    def _number(self, condition: Condition) -> int:
        """Return the number of a condition. The value of ``"missing"`` does not matter."""
        feature, value, kind = condition
        slot = int(np.searchsorted(self._feature, feature))
        if slot < len(self._feature) and self._feature[slot] == feature:
            own = self._slots[slot]
            for place, known in enumerate(zip(own.kinds, own.values, strict=True)):
                if known == (kind, 0.0 if kind == "missing" else value):
                    return int(self._of_slot[slot]) + place
        raise ValueError(
            f"this pool has no condition {condition!r}; `matching({feature})` lists the numbers of "
            "this feature's rules, and `atom` shows each"
        )

    def index(self, atom: RuleAtom) -> int:
        """Return the number of a rule. Its conditions may come in any order."""
        if not isinstance(atom, RuleAtom):
            raise ValueError(f"expected a RuleAtom of two conditions, not {atom!r}")
        first, second = sorted(self._number(Condition(*condition)) for condition in atom)
        if second < self._later[first]:
            raise ValueError(f"the conditions of a rule must be about two features, not {atom!r}")
        return int(self._starts[first] + second - self._later[first])

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of a rule, or the numbers of all rules that read a feature."""
        if isinstance(item, RuleAtom):
            return np.array([self.index(item)], dtype=np.int64)
        feature = feature_number(item, self._n_features)
        slot = int(np.searchsorted(self._feature, feature))
        if slot == len(self._feature) or self._feature[slot] != feature:
            return np.empty(0, dtype=np.int64)
        low, high = self._of_slot[slot : slot + 2]
        before = self._starts[:low] + low - self._later[:low]
        as_second = before[:, None] + np.arange(high - low)
        as_first = np.arange(self._starts[low], self._starts[high])
        return np.concatenate([as_second.ravel(), as_first])

    def extract(self, atoms: Sequence[int]) -> RulesMap:
        """Return the rules as a feature map for new rows."""
        return RulesMap.of([self.atom(index) for index in atoms])

    # -- costs ---------------------------------------------------------------------------------

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every rule: the sum of the costs of its two features."""
        self._expect()
        of_condition = np.asarray(feature_costs, dtype=np.float64)[self._feature][self._slot]
        parts = [
            cost + of_condition[later:]
            for cost, later in zip(of_condition, self._later, strict=True)
        ]
        return np.concatenate([np.empty(0), *parts])

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of rules: those of as many new features."""
        new = np.ones(self._n_features)
        for conditions in self._pairs(chosen):
            new[self._feature[self._slot[conditions]]] = 0.0
        return self.costs(new).astype(np.int64)

    def _expect(self) -> None:
        """Warn if a number for every rule will not fit in memory."""
        warn_if_too_large(
            8.0 * self.n_atoms,
            f"writing down a number for each of {self.n_atoms} rules",
            "use fewer features, cuts or categories",
        )

"""TotalQBoost, algorithm 1: column generation with a subset search after every addition.

The loop of ShareBoost with another choice of what stays: the rows hold every atom that was ever
generated, H, a search decides which of them have weights, and no atom of H is offered again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from laconic.boost.constraints import most_violated
from laconic.boost.loop import Loop, State
from laconic.boost.master import Master
from laconic.boost.path import PathEntry
from laconic.boost.shares import shares_of_fall
from laconic.objective import Objective
from laconic.subset import Fit, find_method
from laconic.subset.descent import descend
from laconic.subset.local import local_search


@dataclass
class TotalLoop(Loop):
    """One fit's settings; see `laconic.TotalQBoostClassifier` for their meaning.

    ``max_atoms`` is the cap on the model, ``max_rounds`` that on H, and ``sizes`` what the search
    after a hot start found: the atoms it was about, the best fits of every size, and the models
    that these are.
    """

    master: Master = field(kw_only=True)
    price: float = 0.0
    max_rounds: int = 100
    hot_start: int = 0
    search: Any = "local"
    options: dict[str, Any] = field(default_factory=dict)
    tol: float = 5e-4
    on_search: Callable[[int, float, float], None] | None = None
    """Told of the nodes, the best objective and the bound of an exact search under way."""
    _repeats: list[int] = field(default_factory=list)
    sizes: tuple[tuple[int, ...], list[Fit], list[PathEntry]] = ((), [], [])

    @property
    def searching(self) -> bool:
        """Whether there is anything to search for."""
        capped = self.max_atoms < self.max_rounds
        return self.search is not None and (self.price > 0 or capped)

    def grow(self, state: State) -> bool:
        """Run algorithm 1 from wherever ``state`` stands; false if a hook ended it."""
        self._clock = time.perf_counter() - (state.last.seconds if state.entries else 0.0)
        if state.entries:
            self.take_up(state)
        else:
            self.rows.reset([])
            state.entries.append(self._entry(self.master.problem().fit(())))
            if self.told(state):
                return False
        while self._step(state):
            if self.told(state):
                return False
        self._certify(state)
        return True

    def _step(self, state: State) -> bool:
        """One more entry: of a round, or of the search after a hot start; false at the end."""
        waiting = self.searching and state.searched < 0 and bool(state.generated)
        if waiting and 0 < self.hot_start <= len(state.generated):
            self._search_all(state)
            return True
        if len(state.generated) >= self._most(state):
            state.status = "largest number of rounds reached"
        elif (atom := self._violated(state)) is not None:
            self._add(state, atom)
            return True
        if waiting:  # the hot start has ended early
            self._search_all(state)
        return waiting

    def _most(self, state: State) -> int:
        """Largest H: rounds that a hot start did not need are not made up for."""
        unused = self.hot_start - state.searched if state.searched >= 0 else 0
        return self.max_rounds - unused

    def refitted(self, generated: list[int]) -> State:
        """A state that has these atoms, all of them fitted."""
        self._clock = time.perf_counter()
        self.rows.reset([])
        state = State([self._entry(self.master.problem().fit(()))])
        if generated:
            self.rows.reset(generated)
            state.generated = list(generated)
            problem = self.master.problem()
            state.entries.append(self._entry(problem.fit(tuple(range(problem.n_columns)))))
        return state

    def take_up(self, state: State) -> None:
        """Put the rows to where the last entry was recorded."""
        first, free = state.entries[0], int(self.rows.intercept)
        self._first, self._origin = first.loss, np.atleast_2d(first.base)[:free]
        self.rows.reset(state.generated)
        self.rows.evaluate(self._weights_of(state))

    # -- rounds --------------------------------------------------------------------------------

    def _violated(self, state: State) -> int | None:
        """Lines 3, 4 and 7: the atom outside H whose constraint (4) is violated most.

        ``None`` where (8) holds for all of them, or none is left.
        """
        while True:
            barred = np.unique([*state.generated, *self._repeats]).astype(np.int64)
            choice = most_violated(self.rows, barred, self.master.l1 + self.tol)
            entry = state.entries[-1]
            state.entries[-1] = replace(entry, steepest=choice.steepest)
            if choice.index < 0:
                endless = np.isinf(choice.steepest)
                state.status = ("the classifier offers nothing new" if endless
                                else "the pool has no other atom")  # fmt: skip
                return None
            if not choice.score > 0:
                state.status = "no atom outside violates its dual constraint by more than tol"
                return None
            self.rows.append(choice.index)
            if not self.rows.repeats(choice.index):
                return choice.index
            self.rows.reset(state.generated)
            self._repeats.append(choice.index)

    def _add(self, state: State, atom: int) -> None:
        """Lines 8 to 15: add an atom, search, re-optimise what is left."""
        fit = self._fit_of(state)
        state.generated.append(atom)
        problem = self.master.problem()
        every = tuple(range(problem.n_columns))
        hot = len(state.generated) <= self.hot_start and state.searched < 0
        if not self.searching or hot:
            start = self.master.start(self._weights_of(state), every, np.nan)
            fit = problem.fit(every, start.weights)
        else:
            state.searched = max(state.searched, 0)
            fit = self._searched(state, descend(problem, self.price, self._cap, fit, every[-1:]))
        state.entries.append(self._entry(fit))

    def _search_all(self, state: State) -> None:
        """The search after a hot start: over every size, and never worse than early stopping."""
        self._certify(state)
        key = tuple(state.generated)
        if self.sizes[0] != key:
            prefixes = [range(size) for size in range(1, len(key) + 1)]
            found = self._every_size(prefixes)
            fits = [f for f in found if len(f.support) <= self._cap]
            self.sizes = key, fits, [self._entry(fit) for fit in fits]
        _, fits, state.offered = self.sizes
        best = min(fits, key=self._objective)
        state.searched = len(key)
        state.entries.append(self._entry(self._searched(state, best)))

    def _every_size(self, starts: list[range]) -> list[Fit]:
        """The best fits found of every size; they answer any price."""
        problem: Any = self.master.problem()
        options = self.options if self.search == "local" else {}
        return local_search(problem, problem.n_columns, starts, **options)

    def _searched(self, state: State, fit: Fit) -> Fit:
        """A fit at least as good as the one given, by the method asked for."""
        state.bound = -np.inf
        if self.search != "local":
            problem, method = self.master.problem(), find_method(self.search)
            options = self.options
            if self.search == "exact":
                options = {**options, "watch": self.on_search}
            fit, state.bound = method(problem, self.price, self._cap, [fit.support], **options)
        return fit

    def _objective(self, fit: Fit) -> float:
        return fit.value + self.price * len(fit.support)

    @property
    def _cap(self) -> int:
        return min(self.max_atoms, len(self.rows.atoms))

    # -- fits as entries -----------------------------------------------------------------------

    def _entry(self, fit: Fit) -> PathEntry:
        """Record a fit, and leave the rows at it; atoms of weight zero are left out."""
        W = self.master.weights(fit)
        objective = Objective(self.rows, self.penalty)
        slope = objective.evaluate(W)[1]
        if not self.rows.atoms:
            self._first, self._origin = objective.loss, W[: int(self.rows.intercept)].copy()
        ends = np.cumsum([int(self.rows.intercept), *map(self.rows.pool.width, self.rows.atoms)])
        inside: np.ndarray = np.any(W, axis=1)
        inside[: int(self.rows.intercept)] = True
        on = np.flatnonzero(inside)
        columns = [on[first:last] for first, last in pairwise(np.searchsorted(on, ends).tolist())]
        kept = tuple(k for k, own in enumerate(columns) if len(own))
        slope = np.where(W != 0, slope, 0.0)
        solution = objective.solution(W, fit.value, slope, 0.0, True, inside)
        gains = self._gains(W, [columns[k] for k in kept], self._first - objective.loss)
        return self.record(solution, tuple(gains.tolist()), kept)

    def _gains(self, W: np.ndarray, atoms: list[np.ndarray], fall: float) -> np.ndarray:
        """The fall of the loss since the empty model, shared out; the rows stay at ``W``."""
        if not atoms:
            return np.empty(0)
        start = np.zeros_like(W)
        start[: len(self._origin)] = self._origin
        shares = shares_of_fall(self.rows, start, W, atoms)
        self.rows.evaluate(W)
        return shares * fall / max(float(shares.sum()), 1e-300)

    def _weights_of(self, state: State) -> np.ndarray:
        """The last entry's weights, as weights of the rows' columns."""
        entry, rows = state.entries[-1], self.rows
        W = np.zeros((rows.n_columns, rows.n_outputs))
        ends = np.cumsum([int(rows.intercept), *map(rows.pool.width, rows.atoms)])
        first = 0
        for number in entry.numbers:
            at = rows.atoms.index(number)
            width = ends[at + 1] - ends[at]
            W[ends[at] : ends[at + 1]] = entry.weights[first : first + width]
            first += width
        if rows.intercept:
            W[0] = entry.base
        return W

    def _fit_of(self, state: State) -> Fit:
        """The last entry as a fit."""
        entry = state.entries[-1]
        support = tuple(sorted(self.rows.atoms.index(number) for number in entry.numbers))
        return self.master.start(self._weights_of(state), support, entry.objective)

    def _certify(self, state: State) -> None:
        """Complete the last entry with its steepest gradient over the whole pool."""
        entry = state.entries[-1]
        if np.isnan(entry.steepest):
            barred = np.array(sorted(state.generated), dtype=np.int64)
            choice = most_violated(self.rows, barred, self.master.l1)
            state.entries[-1] = replace(entry, steepest=choice.steepest)

"""The stage of TotalQBoost that settles: a search chooses which atoms stay, under a price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from laconic.boost.master import Master
from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder
from laconic.boost.search_state import SearchState
from laconic.boost.shares import shares_of_fall
from laconic.boost.stages import State
from laconic.correct.objective import Objective
from laconic.penalties import L1
from laconic.subset import Fit, find_method
from laconic.subset.at_every_size import local_search
from laconic.subset.at_one_price import descend
from laconic.subset.price import Price


@dataclass
class SearchSubset:
    """Lines 8 to 15 of TotalQBoost's algorithm 1: H grows, and a subset of it is the model.

    The rows hold every atom that was ever generated, H. A search decides which of them have
    weights.

    Attributes
    ----------
    record : Recorder
    master : Master
        The problem over H.
    price : float
        λ, times the cost of an atom (1 each without costs).
    max_atoms : int
        Cap on the model.
    max_rounds : int
        Cap on H.
    max_cost : float
        Cap on the cost of the model.
    include : list of int
        Atoms that are always in, for no price.
    hot_start : int
        Atoms taken before the first search.
    search : str, sampler or None
    options : dict
        Of the search.
    on_search : callable, optional
        Told of the nodes, the best objective and the bound of an exact search under way.
    sizes
        What the search after a hot start found: the atoms it was about, the best fits of every
        size, and the models that these are.
    """

    record: Recorder
    master: Master
    price: float
    max_atoms: int
    max_rounds: int
    max_cost: float = np.inf
    include: list[int] = field(default_factory=list)
    hot_start: int = 0
    search: Any = "local"
    options: dict[str, Any] = field(default_factory=dict)
    on_search: Callable[[int, float, float], None] | None = None
    sizes: tuple[tuple[int, ...], list[Fit], list[PathEntry]] = ((), [], [])

    def __post_init__(self) -> None:
        self.rows = self.record.rows
        self.penalty = L1(self.master.l1)

    @property
    def searching(self) -> bool:
        """Whether there is anything to search for."""
        capped = self.max_atoms < self.max_rounds or np.isfinite(self.max_cost)
        return self.search is not None and (self.price > 0 or capped)

    # -- the stage -----------------------------------------------------------------------------

    def begin(self) -> SearchState:
        """Nothing is generated, and nothing searched."""
        return SearchState()

    def trim(self, state: State) -> None:
        """Take back what follows a hot start that may have ended for want of rounds."""
        found = SearchState.of(state)
        if len(found.generated) > self.max_rounds:
            raise ValueError(
                f"already has {len(found.generated)} rounds; set max_rounds to at least that, not "
                f"{self.max_rounds}, or name another file"
            )
        if 0 < found.searched < self.hot_start:
            del state.entries[found.searched + 1 :]
            state.own = SearchState(found.generated[: found.searched])

    def first(self) -> PathEntry:
        """The intercept, and the atoms always included."""
        self._find_origin()
        self.rows.reset(self.include)
        return self._entry(self.master.problem().fit(()))

    def _find_origin(self) -> None:
        """The model without atoms, from which the fall of the loss counts."""
        self.rows.reset([])
        self._origin = self.master.weights(self.master.problem().fit(()))
        self._loss_there = self.rows.evaluate(self._origin)[0]

    def take_up(self, state: State) -> None:
        """Put the rows to where the last entry was recorded."""
        self._find_origin()
        self.rows.reset([*self.include, *SearchState.of(state).generated])
        self.rows.evaluate(self._weights_of(state.entries[-1]))

    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ones, and what came with them."""
        del state.entries[length:]
        rounds, search = length - 1, SearchState.of(state)
        if 0 < search.searched < rounds:  # one entry is that of the search after the hot start
            rounds -= 1
        elif search.searched >= rounds:
            search.searched, search.offered, search.bound = -1, [], -np.inf
        del search.generated[rounds:]

    def full(self, state: State) -> bool:
        """Whether H is as large as it may be."""
        reached = len(SearchState.of(state).generated) >= self._most(state)
        if reached:
            state.status = "largest number of rounds reached"
        return reached

    def _most(self, state: State) -> int:
        """Largest H: rounds that a hot start did not need are not made up for."""
        searched = SearchState.of(state).searched
        unused = self.hot_start - searched if searched >= 0 else 0
        return self.max_rounds - unused

    def add(self, state: State, atom: int) -> PathEntry:
        """Search with the atom that has come in, and re-optimise what is left."""
        fit, found = self._fit_of(state.entries[-1]), SearchState.of(state)
        found.generated.append(atom)
        problem = self.master.problem()
        every = tuple(range(problem.n_columns))
        hot = len(found.generated) <= self.hot_start and found.searched < 0
        if not self.searching or hot:
            fit = problem.fit(every, self.master.grown(fit))
        else:
            found.searched = max(found.searched, 0)
            fit = self._searched(found, descend(problem, self._price, fit, every[-1:]))
        return self._entry(fit)

    def due(self, state: State, last: bool) -> bool:
        """Whether the search after a hot start comes next; it may have ended early."""
        found = SearchState.of(state)
        waiting = self.searching and found.searched < 0 and bool(found.generated)
        return waiting and (last or 0 < self.hot_start <= len(found.generated))

    def search_again(self, state: State) -> PathEntry:
        """The search after a hot start: over every size, and never worse than early stopping."""
        found = SearchState.of(state)
        key = tuple(found.generated)
        if self.sizes[0] != key:
            prefixes = [range(size) for size in range(1, len(key) + 1)]
            fits = [f for f in self._every_size(prefixes) if self._price.allows(f.support)]
            self.sizes = key, fits, [self._entry(fit) for fit in fits]
        _, fits, found.offered = self.sizes
        best = min(fits, key=self._objective)
        if self.record.costs is not None:  # the sizes say nothing of costs
            best = descend(self.master.problem(), self._price, best)
        found.searched = len(key)
        return self._entry(self._searched(found, best))

    def refitted(self, generated: list[int]) -> State:
        """A state that has these atoms, all of them fitted."""
        state = State(SearchState(list(generated)), [self.first()])
        if generated:
            self.rows.reset([*self.include, *generated])
            problem = self.master.problem()
            state.entries.append(self._entry(problem.fit(tuple(range(problem.n_columns)))))
        return state

    # -- searching -----------------------------------------------------------------------------

    def _every_size(self, starts: list[range]) -> list[Fit]:
        """The best fits found of every size; they answer any price."""
        problem: Any = self.master.problem()
        options = self.options if self.search == "local" else {}
        return local_search(problem, problem.n_columns, starts, **options)

    def _searched(self, found: SearchState, fit: Fit) -> Fit:
        """A fit at least as good as the one given, by the method asked for."""
        found.bound = -np.inf
        if self.search != "local":
            problem, method = self.master.problem(), find_method(self.search)
            options = self.options
            if self.search == "exact":
                options = {**options, "watch": self.on_search}
            price = self._price
            fit, found.bound = method(problem, price.each, price.cap, [fit.support], **options)
        return fit

    def _objective(self, fit: Fit) -> float:
        return fit.value + self._price.of(fit.support)

    @property
    def _price(self) -> Price:
        """What subsets of H cost, and which are allowed."""
        cap = min(self.max_atoms, len(self.rows.atoms)) - len(self.include)
        costs, atoms = self.record.costs, self.rows.atoms[len(self.include) :]
        if costs is None:
            return Price(self.price, cap)
        free = costs.total(self.include)

        def cost(support: tuple[int, ...]) -> float:
            return costs.total([*self.include, *(atoms[k] for k in support)]) - free

        # Costs that add up to the cap are within it, whatever their rounding.
        left = max(self.max_cost * (1.0 + 1e-12) - free, 0.0)
        return Price(self.price, cap, cost, left)

    # -- fits as entries -----------------------------------------------------------------------

    def _entry(self, fit: Fit) -> PathEntry:
        """Record a fit, and leave the rows at it; atoms of weight zero are left out."""
        W = self.master.weights(fit)
        objective = Objective(self.rows, self.penalty)
        slope = objective.evaluate(W)[1]
        ends = self.rows.ends()
        inside: np.ndarray = np.any(W, axis=1)
        inside[: ends[len(self.include)]] = True
        on = np.flatnonzero(inside)
        columns = [on[first:last] for first, last in pairwise(np.searchsorted(on, ends).tolist())]
        kept = tuple(k for k, own in enumerate(columns) if len(own))
        slope = np.where(W != 0, slope, 0.0)
        solution = objective.solution(W, fit.value, slope, 0.0, True, inside)
        gains = self._gains(W, [columns[k] for k in kept], self._loss_there - objective.loss)
        return self.record.entry(solution, tuple(gains.tolist()), kept)

    def _gains(self, W: np.ndarray, atoms: list[np.ndarray], fall: float) -> np.ndarray:
        """The fall of the loss since the empty model, shared out; the rows stay at ``W``."""
        if not atoms:
            return np.empty(0)
        start = np.zeros_like(W)
        start[: len(self._origin)] = self._origin
        shares = shares_of_fall(self.rows, start, W, atoms)
        self.rows.evaluate(W)
        return shares * fall / max(float(shares.sum()), 1e-300)

    def _weights_of(self, entry: PathEntry) -> np.ndarray:
        """An entry's weights as weights of the rows' columns."""
        rows = self.rows
        W = np.zeros((rows.n_columns, rows.n_outputs))
        ends = rows.ends()
        first = 0
        for number in entry.numbers:
            at = rows.atoms.index(number)
            width = ends[at + 1] - ends[at]
            W[ends[at] : ends[at + 1]] = entry.weights[first : first + width]
            first += width
        if rows.intercept:
            W[0] = entry.base
        return W

    def _fit_of(self, entry: PathEntry) -> Fit:
        """An entry as a fit.

        Not the fit that it was made of, which rounds otherwise: a resumed state knows entries only,
        and must go on to the same bits.
        """
        fixed = len(self.include)
        places = (self.rows.atoms.index(number) - fixed for number in entry.numbers)
        support = tuple(sorted(place for place in places if place >= 0))
        return self.master.start(self._weights_of(entry), support, entry.objective)

"""The settling stage of TotalQBoost: a search chooses which atoms stay, given a price per atom."""

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
from laconic.boost.stages import Settle, State
from laconic.correct import Orthant
from laconic.correct.objective import Objective
from laconic.penalties import L1
from laconic.subset import Fit, find_method
from laconic.subset.at_every_size import local_search
from laconic.subset.at_one_price import descend
from laconic.subset.price import Price


@dataclass
class SearchSubset(Settle):
    """Lines 8 to 15 of TotalQBoost's algorithm 1: H grows, and the model is a subset of H.

    The rows hold H, all atoms that were ever generated. A search decides which of them have
    weights.

    Attributes
    ----------
    record : Recorder
        Its costs have the caps that the model must keep.
    master : Master
        The problem over H.
    price : float
        λ. The price of an atom is λ times its cost. Without costs, each atom costs 1.
    max_rounds : int
        Largest size of H.
    max_atoms : int, optional
        Largest number of atoms in the model.
    include : list of int
        Atoms that are always in and have no price.
    hot_start : int
        Number of atoms that are taken before the first search.
    search : str, sampler or None
    options : dict
        Options of the search.
    on_search : callable, optional
        Called during an exact search with the number of nodes, the best objective and the bound.
    sizes
        Result of the search after a hot start: the atoms of H at that time, the best fits of every
        size, and the path entries of these fits.

    Notes
    -----
    The next round starts from the last fit as it was found, not from its path entry. Entries are
    for columns that are centred, so their intercepts are rounded again. The state keeps the
    intercept of every fit. With it, a resumed state finds the last fit again to the bit.
    """

    record: Recorder
    master: Master
    price: float
    max_rounds: int
    max_atoms: int | None = None
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
        """Whether there is anything to search for.

        A cap counts even if it is above the number of rounds. A fit of more rounds may resume this
        one, and then the search must have been on from the start.
        """
        capped = self.max_atoms is not None or bool(self.record.costs.caps)
        return self.search is not None and (self.price > 0 or capped)

    @property
    def corrector(self) -> Orthant:
        """The solver of the weights of given atoms, if they are not signs."""
        return Orthant()

    # -- the stage -----------------------------------------------------------------------------

    def begin(self) -> SearchState:
        """Return the state before the first round: H is empty and no search was done."""
        return SearchState()

    def trim(self, state: State) -> None:
        """Undo what follows a hot start that may have ended because its rounds ran out."""
        found = SearchState.of(state)
        if len(found.generated) > self.max_rounds:
            raise ValueError(
                f"already has {len(found.generated)} rounds. Set max_rounds to at least that, not "
                f"{self.max_rounds}, or name another file."
            )
        if 0 < found.searched < self.hot_start:
            rounds = found.searched
            del state.entries[rounds + 1 :]
            intercepts = found.intercepts[: rounds + 1]
            state.own = SearchState(found.generated[:rounds], intercepts=intercepts)

    def first(self, state: State) -> PathEntry:
        """Return the model of the intercept and the atoms that are always included."""
        self._find_origin()
        self.rows.reset(self.include)
        return self._made(state, self.master.problem().fit(()))

    def _find_origin(self) -> None:
        """Find the model without atoms. The decrease of the loss is counted from there."""
        self.rows.reset([])
        self._origin = self.master.weights(self.master.problem().fit(()))
        self._loss_there = self.rows.evaluate(self._origin)[0]

    def take_up(self, state: State) -> None:
        """Evaluate the rows at the last entry, and find its fit again."""
        self._find_origin()
        found = SearchState.of(state)
        self.rows.reset([*self.include, *found.generated])
        for entry in state.entries[len(found.intercepts) :]:  # of a file that has no intercepts
            found.intercepts.append(self.master.intercept(self._fit_of(entry)))
        self._fit = self._fit_of(state.entries[-1], found.intercepts[-1])
        self.rows.evaluate(self._weights_of(state.entries[-1]))

    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ``length``, with their atoms and searches."""
        del state.entries[length:]
        rounds, search = length - 1, SearchState.of(state)
        if 0 < search.searched < rounds:  # one entry is from the search after the hot start
            rounds -= 1
        elif search.searched >= rounds:
            search.searched, search.offered, search.bound = -1, [], -np.inf
        del search.generated[rounds:], search.intercepts[length:]

    def full(self, state: State) -> bool:
        """Return whether H has reached its largest size."""
        reached = len(SearchState.of(state).generated) >= self._most(state)
        if reached:
            state.status = "largest number of rounds reached"
        return reached

    def _most(self, state: State) -> int:
        """Return the largest size of H. Rounds that a hot start did not need are not used later."""
        searched = SearchState.of(state).searched
        unused = self.hot_start - searched if searched >= 0 else 0
        return self.max_rounds - unused

    def add(self, state: State, atom: int) -> PathEntry:
        """Search with the new atom, re-optimise the weights, and return the model."""
        fit, found = self._fit, SearchState.of(state)
        found.generated.append(atom)
        problem = self.master.problem()
        every = tuple(range(problem.n_columns))
        hot = len(found.generated) <= self.hot_start and found.searched < 0
        if not self.searching or hot:
            fit = problem.fit(every, self.master.grown(fit))
        else:
            found.searched = max(found.searched, 0)
            fit = self._searched(found, descend(problem, self._price, fit, every[-1:]))
        return self._made(state, fit)

    def due(self, state: State, last: bool) -> bool:
        """Return whether the search after a hot start comes next.

        ``last`` is true if no more atoms will come. Then the hot start ends early.
        """
        found = SearchState.of(state)
        waiting = self.searching and found.searched < 0 and bool(found.generated)
        return waiting and (last or 0 < self.hot_start <= len(found.generated))

    def search_again(self, state: State) -> PathEntry:
        """Return the model of the search after a hot start.

        It searches over every size and is never worse than early stopping.
        """
        found = SearchState.of(state)
        key = tuple(found.generated)
        if self.sizes[0] != key:
            prefixes = [range(size) for size in range(1, len(key) + 1)]
            fits = [f for f in self._every_size(prefixes) if self._price.allows(f.support)]
            self.sizes = key, fits, [self._entry(fit) for fit in fits]
        _, fits, found.offered = self.sizes
        best = min(fits, key=self._objective)
        if not self.record.costs.plain:  # the search over sizes knows neither costs nor caps
            best = descend(self.master.problem(), self._price, best)
        found.searched = len(key)
        return self._made(state, self._searched(found, best))

    def refitted(self, generated: list[int]) -> State:
        """Return a state in which H has these atoms and the model uses all of them."""
        state = State(SearchState(list(generated)))
        state.entries.append(self.first(state))
        if generated:
            self.rows.reset([*self.include, *generated])
            problem = self.master.problem()
            fit = problem.fit(tuple(range(problem.n_columns)))
            state.entries.append(self._made(state, fit))
        return state

    # -- searching -----------------------------------------------------------------------------

    def _every_size(self, starts: list[range]) -> list[Fit]:
        """Return the best fit found of every size. They give the answer for any price."""
        problem = self.master.problem()
        options = self.options if self.search == "local" else {}
        return local_search(problem, problem.n_columns, starts, **options)

    def _searched(self, found: SearchState, fit: Fit) -> Fit:
        """Search by the chosen method. Return a fit at least as good as the given one."""
        found.bound = -np.inf
        if self.search != "local":
            problem, method = self.master.problem(), find_method(self.search)
            options = self.options
            if self.search == "exact":
                options = {**options, "watch": self.on_search}
            price = self._price
            if self.record.costs.caps:
                options = {**options, "allows": price.allows}
            fit, found.bound = method(problem, price.each, price.cap, [fit.support], **options)
        return fit

    def _objective(self, fit: Fit) -> float:
        return fit.value + self._price.of(fit.support)

    @property
    def _price(self) -> Price:
        """Prices of subsets of H, and the caps that decide which are allowed."""
        held = len(self.rows.atoms)
        cap = (held if self.max_atoms is None else min(self.max_atoms, held)) - len(self.include)
        costs, atoms = self.record.costs, self.rows.atoms[len(self.include) :]
        free = costs.total(self.include)

        def with_always(support: tuple[int, ...]) -> list[int]:
            return [*self.include, *(atoms[k] for k in support)]

        def cost(support: tuple[int, ...]) -> float:
            return costs.total(with_always(support)) - free

        def within(support: tuple[int, ...]) -> bool:
            return costs.allows(with_always(support))

        paid, caps = costs.paid is not None, bool(costs.caps)
        return Price(self.price, cap, cost if paid else None, within if caps else None)

    # -- fits as entries -----------------------------------------------------------------------

    def _made(self, state: State, fit: Fit) -> PathEntry:
        """Return the next entry of the path. The next round starts from its fit."""
        entry = self._entry(fit)
        self._fit = self.master.narrowed(fit, self._support_of(entry))
        SearchState.of(state).intercepts.append(self.master.intercept(fit))
        return entry

    def _entry(self, fit: Fit) -> PathEntry:
        """Return a fit as a path entry, and leave the rows at the fit.

        Atoms of weight zero are left out.
        """
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
        solution = objective.solution(W, fit.value, slope, fit.promised, fit.converged, inside)
        gains = self._gains(W, [columns[k] for k in kept], self._loss_there - objective.loss)
        return self.record.entry(solution, tuple(gains.tolist()), kept)

    def _gains(self, W: np.ndarray, atoms: list[np.ndarray], fall: float) -> np.ndarray:
        """Return each atom's share of the decrease of the loss. The rows are left at ``W``."""
        if not atoms:
            return np.empty(0)
        start = np.zeros_like(W)
        start[: len(self._origin)] = self._origin
        shares = shares_of_fall(self.rows, start, W, atoms)
        return shares * fall / max(float(shares.sum()), 1e-300)

    def _weights_of(self, entry: PathEntry) -> np.ndarray:
        """Return an entry's weights as weights of the rows' columns."""
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

    def _support_of(self, entry: PathEntry) -> tuple[int, ...]:
        """Return the columns of the master problem that have weights in an entry."""
        fixed = len(self.include)
        places = (self.rows.atoms.index(number) - fixed for number in entry.numbers)
        return tuple(sorted(place for place in places if place >= 0))

    def _fit_of(self, entry: PathEntry, intercept: np.ndarray | None = None) -> Fit:
        """Return the fit from which an entry was made, up to rounding if its intercept is lost."""
        W, support = self._weights_of(entry), self._support_of(entry)
        fit = self.master.start(W, support, entry.objective, intercept)
        return fit._replace(promised=entry.certificate.decrement)

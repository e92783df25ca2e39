"""The stages of the loop, and what they know between two rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from laconic.boost.path import PathEntry


@dataclass
class SearchState:
    """What a search for subsets knows between two rounds."""

    generated: list[int] = field(default_factory=list)
    """TotalQBoost's H: every atom that was ever added, those later dropped too."""
    offered: list[PathEntry] = field(default_factory=list)
    """The best models of every size that the search after a hot start found."""
    searched: int = -1
    """Size of H at the first search, after which every round does one; -1 before."""
    bound: float = -np.inf
    """Proven lower bound on the last search's problem; -inf where nothing is."""


@dataclass
class RefinementState:
    """How far the refinement of a grown path is."""

    entries: list[PathEntry] = field(default_factory=list)
    """The refined path so far; empty without refinement."""
    swept: int = 0
    """Steps done of the sweeps back and forth over it."""

    def clear(self) -> None:
        """Forget everything: the path has grown."""
        self.entries, self.swept = [], 0


@dataclass
class State:
    """Everything the loop knows between two rounds.

    Attributes
    ----------
    entries : list of PathEntry
        The path so far.
    search : SearchState
    refinement : RefinementState
    status : str
        Why the loop ended, or "running".
    """

    entries: list[PathEntry] = field(default_factory=list)
    search: SearchState = field(default_factory=SearchState)
    refinement: RefinementState = field(default_factory=RefinementState)
    status: str = "running"

    @property
    def generated(self) -> list[int]:
        """TotalQBoost's H."""
        return self.search.generated

    @property
    def refined(self) -> list[PathEntry]:
        """The refined path so far."""
        return self.refinement.entries

    @property
    def last(self) -> PathEntry:
        """The largest entry so far; of the refined path where there is one."""
        return (self.refinement.entries or self.entries)[-1]


class Propose(Protocol):
    """Which atom next?"""

    def next(self, state: State) -> int | None:
        """Let the columns of the best atom in, and say which it is.

        It completes the last entry's certificate. None where no atom helps, and the status says
        why.
        """

    def certify(self, state: State) -> None:
        """Complete the last entry's certificate, where that is not done yet."""


class Settle(Protocol):
    """Which of the atoms are in the model, with which weights?"""

    def first(self) -> PathEntry:
        """The model before the first round: the intercept, and atoms that are always in."""

    def take_up(self, state: State) -> None:
        """Put the rows to where the last entry was recorded."""

    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ``length``."""

    def full(self, state: State) -> bool:
        """Whether no more atoms may come in; the status says why."""

    def add(self, state: State, atom: int) -> PathEntry:
        """The model after an atom has come in."""

    def due(self, state: State, last: bool) -> bool:
        """Whether a search without a new atom comes next; ``last`` if no more atoms will come."""

    def search_again(self, state: State) -> PathEntry:
        """The model of that search."""

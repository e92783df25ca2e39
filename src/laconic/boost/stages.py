"""The stages of the loop, and its state between two rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from laconic.boost.path import PathEntry
from laconic.files.layout import Array

T = TypeVar("T", bound="Own")


class Own(ABC):
    """The part of the state that only the settling stage reads, in addition to the path.

    It defines what a checkpoint record keeps of it: lists of entries, numbers and arrays.
    """

    layout: ClassVar[Mapping[str, Array]] = {}
    """Layout of the arrays, which `laconic.files.layout` checks."""
    later: ClassVar[frozenset[str]] = frozenset()
    """Names of the arrays that older files do not have."""

    @classmethod
    def of(cls: type[T], state: State) -> T:
        """Return this stage's own part of a state."""
        assert isinstance(state.own, cls)
        return state.own

    @property
    def last(self) -> PathEntry | None:
        """The model that the stage works on, or None if that is the last model of the path."""
        return None

    @abstractmethod
    def copy(self) -> Own:
        """Return a copy with its own lists."""

    @abstractmethod
    def lists(self) -> dict[str, list[PathEntry]]:
        """Return the lists of entries, by their names in files."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Return the numbers for the header of a record."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a record."""
        return {}

    @abstractmethod
    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Read numbers and arrays from a record. The lists have been read before."""

    @abstractmethod
    def sound(self, entries: list[PathEntry]) -> bool:
        """Return whether this is consistent with the entries of a path."""


@dataclass
class State:
    """Everything that the loop knows between two rounds.

    Attributes
    ----------
    own : Own
        The settling stage's own part.
    entries : list of PathEntry
        The path so far.
    status : str
        Why the loop ended, or "running".
    """

    own: Own
    entries: list[PathEntry] = field(default_factory=list)
    status: str = "running"

    @property
    def last(self) -> PathEntry:
        """The largest entry so far, from the refined path if there is one."""
        return self.own.last or self.entries[-1]

    def copy(self) -> State:
        """Return a copy with its own lists. Entries are shared, because they never change."""
        return State(self.own.copy(), list(self.entries), self.status)


class Propose(Protocol):
    """Chooses the next atom."""

    def next(self, state: State) -> int | None:
        """Add the columns of the best atom to the rows, and return its number.

        This also completes the last entry's certificate. If no atom helps, return None and give
        the reason in ``state.status``.
        """

    def certify(self, state: State) -> None:
        """Complete the last entry's certificate if this has not been done."""


class Settle(ABC):
    """Chooses which of the atoms are in the model, and their weights."""

    on_search: Callable[[int, float, float], None] | None = None
    """Called during a long search with the number of nodes, the best objective and the bound."""

    @abstractmethod
    def begin(self) -> Own:
        """Return the stage's own part of the state before the first round."""

    @abstractmethod
    def trim(self, state: State) -> None:
        """Cut a state from a file to what a fit with this stage's limits would have reached.

        If that is not possible, raise a `ValueError` that gives the reason.
        """

    @abstractmethod
    def first(self, state: State) -> PathEntry:
        """Return the model before the first round: the intercept and atoms that are always in."""

    @abstractmethod
    def take_up(self, state: State) -> None:
        """Evaluate the rows at the last entry."""

    @abstractmethod
    def cut(self, state: State, length: int) -> None:
        """Drop the entries after the first ``length``."""

    @abstractmethod
    def full(self, state: State) -> bool:
        """Return whether no more atoms may come in. If so, give the reason in ``state.status``."""

    @abstractmethod
    def add(self, state: State, atom: int) -> PathEntry:
        """Return the model after a new atom has come in."""

    def due(self, state: State, last: bool) -> bool:
        """Return whether a search without a new atom comes next. By default there is none.

        ``last`` is true if no more atoms will come.
        """
        return False

    def search_again(self, state: State) -> PathEntry:
        """Return the model of that search."""
        raise NotImplementedError

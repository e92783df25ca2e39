"""The stages of the loop, and what they know between two rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from laconic.boost.path import PathEntry
from laconic.files.layout import Array

T = TypeVar("T", bound="Own")


class Own(ABC):
    """What a settling stage knows between two rounds beside the path; only this stage reads it.

    It says what a record of a checkpoint keeps of it: lists of entries, numbers and arrays.
    """

    layout: ClassVar[Mapping[str, Array]] = {}
    """The arrays, as `laconic.files.layout` checks them."""

    @classmethod
    def of(cls: type[T], state: State) -> T:
        """The part of a state that is this stage's own."""
        assert isinstance(state.own, cls)
        return state.own

    @property
    def last(self) -> PathEntry | None:
        """The model under work, where that is not the last one of the path."""
        return None

    @abstractmethod
    def copy(self) -> Own:
        """The same with lists of its own."""

    @abstractmethod
    def lists(self) -> dict[str, list[PathEntry]]:
        """Its lists of entries, by the names that files have for them."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Its numbers, for the header of a record."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays."""
        return {}

    @abstractmethod
    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over numbers and arrays from a file; the lists are read by then."""

    @abstractmethod
    def sound(self, entries: list[PathEntry]) -> bool:
        """Whether a fit with this path can have known this."""


@dataclass
class State:
    """Everything the loop knows between two rounds.

    Attributes
    ----------
    own : Own
        What only the stage that settles knows.
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
        """The largest entry so far; of the refined path where there is one."""
        return self.own.last or self.entries[-1]

    def copy(self) -> State:
        """The same with lists of its own; entries never change."""
        return State(self.own.copy(), list(self.entries), self.status)


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

    def begin(self) -> Own:
        """What the stage knows before the first round."""

    def trim(self, state: State) -> None:
        """Cut a state from a file to what a fit with this stage's limits would have come to.

        A `ValueError` says why where that cannot be.
        """

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

"""Checkpoints of a clumping fit: the state of every problem after its last finished iteration.

A fit solves one problem, or one for each class. The file holds the state of every problem that was
begun, and nothing else. Whether a problem is solved follows from its state. So a fit with a larger
``max_iter`` continues, in every class, where a fit with a smaller one stopped. It ends like a fit
that had the larger ``max_iter`` from the start. With a smaller ``max_iter``, the problems in the
file stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from laconic.clumping.problem import ClumpingProblem
from laconic.files.journal import EVERY, Record, Saver, Slate
from laconic.files.layout import Array, Number, check_arrays, list_of, whole_number


class Kind(Protocol):
    """The state of a solver: a dataclass that says what its fields must look like in a file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    layout: ClassVar[Mapping[str, Array | Number]]
    """Layout of every field. The dimensions are ``"rows"`` and ``"weights"``."""

    def check(self, problem: ClumpingProblem) -> None:
        """Raise a `ValueError` if no solver of this problem can reach this state."""


S = TypeVar("S", bound=Kind)


class Resumable(Saver, Generic[S]):
    """Keeps the states of a fit's problems in a file, and reads them back.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Fingerprint of data and settings. A file with another fingerprint is refused.
    kind : type
        Class of the states.
    every : float
        Seconds between two records.
    """

    kept_in = Slate

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: str,
        kind: type[S],
        every: float = EVERY,
    ) -> None:
        super().__init__(path, "clumping checkpoint", fingerprint, every)
        self.kind = kind
        self._states: dict[int, S] = {}

    # -- writing -------------------------------------------------------------------------------

    def snapshot(self, state: tuple[int, S]) -> dict[int, S]:
        """Return the states of all problems so far. The state of the current problem is copied."""
        number, own = state
        self._states = {**self._states, number: self._copied(own)}
        return self._states

    def _copied(self, state: S) -> S:
        return replace(state, **{n: getattr(state, n).copy() for n, _ in _of(self.kind, Array)})

    def write(self, snapshot: dict[int, S]) -> bool:
        """Write the states of all problems."""
        problems: list[dict[str, Any]] = []
        arrays: dict[str, np.ndarray] = {}
        for number, state in snapshot.items():
            numbers = {n: part.kind(getattr(state, n)) for n, part in _of(self.kind, Number)}
            problems.append({"number": number, **numbers})
            arrays |= {f"{number}_{n}": getattr(state, n) for n, _ in _of(self.kind, Array)}
        return self.file.append({"problems": problems}, arrays)

    # -- reading -------------------------------------------------------------------------------

    def resume(self, n_problems: int, problem: Callable[[int], ClumpingProblem]) -> None:
        """Read the states of ``n_problems`` problems from the file. ``problem`` makes a problem."""
        with self.reading() as records:
            if records:
                self._states = self._resumed(records[0], n_problems, problem)

    def state(self, number: int) -> S | None:
        """Return a copy of the state of a problem, or None if the problem was not begun."""
        return self._copied(self._states[number]) if number in self._states else None

    def _resumed(
        self, record: Record, n_problems: int, problem: Callable[[int], ClumpingProblem]
    ) -> dict[int, S]:
        header, arrays = record
        stored = list_of(dict, header["problems"], "problems")
        numbers = [whole_number(p["number"], "number", 0, n_problems - 1) for p in stored]
        if len(set(numbers)) < len(numbers):
            raise ValueError("a problem is listed twice")
        rows, own = problem(0).rows, _of(self.kind, Array)
        wanted = {f"{number}_{name}": part for number in numbers for name, part in own}
        arrays = check_arrays(arrays, wanted, {"rows": rows.n_rows, "weights": rows.n_weights})
        out: dict[int, S] = {}
        for number, plain in zip(numbers, stored, strict=True):
            values = {name: arrays[f"{number}_{name}"] for name, _ in own}
            for name, part in _of(self.kind, Number):
                values[name] = part.checked(plain[name], name)
            out[number] = self.kind(**values)
            out[number].check(problem(number))
        return out


def _of(kind: type[Kind], part: type) -> list[tuple[str, Any]]:
    """Return the names and layouts of a state's arrays, or of its numbers."""
    return [(name, own) for name, own in kind.layout.items() if isinstance(own, part)]

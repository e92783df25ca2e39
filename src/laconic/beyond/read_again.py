"""Parts that are read each time they are asked: from files, or from Dask without a cluster.

At any time only one part is in memory. What is made of a part stays in memory; for pools that keep
codes, this is much less than the part. Other pools keep the numbers of the part. These numbers then
go to a scratch file, which is read through a memory map.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.parts import Here, Question, one_by_one, steps
from laconic.numeric.threads import Threads

Source = Callable[[], Any]
"""A function that reads a part."""


class Step(NamedTuple):
    """What is made of every part after it is read."""

    make: Question
    shared: tuple[Any, ...]
    own: tuple[Any, ...]


class ReadAgain:
    """Parts that are read each time they are asked; see `laconic.numeric.parts.Parts`.

    Parameters
    ----------
    sources : sequence of Source
    threads : Threads, optional
    lengths : list of int, optional
        Number of rows of every part.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        threads: Threads | None = None,
        lengths: list[int] | None = None,
        steps: Sequence[tuple[Step, ...]] | None = None,
    ) -> None:
        self._sources = list(sources)
        self.threads = threads or Threads(1)
        self.lengths = lengths
        self._steps = list(steps or [()] * len(self._sources))

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self._sources)

    def ask(
        self, question: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the answers of all parts."""
        answers = []
        with steps(question, self.n_parts) as step:
            for number, own in enumerate(one_by_one(each, self.n_parts)):
                answers.append(question(self._read(number), self.threads, *shared, *own))
                step()
        return answers

    def become(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> Here:
        """Return what ``make`` makes of every part. It stays in memory."""
        return Here(self.ask(make, shared, each), self.threads)

    def seen_as(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> ReadAgain:
        """Return what ``make`` makes of every part. It is made again after each reading."""
        steps = [
            (*before, Step(make, tuple(shared), own))
            for before, own in zip(self._steps, one_by_one(each, self.n_parts), strict=True)
        ]
        return ReadAgain(self._sources, self.threads, self.lengths, steps)

    def chosen(self, numbers: Sequence[int]) -> ReadAgain:
        """Return only some of the parts."""
        return ReadAgain(
            [self._sources[number] for number in numbers],
            self.threads,
            self.lengths and [self.lengths[number] for number in numbers],
            [self._steps[number] for number in numbers],
        )

    def on_disk(self) -> Here:
        """Return the parts with their rows in scratch files. Memory maps stay where they are."""
        return self.become(_on_disk, (Scratch(),))

    def _read(self, number: int) -> Any:
        part = self._sources[number]()
        for step in self._steps[number]:
            part = step.make(part, self.threads, *step.shared, *step.own)
        return part


def _on_disk(part: Any, threads: Threads, scratch: Scratch) -> Any:
    X, *rest = part
    if isinstance(X, np.ndarray) and not is_mapped(X):
        X = scratch.put(X)
    return type(part)(X, *rest)


class Scratch:
    """A scratch folder for the numbers of parts. It goes when nothing reads it any more."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="laconic-", ignore_cleanup_errors=True)
        self._kept = 0

    def put(self, X: np.ndarray) -> np.ndarray:
        """Write an array to a file, and return it as a memory map of the file."""
        path = Path(self._folder.name) / f"{self._kept}.npy"
        self._kept += 1
        np.save(path, X)
        out = np.load(path, mmap_mode="r")
        with suppress(OSError):  # Windows keeps the name of a file in use
            path.unlink()  # the map keeps the file itself
        return out


def is_mapped(X: Any) -> bool:
    """Return whether an array is a memory map or a view of one."""
    while isinstance(X, np.ndarray):
        X = X.base
    return isinstance(X, mmap)

"""Parts that are read each time they are asked: from files, or from Dask without a cluster.

At any time only one part is in memory. What is made of a part stays in memory; for pools that keep
codes, this is much less than the part. Other pools keep the numbers of the part. These numbers then
go to a scratch file, which is read through a memory map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from laconic.beyond.files import KnownFile
from laconic.beyond.maps import file_of_map
from laconic.beyond.scratch import on_disk
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
    steps : sequence of tuple of Step, optional
        What is made of every part after it is read.
    names : sequence of str, optional
        What messages call the parts.
    files : sequence of KnownFile, optional
        Files of which parts may be memory maps.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        threads: Threads | None = None,
        lengths: list[int] | None = None,
        steps: Sequence[tuple[Step, ...]] | None = None,
        names: Sequence[str] = (),
        files: Sequence[KnownFile] = (),
    ) -> None:
        self._sources = list(sources)
        self.threads = threads or Threads(1)
        self.lengths = lengths
        self._steps = list(steps or [()] * len(self._sources))
        self.names = names
        self._files = files

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
        return ReadAgain(self._sources, self.threads, self.lengths, steps, files=self._files)

    def chosen(self, numbers: Sequence[int]) -> ReadAgain:
        """Return only some of the parts."""
        return ReadAgain(
            [self._sources[number] for number in numbers],
            self.threads,
            self.lengths and [self.lengths[number] for number in numbers],
            [self._steps[number] for number in numbers],
            files=self._files,
        )

    def on_disk(self) -> tuple[Here, list[KnownFile]]:
        """Return the parts with their rows in scratch files; see `laconic.beyond.scratch`.

        Parts that are memory maps of the user's files stay so. These files are returned too.
        """
        parts = self.become(_on_disk)
        parts.lengths = self.lengths
        mapped = {file_of_map(part[0]) for part in parts.items}
        return parts, [file for file in self._files if file.path.resolve() in mapped]

    def _read(self, number: int) -> Any:
        part = self._sources[number]()
        for step in self._steps[number]:
            part = step.make(part, self.threads, *step.shared, *step.own)
        return part


def _on_disk(part: Any, threads: Threads) -> Any:
    X, *rest = part
    return type(part)(on_disk(X), *rest)

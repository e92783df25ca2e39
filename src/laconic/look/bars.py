"""Progress bars on the terminal; one that cannot be shown does not end a fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


def progress_bar(numbers: str, transient: bool = False) -> Progress:
    """A bar with a task's description, how far it is, ``numbers`` of its fields, and the time.

    A transient one vanishes in the end. It has a console of its own. The one that rich shares among
    all bars has a lock, which a forked child would find held for ever if a bar of another thread
    was being drawn.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(numbers),
        TimeElapsedColumn(),
        console=Console(file=None if sys.stdout is None else _Screen(sys.stdout)),  # type: ignore
        transient=transient,
    )


@contextmanager
def share_bar(verbose: int, what: str) -> Iterator[Callable[[float], None] | None]:
    """What tells a bar the share of some work that is done; None at ``verbose=0``.

    The bar vanishes when the work is done: what came of it can be said in a line. So a file, where
    nothing can vanish, has no bar either.
    """
    bar = progress_bar("%", transient=True) if verbose else None
    if bar is None or not (bar.console.is_interactive or bar.console.is_jupyter):
        yield None
        return
    with bar:
        task = bar.add_task(what, total=100)
        yield lambda share: bar.update(task, completed=int(100 * share))


class _Screen:
    """A stream that takes no harm from a full disk or a reader that went away."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

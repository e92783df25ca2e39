"""Progress bars on the terminal and in notebooks. A fit goes on if its bar cannot be shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from laconic.look.notebook_bar import NotebookBar
from laconic.notebook import in_notebook


def progress_bar(numbers: str, transient: bool = False) -> Any:
    """Return a bar with a task's description, its progress, ``numbers`` of its fields, and time.

    A transient bar vanishes at the end. Each bar has its own console. The console that rich shares
    among all bars has a lock. A forked child would find that lock held for ever if another thread
    was drawing a bar. In a notebook, rich would need ipywidgets, so the bar is a `NotebookBar`.
    """
    if in_notebook():
        return NotebookBar(numbers, transient)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    screen: Any = None if sys.stdout is None else _Screen(sys.stdout)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(numbers),
        TimeElapsedColumn(),
        console=Console(file=screen, force_jupyter=False),
        transient=transient,
    )


@contextmanager
def share_bar(verbose: int, what: str) -> Iterator[Callable[[float], None] | None]:
    """Give a function that tells a bar the share of work done, or None at ``verbose=0``.

    The bar vanishes when the work is done, as one line can tell the result. Nothing can vanish from
    a file, so a file gets no bar either.
    """
    bar = progress_bar("%", transient=True) if verbose else None
    if bar is None or not (isinstance(bar, NotebookBar) or bar.console.is_interactive):
        yield None
        return
    with bar:
        task = bar.add_task(what, total=100)
        yield lambda share: bar.update(task, completed=int(100 * share))


class _Screen:
    """Stream that ignores a full disk, or a reader that went away."""

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

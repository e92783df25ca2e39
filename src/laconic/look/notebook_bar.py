"""A progress bar in a notebook. It needs no widgets, so it also stays in a saved notebook."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import Any

from laconic.notebook import box

# Seconds between two updates of a bar.
EVERY_SECONDS = 0.1


@dataclass
class BarTask:
    """A line of a bar."""

    description: str
    total: float | None
    visible: bool
    fields: dict[str, Any]
    completed: float = 0


class NotebookBar:
    """A bar with the methods of rich's ``Progress`` that Laconic uses.

    ``numbers`` is a format of the fields of a ``task``. A transient bar vanishes at the end.
    """

    def __init__(self, numbers: str, transient: bool = False) -> None:
        self._numbers, self._transient = numbers, transient
        self._tasks: list[BarTask] = []
        self._start, self._drawn = time.monotonic(), -float("inf")
        self._place: Any = None

    def add_task(
        self, description: str, total: float | None = None, visible: bool = True, **fields: Any
    ) -> int:
        """Add a line, and return its number. Without a total, its end is not known."""
        self._tasks.append(BarTask(description, total, visible, fields))
        return len(self._tasks) - 1

    def update(self, task: int, **changes: Any) -> None:
        """Change ``completed``, ``total``, ``visible`` or other fields of a line."""
        line = self._tasks[task]
        for name, value in changes.items():
            if name in ("completed", "total", "visible"):
                setattr(line, name, value)
            else:
                line.fields[name] = value
        if time.monotonic() >= self._drawn + EVERY_SECONDS:
            self._draw()

    def __enter__(self) -> NotebookBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._transient and self._place is not None:
            self._show("", "")
        elif not self._transient:
            self._draw(done=True)

    def _draw(self, done: bool = False) -> None:
        self._drawn = time.monotonic()
        seen = [task for task in self._tasks if task.visible]
        words = [self._words(task) for task in seen]
        lines = [
            f"<div>{_bar(task, done)}{escape(told)}</div>"
            for task, told in zip(seen, words, strict=True)
        ]
        self._show("\n".join(words), box(lines))

    def _words(self, task: BarTask) -> str:
        total = "?" if task.total is None else f"{task.total:.0f}"
        numbers = self._numbers.format(task=task)
        spent = timedelta(seconds=int(time.monotonic() - self._start))
        return f"{task.description} {task.completed:.0f}/{total} {numbers} {spent}"

    def _show(self, text: str, html: str) -> None:
        """Show the bar in its place below the cell. The first call makes the place.

        Any error is ignored, because a fit goes on if its bar cannot be shown.
        """
        shown = {"text/plain": text, "text/html": html}
        with suppress(Exception):
            from IPython.display import display

            if self._place is None:
                self._place = display(shown, raw=True, display_id=True)
            else:
                self._place.update(shown, raw=True)


def _bar(task: BarTask, done: bool) -> str:
    """Return the bar of a line. Without a total it moves until the work is done."""
    if task.total is None:
        return '<progress value="1" max="1"></progress>' if done else "<progress></progress>"
    return f'<progress value="{task.completed:g}" max="{task.total or 1:g}"></progress>'

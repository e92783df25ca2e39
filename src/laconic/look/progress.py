"""The progress bar of the loop, which the loop calls as a hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laconic.boost.stages import State
from laconic.look.bars import progress_bar


@contextmanager
def progress(
    verbose: int,
    most: int,
    refined: bool,
    unit: str = "atoms",
    count: Callable[[State], int] = lambda state: state.last.size,
) -> Iterator[Shown]:
    """Give a hook that moves a progress bar on the terminal, or does nothing at ``verbose=0``.

    ``most`` is the largest number of units that ``count`` can find in a state.
    """
    if not verbose:
        yield Shown()
        return
    with progress_bar("{task.fields[says]}") as bar:
        yield Shown(bar, most, refined, unit, count)


class Shown:
    """Hook of the loop that moves its progress bar. Without a bar it does nothing.

    A second line shows the refinement, and a third line shows a search by branch and bound.
    """

    def __init__(
        self,
        bar: Any = None,
        most: int = 0,
        refined: bool = False,
        unit: str = "atoms",
        count: Callable[[State], int] = lambda state: state.last.size,
    ) -> None:
        self._bar = bar
        if bar is None:
            return
        self._unit, self._count = unit, count
        self._grow = bar.add_task("growing", total=most, says=unit)
        self._swap = bar.add_task("refining", total=3 * most - 1, says="steps", visible=refined)
        self._search = bar.add_task("searching", total=None, says="nodes", visible=False)

    def __call__(self, state: State) -> None:
        """Show how far the loop is."""
        if self._bar is None:
            return
        task, unit = (self._grow, self._unit) if state.own.last is None else (self._swap, "steps")
        says = f"{unit}  loss {state.last.loss:.4f}"
        self._bar.update(task, completed=self._count(state), says=says)

    def searched(self, nodes: int, objective: float, bound: float) -> None:
        """Show how many nodes a search has solved, and the gap between its bound and the best."""
        if self._bar is None:
            return
        gap = (objective - bound) / objective if objective > 0 else 0.0
        says = f"nodes  gap {100 * gap:.2g} %"
        self._bar.update(self._search, completed=nodes, says=says, visible=True)

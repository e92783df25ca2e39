"""Hooks of the loop: a held-out part to watch, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.bars import progress_bar
from laconic.boost.loop import Hook, State
from laconic.boost.path import PathEntry
from laconic.losses import Loss


@dataclass
class HeldOut:
    """Watches the loss on held-out rows and says when it no longer falls.

    Attributes
    ----------
    X, y, weight
        The held-out rows; ``y`` are class codes, ``weight`` sums to one.
    training_loss : Loss
    patience : int
        Rounds without a new lowest loss after which to stop.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    training_loss: Loss
    patience: int
    losses: list[float] = field(default_factory=list)

    def __call__(self, entry: PathEntry) -> bool:
        """Note the entry's held-out loss; whether the path has grown enough."""
        self.losses.append(self.loss(entry))
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self.patience

    def loss(self, entry: PathEntry) -> float:
        """Held-out loss of an entry's model."""
        scores = np.ascontiguousarray(entry.scores(self.X).T, dtype=np.float64)
        target = self.training_loss.targets(self.y, len(scores))
        return self.training_loss.evaluate(scores, target, self.weight, np.empty_like(scores))


@contextmanager
def progress(
    verbose: int,
    most: int,
    refined: bool,
    unit: str = "atoms",
    count: Callable[[State], int] = lambda state: state.last.size,
) -> Iterator[Hook]:
    """A hook that moves a progress bar on the terminal; nothing at ``verbose=0``.

    ``most`` is the largest number of units that ``count`` can find in a state.
    """
    if not verbose:
        yield lambda state: None
        return
    with progress_bar("{task.fields[unit]}  loss {task.fields[loss]:.4f}") as bar:
        grow = bar.add_task("growing", total=most, loss=float("nan"), unit=unit)
        swap = bar.add_task(
            "refining", total=3 * most - 1, loss=float("nan"), unit="steps", visible=refined
        )

        def show(state: State) -> None:
            task = swap if state.refined else grow
            done = count(state) + state.swept
            bar.update(task, completed=done, loss=state.last.loss)

        yield show

"""Where the steps of Newton's method are found: here, or where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from laconic.correct.conjugate import FORCING, REMEMBERED, conjugate_gradients
from laconic.correct.objective import Objective


class Steps(Protocol):
    """Solves ∇²Φ(W) step = r approximately, with a preconditioner that may be older than W."""

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew at ``W``, which must be the last evaluated point."""

    def find(self, W: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the step, and the number of products with the Hessian."""


def steps_of(objective: Objective) -> Steps:
    """Return where the steps of an objective are found.

    A problem may have a method ``steps``, which returns an object that finds steps where the rows
    are, or None. It can be used if the curvature of the penalty is ``diagonal``.
    """
    there = getattr(objective.problem, "steps", None)
    found = there() if there is not None else None
    if found is None or not getattr(objective.penalty, "diagonal", False):
        return StepsHere(objective)
    return StepsThere(objective, found)


class StepsHere:
    """Steps by conjugate gradients in this process. Each product asks the rows."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._apply: Callable[[np.ndarray], np.ndarray]

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew."""
        self._apply = self._objective.preconditioner(W)

    def find(self, W: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the step, and the number of products."""
        return conjugate_gradients(partial(self._objective.curve, W), self._apply, r)


class StepsThere:
    """Steps that the rows find, for example on a device; see `laconic.device.newton_steps`."""

    def __init__(self, objective: Objective, there: Any) -> None:
        self._objective, self._there = objective, there

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew."""
        free, dtype = self._objective.free, self._objective.problem.dtype
        self._there.renew(self._objective.penalty_curvature(W), free, float(np.finfo(dtype).eps))

    def find(self, W: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the step, and the number of products."""
        objective = self._objective
        bend = objective.penalty_curvature(W)
        room = REMEMBERED // max(r.size, 1)
        step, products = self._there.find(bend, r, objective.centred, FORCING, room)
        objective.products += products
        return step, products

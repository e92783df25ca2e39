"""How the steps of Newton's method are found: from products, from a Hessian, or at the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.correct.conjugate import FORCING, REMEMBERED, conjugate_gradients
from laconic.correct.loss_model import LossModel
from laconic.correct.objective import Objective


class FoundStep(NamedTuple):
    """A step of the weights, and what it promises."""

    move: np.ndarray
    slope: float
    """Bound on the first-order change of Φ. It is below zero if the step leads down."""
    gain: float
    """Predicted fall of Φ."""
    products: int
    """Number of products with the Hessian that took more than this process."""


class Steps(Protocol):
    """Finds steps from the last evaluated point, perhaps with an older preconditioner."""

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew at ``W``, which must be the last evaluated point."""

    def find(self, W: np.ndarray, gradient: np.ndarray) -> FoundStep | None:
        """Return a step from ``W``, where Φ has the gradient ``gradient``; None if there is none.

        There is none if rounding hides where Φ falls.
        """


def steps_of(objective: Objective) -> Steps:
    """Return how the steps of an objective are found.

    A problem may have a method ``cheap_hessian``. It returns a function that returns the Hessian of
    the loss in all weights, or None if products are cheaper. If there is a Hessian and if the
    penalty is not ``quadratic``, each step goes to the minimum of a model with the exact penalty.

    A problem may also have a method ``steps``, which returns an object that finds steps where the
    rows are, or None. It can be used if the curvature of the penalty is ``diagonal``.
    """
    problem, penalty = objective.problem, objective.penalty
    cheap = _asked(problem, "cheap_hessian")
    if cheap is not None and not getattr(penalty, "quadratic", False):
        return StepsOfModel(objective, cheap)
    there = _asked(problem, "steps")
    if there is not None and getattr(penalty, "diagonal", False):
        return StepsThere(objective, there)
    return StepsHere(objective)


def _asked(problem: Any, name: str) -> Any:
    """Return what a method of a problem returns, or None if there is no such method."""
    method = getattr(problem, name, None)
    return None if method is None else method()


def newton_step(gradient: np.ndarray, move: np.ndarray, products: int) -> FoundStep:
    """Return a step to the minimum of a quadratic model of Φ."""
    slope = float(np.vdot(gradient, move))
    return FoundStep(move, slope, -0.5 * slope, products)


class StepsOfModel:
    """Steps to the minimum of a quadratic model of the loss plus the exact penalty.

    See `laconic.correct.loss_model`. There is no preconditioner to renew.
    """

    def __init__(self, objective: Objective, hessian: Callable[[], np.ndarray]) -> None:
        self._objective, self._hessian = objective, hessian

    def renew(self, W: np.ndarray) -> None:
        """Do nothing."""

    def find(self, W: np.ndarray, gradient: np.ndarray) -> FoundStep | None:
        """Return the step."""
        model = LossModel(self._objective, W, self._hessian())
        move = model.least()
        if move is None:
            return None
        change, slope = model.change(move)
        return FoundStep(move, slope, -change, 0)


class StepsHere:
    """Newton steps by conjugate gradients in this process. Each product asks the rows."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._apply: Callable[[np.ndarray], np.ndarray]

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew."""
        self._apply = self._objective.preconditioner(W)

    def find(self, W: np.ndarray, gradient: np.ndarray) -> FoundStep:
        """Return the step."""
        curve = partial(self._objective.curve, W)
        return newton_step(gradient, *conjugate_gradients(curve, self._apply, -gradient))


class StepsThere:
    """Newton steps that the rows find, as on a device; see `laconic.device.newton_steps`."""

    def __init__(self, objective: Objective, there: Any) -> None:
        self._objective, self._there = objective, there

    def renew(self, W: np.ndarray) -> None:
        """Make the preconditioner anew."""
        free, dtype = self._objective.free, self._objective.problem.dtype
        self._there.renew(self._objective.penalty_curvature(W), free, float(np.finfo(dtype).eps))

    def find(self, W: np.ndarray, gradient: np.ndarray) -> FoundStep:
        """Return the step."""
        objective = self._objective
        bend = objective.penalty_curvature(W)
        room = REMEMBERED // max(gradient.size, 1)
        move, products = self._there.find(bend, -gradient, objective.centred, FORCING, room)
        objective.products += products
        return newton_step(gradient, move, products)

"""A clumping fit: one problem for two classes, or one problem for each class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.clumping.checkpoint import Resumable
from laconic.clumping.margins import Margins
from laconic.clumping.problem import ClumpingProblem, ClumpingSolution
from laconic.clumping.solver import SolverState, solve
from laconic.clumping.theta import Theta
from laconic.losses import ScoresOnly
from laconic.model.atoms import ColumnsMap
from laconic.model.predictor import Predictor

Tell = Callable[[str], None]


def state_kind(solver: str) -> Any:
    """Return the class of a solver's states."""
    if solver == "newton":
        return SolverState
    from laconic.clumping.averaging import Averages  # here, because it imports Numba

    return Averages


@dataclass(frozen=True)
class ClumpingSolver:
    """A solver of eq. (1), by name, with its settings."""

    name: str
    """``"newton"`` or ``"averaging"``."""
    tol: float
    max_iter: int
    learning_rate: float | None = None
    """Only for averaging."""
    seed: int = 0
    """Seed for the rows drawn. Only for averaging."""

    def solve(self, problem: ClumpingProblem, begun: Any, told: Any) -> ClumpingSolution:
        """Return the answer, from the state ``begun`` on. ``told`` is called at every iteration."""
        if self.name == "newton":
            return solve(problem, self.tol, self.max_iter, begun, told)
        from laconic.clumping.averaging import average  # here, because it imports Numba

        rate = self.learning_rate
        return average(problem, self.tol, self.max_iter, rate, self.seed, begun, told)


@dataclass(frozen=True)
class OneVsRestProblems:
    """The problems of a fit, and how to solve them.

    Parameters
    ----------
    rows : Margins
    theta : Theta
    codes : ndarray of shape (n_rows,)
        Class codes.
    classes : ndarray of shape (n_classes,)
    alpha : float
        λ > 0.
    """

    rows: Margins
    theta: Theta
    codes: np.ndarray
    classes: np.ndarray
    alpha: float

    @property
    def targets(self) -> list[int]:
        """The class that each problem tells from the others. For two classes, it is the second."""
        n_classes = len(self.classes)
        return [1] if n_classes == 2 else list(range(n_classes))

    def problem(self, number: int) -> ClumpingProblem:
        """Return one of the problems."""
        sign = np.where(self.codes == self.targets[number], 1, -1)
        return ClumpingProblem(self.rows, sign, self.theta, self.alpha)

    def solve(
        self, solver: ClumpingSolver, saver: Resumable[Any] | None, tell: Tell | None
    ) -> list[ClumpingSolution]:
        """Return all answers, from the checkpoint on if there is one.

        ``tell`` is called with a line of text after every iteration.
        """
        if saver is not None:
            saver.resume(len(self.targets), self.problem)
        answers = []
        for number in range(len(self.targets)):
            begun = None if saver is None else saver.state(number)
            told = self._hook(number, saver, tell)
            answers.append(solver.solve(self.problem(number), begun, told))
        return answers

    def _hook(self, number: int, saver: Resumable[Any] | None, tell: Tell | None) -> Any:
        """Return the function that is called after every iteration of a problem."""
        which = "" if len(self.classes) == 2 else f"{self.classes[self.targets[number]]}: "

        def told(state: Any, alpha: float, value: float, gap: float) -> None:
            if saver is not None:
                saver((number, state))
            if tell is not None:
                at = "" if alpha == self.alpha else f" at alpha {alpha:.3g}"
                tell(f"{which}iteration {state.iterations}{at}: {value:.8g}, gap {gap:.2g}")

        return told


def why_unfinished(answers: list[ClumpingSolution], max_iter: int) -> str | None:
    """Say why the gap is wider than asked for, and what would help. Return None if it is not."""
    short = [answer.iterations for answer in answers if not answer.converged]
    if not short:
        return None
    cause = (
        "; raise max_iter, tol or alpha"
        if max(short) >= max_iter
        else ", because rounding hides further progress; scale or centre X, or raise tol or alpha"
    )
    gap, value = (float(sum(getattr(a, name) for a in answers)) for name in ("gap", "objective"))
    return (
        f"stopped at a gap of {gap:.2g} (objective {value:.2g}) after {max(short)} "
        f"iterations{cause}"
    )


def linear_predictor(
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray,
    feature_names: Sequence[str] | None,
    units: Mapping[int, str],
) -> Predictor:
    """Return the predictor of weights (n_problems, n_features).

    For two classes, one score is the negative of the other. Features of weight zero are not read.
    """
    if len(classes) == 2:
        coef, intercept = np.vstack([-coef, coef]), np.concatenate([-intercept, intercept])
    read = np.flatnonzero(coef.any(axis=0))
    weights = np.ascontiguousarray(coef[:, read].T)
    map, widths = ColumnsMap(read), [1] * len(read)
    model = map, weights, intercept, classes, ScoresOnly.name, widths, coef.shape[1]
    return Predictor(*model, feature_names, units=units)

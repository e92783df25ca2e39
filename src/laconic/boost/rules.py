"""Selection rules, which choose the next atom (ShareBoost section 2.1).

A rule asks the rows for sums and returns a `Choice`. The gradient rules read the pool once. The
other rules try out every admissible atom exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from laconic.correct.objective import Corrector, Objective
from laconic.numeric.newton_steps import backtrack
from laconic.penalties import Penalty, check_penalty
from laconic.pools.base import Choice
from laconic.rows.rows import Rows


class Rule(Protocol):
    """Chooses the next atom for the rows' present weights."""

    def choose(
        self, rows: Rows, W: np.ndarray, forbidden: np.ndarray, costs: np.ndarray | None
    ) -> Choice:
        """Return the best atom that is not forbidden, by score or, with costs, by gain per cost."""


class GradientRule:
    """argmax_r ‖∇_r L(W)‖₁, eq. (7). A group of columns is scored by the sum over its columns."""

    def choose(
        self, rows: Rows, W: np.ndarray, forbidden: np.ndarray, costs: np.ndarray | None
    ) -> Choice:
        """Return the best atom, after one pass over the pool."""
        return rows.best(forbidden, None, costs)


class ProjectionRule:
    """argmax_r ‖∇_r L(W)‖₁ / ‖x_r − P x_r‖, where P projects onto the columns of the model.

    At the optimum over the chosen columns, the gradient depends only on the part of a column that
    the chosen columns do not explain. Dividing by the length of that part removes the disadvantage
    of correlated columns. Lengths are weighted norms over the rows. Each added column updates them
    with one more column of sums: ‖P x_r‖² = Σ_q ⟨x_r, q⟩² over an orthonormal basis q.
    """

    def __init__(self) -> None:
        self._atoms: list[int] | None = None

    def choose(
        self, rows: Rows, W: np.ndarray, forbidden: np.ndarray, costs: np.ndarray | None
    ) -> Choice:
        """Return the best atom, after one pass over the pool and a narrow pass per new column."""
        self._update(rows)
        unexplained = np.maximum(self._squares - self._explained, 0.0)
        # A column that is explained up to rounding cannot help, whatever its gradient.
        rounding = 8.0 * np.finfo(rows.dtype).eps
        dull = unexplained <= np.maximum(1e-6 * self._spread, rounding * self._squares)
        length = np.sqrt(np.where(dull, 1.0, unexplained))
        length[dull] = np.inf
        return rows.best(forbidden, length, costs)

    def _update(self, rows: Rows) -> None:
        known = self._atoms
        if known is None or rows.atoms[: len(known)] != known:
            self._squares = rows.pool_squares()
            self._explained = np.zeros_like(self._squares)
            self._spread = self._squares
            self._done = 0
        for products in rows.span_sums(self._done):
            for first, sums in products:
                self._explained[first : first + len(sums)] += sums[:, 0] ** 2
            self._done += 1
            if rows.intercept and self._done == 1:
                self._spread = np.maximum(self._squares - self._explained, 0.0)
        self._atoms = list(rows.atoms)


class _TrialRule(ABC):
    """Tries out every admissible atom and takes the one that lowers Φ most."""

    def __init__(self, penalty: Penalty, corrector: Corrector) -> None:
        self.penalty = penalty
        self.corrector = corrector

    def choose(
        self, rows: Rows, W: np.ndarray, forbidden: np.ndarray, costs: np.ndarray | None
    ) -> Choice:
        """Return the best atom, after a small exact optimisation for every admissible atom."""
        steepest = rows.best(forbidden, None, costs).steepest
        admissible = np.setdiff1d(np.arange(rows.pool.n_atoms), forbidden)
        if len(admissible) == 0:
            return Choice(-1, -np.inf, steepest)
        attempt = self._attempt(rows, W)
        gains = np.array(list(rows.threads.map(attempt, admissible.tolist())))
        value = gains if costs is None else gains / costs[admissible]
        top = int(np.argmax(value))
        return Choice(int(admissible[top]), float(gains[top]), steepest)

    @abstractmethod
    def _attempt(self, rows: Rows, W: np.ndarray) -> Callable[[int], float]:
        """Return a function that tries out one atom and returns the decrease of Φ."""


class StepRule(_TrialRule):
    """argmin_r min_a Φ(W + a ∇_r L(W)): the best step along each column's gradient.

    Its line search takes Newton steps from weights of zero, so the penalty must be smooth there.
    """

    needs: tuple[str, ...] = ("kink", "value", "gradient", "curve", "damping")
    takes_kinks = False

    def __init__(self, penalty: Penalty, corrector: Corrector) -> None:
        super().__init__(penalty, corrector)
        check_penalty(self, penalty)

    def _attempt(self, rows: Rows, W: np.ndarray) -> Callable[[int], float]:
        def attempt(atom: int) -> float:
            trial = rows.trial(atom, keep=False)
            objective = Objective(trial, self.penalty)
            zero = np.zeros((trial.n_columns, trial.n_outputs))
            start, gradient = objective.evaluate(zero)
            direction, value, a = -gradient, start, 0.0
            slope = float(np.vdot(gradient, direction))

            def along(a: float, slope: float, step: float) -> tuple[float, float, np.ndarray]:
                new, gradient = objective.evaluate((a + step) * direction)
                return new, slope * step, gradient

            for _ in range(100):
                if abs(slope) <= 1e-14 * (1.0 + start):
                    break
                bend = float(np.vdot(direction, objective.curve(a * direction, direction)))
                step = -slope / bend if bend > 0 else 1.0
                gain = -0.5 * slope * step
                # φ is convex in a, so halving a Newton step that overshoots must succeed.
                found = backtrack(partial(along, a, slope), step, value, tries=60)
                if found is None:
                    break
                step, value, gradient = found
                a, slope = a + step, float(np.vdot(gradient, direction))
                if gain <= self.corrector.tol * max(start - value, 1e-300):
                    break
            return start - value

        return attempt


class ColumnRule(_TrialRule):
    """argmin_r min_w Φ(W + w e_rᵀ): the best new column, with the other weights held fixed."""

    def __init__(self, penalty: Penalty, corrector: Corrector) -> None:
        super().__init__(penalty, corrector)
        check_penalty(corrector, penalty)

    def _attempt(self, rows: Rows, W: np.ndarray) -> Callable[[int], float]:
        return self._solved(rows, W, keep=False)

    def _solved(self, rows: Rows, W: np.ndarray, keep: bool) -> Callable[[int], float]:
        def attempt(atom: int) -> float:
            trial = rows.trial(atom, keep=keep)
            zero = np.zeros((rows.pool.width(atom), trial.n_outputs))
            start = np.vstack([W, zero]) if keep else zero
            before = Objective(trial, self.penalty).evaluate(start)[0]
            return before - self.corrector.solve(trial, self.penalty, start).value

        return attempt


class RefitRule(ColumnRule):
    """argmin_r min Φ over weights on I ∪ {r}: a full refit for every candidate."""

    def _attempt(self, rows: Rows, W: np.ndarray) -> Callable[[int], float]:
        return self._solved(rows, W, keep=True)


_TRIALS: dict[str, Callable[[Penalty, Corrector], Rule]] = {
    "step": StepRule,
    "column": ColumnRule,
    "refit": RefitRule,
}
RULES = ("gradient", "projection", *_TRIALS)


def _check_rule(rule: Any) -> None:
    """Refuse anything but the name of a rule or an object with a method ``choose``."""
    if isinstance(rule, str):
        if rule not in RULES:
            known = ", ".join(map(repr, RULES))
            raise ValueError(f"rule must be one of {known}, not {rule!r}.")
    elif isinstance(rule, type) or not callable(getattr(rule, "choose", None)):
        why = "is a class. Pass an object" if isinstance(rule, type) else "has no method 'choose'"
        raise TypeError(f"rule must be a name or a rule object, but {rule!r} {why}.")


def find_rule(rule: Any, penalty: Penalty, corrector: Corrector) -> Rule:
    """Return the rule of that name. A rule object is returned unchanged."""
    _check_rule(rule)
    if rule == "gradient":
        return GradientRule()
    if rule == "projection":
        return ProjectionRule()
    made: Rule = _TRIALS[rule](penalty, corrector) if isinstance(rule, str) else rule
    return made

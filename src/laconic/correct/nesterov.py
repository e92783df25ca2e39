"""Nesterov's method: the corrector that ShareBoost's paper uses."""

from __future__ import annotations

import numpy as np

from laconic.correct.objective import Objective, Problem, Solution
from laconic.penalties import FIRST_ORDER, Penalty, check_penalty


class Nesterov:
    """Nesterov's accelerated gradient, the corrector of the paper, kept as a reference.

    Steps have the length 1/β. β starts at 1 and is doubled until it bounds the curvature along the
    step. The method restarts when the momentum points uphill. It stops when the norm of the
    gradient is at most ``gradient_tol``.
    """

    needs = FIRST_ORDER
    takes_kinks = False

    def __init__(
        self, tol: float = 1e-5, gradient_tol: float = 1e-6, max_iter: int = 20000
    ) -> None:
        self.tol = tol
        self.gradient_tol = gradient_tol
        self.max_iter = max_iter

    def solve(
        self, problem: Problem, penalty: Penalty, start: np.ndarray, target: float = np.inf
    ) -> Solution:
        """Minimise Φ from ``start``. The ``target`` is ignored."""
        check_penalty(self, penalty)
        objective = Objective(problem, penalty)
        W = V = start
        smooth, momentum, converged = 1.0, 1.0, False
        value, gradient = objective.evaluate(V)
        for _ in range(self.max_iter):
            norm2 = float(np.vdot(gradient, gradient))
            if norm2 <= self.gradient_tol**2:
                W, converged = V, True
                break
            while smooth < 1e30:
                new = V - gradient / smooth
                new_value, new_gradient = objective.evaluate(new)
                if new_value <= value - norm2 / (2 * smooth) + 1e-15 * abs(value):
                    break
                smooth *= 2.0
            if float(np.vdot(gradient, new - W)) > 0:
                W = V = new
                momentum, value, gradient = 1.0, new_value, new_gradient
                continue
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            V = new + (momentum - 1.0) / following * (new - W)
            W, momentum = new, following
            value, gradient = objective.evaluate(V)
        value, gradient = objective.evaluate(W)
        return objective.solution(W, value, gradient, np.nan, converged)

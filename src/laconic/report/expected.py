"""Expected errors: the model's own probabilities, recalibrated on the rows of the search.

With q = 1 − p(predicted label) and x = logit q, the recalibrated expected error is a logistic
regression of the errors on x,

    logit p = β·b(x),

where b is a natural cubic spline. A straight line, so also p = q, is among these curves. The
curve is smooth and has few parameters, so that its uncertainty has a simple form: Cov β = H⁻¹, with
H the Fisher information. Isotonic regression has no such form, and a line (Platt scaling) cannot
follow a floor: errors that happen at any q, such as wrong labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

# Probabilities are kept this far from 0 and 1.
NEAREST = 1e-6
# Knots of the spline, as shares of the information that lies below them.
KNOTS = (0.02, 0.25, 0.5, 0.75, 0.98)
# Errors needed for each parameter.
FOR_EACH = 10
# Strength of the pull to p = q: as of so many rows.
PULL = 1e-3
STEPS = 50


class Recalibration(NamedTuple):
    """The curve from a model's own expected errors to recalibrated ones."""

    knots: np.ndarray
    scale: tuple[float, float]
    coef: np.ndarray
    covariance: np.ndarray

    def basis(self, own: np.ndarray) -> np.ndarray:
        """Return b(x) of every row, for the model's own expected errors q."""
        x = logit(np.clip(own, NEAREST, 1.0 - NEAREST))
        return _basis((x - self.scale[0]) / self.scale[1], self.knots)

    def expected(self, own: np.ndarray) -> np.ndarray:
        """Return the recalibrated expected error of every row."""
        return np.clip(expit(self.basis(own) @ self.coef), NEAREST, 1.0 - NEAREST)


def recalibrate(own: np.ndarray, wrong: np.ndarray) -> Recalibration:
    """Fit the curve to rows with the model's own expected errors ``own``."""
    x = logit(np.clip(own, NEAREST, 1.0 - NEAREST))
    scale = float(x.mean()), float(x.std()) or 1.0
    x = (x - scale[0]) / scale[1]
    flat = np.array([scale[0], scale[1]])
    none = np.empty(0)
    line, covariance = _fit(_basis(x, none), wrong, flat)
    knots = _knots(x, expit(_basis(x, none) @ line), int(wrong.sum()))
    if len(knots):
        start = np.append(line, np.zeros(len(knots) - 2))
        line, covariance = _fit(_basis(x, knots), wrong, start)
    return Recalibration(knots, scale, line, covariance)


def _knots(x: np.ndarray, p: np.ndarray, errors: int) -> np.ndarray:
    """Return knots that share the information Σ p(1 − p) evenly, as many as the errors allow."""
    wanted = min(len(KNOTS), errors // FOR_EACH)
    if wanted < 3:
        return np.empty(0)
    order = np.argsort(x, kind="stable")
    below = np.cumsum((p * (1.0 - p))[order])
    shares = np.interp(np.linspace(0, 1, wanted), np.linspace(0, 1, len(KNOTS)), KNOTS)
    places = np.minimum(np.searchsorted(below, shares * below[-1]), len(x) - 1)
    knots = np.unique(x[order][places])
    return knots if len(knots) >= 3 else np.empty(0)


def _basis(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Return 1, x and the natural cubic splines with these knots."""
    columns = [np.ones(len(x)), x]
    if len(knots):
        span = knots[-1] - knots[0]

        def bend(k: float) -> np.ndarray:
            cubes = np.maximum(x - k, 0.0) ** 3 - np.maximum(x - knots[-1], 0.0) ** 3
            return cubes / ((knots[-1] - k) * span)

        last = bend(float(knots[-2]))
        columns += [bend(float(k)) - last for k in knots[:-2]]
    return np.column_stack(columns)


def _fit(B: np.ndarray, wrong: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of a logistic regression and their covariance, by Newton steps.

    A slight pull to ``start`` keeps them finite if a curve separates the errors.
    """
    beta = start.astype(np.float64)

    def loss(beta: np.ndarray) -> float:
        scores = B @ beta
        pulled = PULL * np.square(beta - start).sum()
        return float(
            np.logaddexp(0.0, scores).sum() - scores[wrong > 0] @ wrong[wrong > 0] + pulled
        )

    value = loss(beta)
    for _ in range(STEPS):
        p = expit(B @ beta)
        gradient = B.T @ (p - wrong) + 2.0 * PULL * (beta - start)
        H = (B * (p * (1.0 - p))[:, None]).T @ B + 2.0 * PULL * np.eye(B.shape[1])
        step = np.linalg.solve(H, gradient)
        size = 1.0
        while (new := loss(beta - size * step)) > value and size > 1e-8:
            size *= 0.5
        beta, gain, value = beta - size * step, value - new, min(new, value)
        if gain <= 1e-10 * max(abs(value), 1.0):
            break
    p = expit(B @ beta)
    H = (B * (p * (1.0 - p))[:, None]).T @ B + 2.0 * PULL * np.eye(B.shape[1])
    return beta, np.linalg.inv(H)

"""Shares of a model's atoms in the decrease of the loss."""

from __future__ import annotations

import numpy as np

from laconic.correct.objective import Problem

NODES = 5
"""Number of points on the ray at which the gradient is evaluated."""


def shares_of_fall(
    problem: Problem, start: np.ndarray, W: np.ndarray, atoms: list[np.ndarray]
) -> np.ndarray:
    """Return each atom's share in the decrease of the loss from ``start`` to ``W``.

    Each item of ``atoms`` holds the columns J of one atom. All weights move together on the ray
    from ``start`` to ``W``. The decrease is the intercept's part plus the sum over the atoms of

        −∫₀¹ ⟨∇_J L(start + t (W − start)), W_J − start_J⟩ dt,

    which is the Aumann–Shapley value. An atom can raise the loss on the way if other atoms
    compensate for it. So the absolute values are returned. Saturated margins have no slope at the
    end of the ray. Most of the decrease is then near its start, so the points are closer together
    there (t = s³, Gauss–Legendre in s).

    Afterwards, the problem's last evaluation is at ``W``.
    """
    nodes, widths = np.polynomial.legendre.leggauss(NODES)
    s = (nodes + 1.0) / 2.0
    step = W - start
    fall = np.zeros(len(W))
    found = problem.evaluate_all([*(start + t * step for t in s**3), W])
    for (_, slope), dt in zip(found, 1.5 * widths * s**2, strict=False):
        fall -= dt * np.einsum("jc,jc->j", slope, step)
    return np.array([abs(float(fall[J].sum())) for J in atoms])

"""How the fall of the loss is shared out among the atoms of a model."""

from __future__ import annotations

import numpy as np

from laconic.correct.objective import Problem

NODES = 5
"""Points of the ray at which the gradient is asked for."""


def shares_of_fall(
    problem: Problem, start: np.ndarray, W: np.ndarray, atoms: list[np.ndarray]
) -> np.ndarray:
    """What each atom, given by its columns, has in the fall of the loss from ``start`` to ``W``.

    All weights grow together, from ``start`` to ``W``. The loss falls by the intercept's part and
    the sum over the atoms of

        −∫₀¹ ⟨∇_J L(start + t (W − start)), W_J − start_J⟩ dt,

    the value of Aumann and Shapley. An atom that others have to make up for can raise the loss on
    the way, so the sizes of these values are returned. A saturated margin has no slope left at the
    end of the ray. Most of the fall is then near its start, so the points lie closer there (t = s³,
    Gauss–Legendre in s).
    The problem's last evaluation is not at ``W`` afterwards.
    """
    nodes, widths = np.polynomial.legendre.leggauss(NODES)
    s = (nodes + 1.0) / 2.0
    step = W - start
    fall = np.zeros(len(W))
    for t, dt in zip(s**3, 1.5 * widths * s**2, strict=True):
        slope = problem.evaluate(start + t * step)[1]
        fall -= dt * np.einsum("jc,jc->j", slope, step)
    return np.array([abs(float(fall[J].sum())) for J in atoms])

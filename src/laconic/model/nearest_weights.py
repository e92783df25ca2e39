"""The whole-numbered weights whose scores are nearest to those of the model.

Rounded atoms are not the atoms of the model, so the best weights for them are other ones. Let z be
the whole-numbered values of the atoms at a row, and s the scores of the model there, in units of
the scores. Means over the rows are z̄ and s̄. Of all whole numbers from −m to m, we want the weights
W that minimise

    E(W) = mean ‖(z − z̄)'W − (s − s̄)‖² + ρ Σ_j g_j ‖W_j − V_j‖²,   g_j = mean (z_j − z̄_j)²,    (1)

with the real weights V of the model. The bias takes up what the means leave, and the small ρ keeps
weights that the rows say little about. With G = mean (z − z̄)(z − z̄)' + ρ diag(g), and the minimum
W* over real numbers, E is (W − W*)'G(W − W*) plus a constant. If all other weights of an output
stay, the best weight of atom j is

    the whole number nearest to  W_j − [G(W − W*)]_j / G_jj.                                   (2)

So we change one weight after the other, until none is better. Every step makes E smaller, and the
start is never left for a worse end. No labels are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Strength of the pull to the real weights.
PULL = 1e-3
# Largest number of passes over the weights.
PASSES = 30
# A step must make E smaller by more than this part of what one unit of a weight is worth.
WORTH = 1e-9


class NearestWeights(NamedTuple):
    """Whole-numbered weights (n_atoms, n_outputs), and the bias (n_outputs,)."""

    weights: np.ndarray
    bias: np.ndarray


def nearest_weights(
    values: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    real: np.ndarray,
    rounded: np.ndarray,
    most: int,
) -> NearestWeights:
    """Return weights from ``-most`` to ``most`` that make (1) small.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_atoms)
        Whole-numbered values of the atoms.
    scores : ndarray of shape (n_rows, n_outputs)
        Scores of the model, in the unit of whole-numbered scores.
    rows : ndarray of shape (n_rows,)
        Weights of the rows.
    real : ndarray of shape (n_atoms, n_outputs)
        Weights of the model, in the same unit.
    rounded : ndarray of shape (n_atoms, n_outputs)
        Whole-numbered weights to start from.
    most : int
    """
    share = rows / rows.sum()
    mean, level = share @ values, share @ scores
    centred = values - mean
    seen = centred * share[:, None]
    gram = seen.T @ centred
    pull = PULL * np.diag(gram)
    right = seen.T @ (scores - level) + pull[:, None] * real
    gram = gram + np.diag(pull)
    known = np.flatnonzero(np.diag(gram) > 0)
    best = real.copy()
    best[known] = np.linalg.solve(gram[np.ix_(known, known)], right[known])
    starts = [rounded.astype(np.float64), np.clip(np.rint(best), -most, most)]
    starts[1][np.diag(gram) <= 0] = starts[0][np.diag(gram) <= 0]
    ends = [_descended(gram, best, known, start, most) for start in starts]
    weights = min(ends, key=lambda end: float(np.vdot(end - best, gram @ (end - best))))
    return NearestWeights(weights, level - mean @ weights)


def _descended(
    gram: np.ndarray, best: np.ndarray, known: np.ndarray, start: np.ndarray, most: int
) -> np.ndarray:
    """Change weights by (2) until no change is better."""
    weights, size = start.copy(), np.diag(gram)
    slope = gram @ (weights - best)
    for _ in range(PASSES):
        moved = False
        for j in known.tolist():
            step = np.clip(np.rint(weights[j] - slope[j] / size[j]), -most, most) - weights[j]
            better = step * (2.0 * slope[j] + step * size[j]) < -WORTH * size[j]
            if better.any():
                step = np.where(better, step, 0.0)
                slope += np.outer(gram[:, j], step)
                weights[j] += step
                moved = True
        if not moved:
            break
    return weights

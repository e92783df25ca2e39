"""Ascent to a local maximum of a score, which never accepts a lower score.

Parameters are measured in their units u, φ = θ / u, so that one step moves all of them by a like
amount. The direction is that of nonlinear conjugate gradients (Polak and Ribière), in φ:

    d = g + max(0, ⟨g, g − g'⟩ / ⟨g', g'⟩) d',   g = u ∇_θ s(settled(θ)).

A step of length t goes to θ + t u √n d / ‖d‖ for n parameters, so that t is the root of their mean
squared change, in units. Then they are settled. Lengths are halved until the score rises. If it
does not rise along d, the step goes along g. If it does not rise there either, the ascent ends.
"""

from __future__ import annotations

import numpy as np

from laconic.tune.contract import MovableAtoms
from laconic.tune.score import Score, Seen

# Most steps, and most lengths that are tried for one of them.
STEPS, TRIES = 20, 8
# The first length that is tried. After a step, the next one starts with this many times its length.
FIRST, LONGER = 0.1, 2.0
# The ascent ends once a step gains less than this share of the score.
LITTLE = 1e-4


def ascend(score: Score, atoms: MovableAtoms) -> tuple[list[np.ndarray], Seen]:
    """Return parameters of a score that is no lower than at the start, and what is seen there."""
    at, seen, length = atoms.start, score.at(atoms.start), FIRST
    before: list[np.ndarray] | None = None
    along: list[np.ndarray] = []
    for _ in range(STEPS):
        slopes = atoms.along(at, score.slopes(at, seen))
        slopes = [u * slope for u, slope in zip(atoms.units, slopes, strict=True)]
        if not np.sqrt(_inner(slopes, slopes)) > 0:
            break
        along = _direction(slopes, before, along)
        found = _searched(score, atoms, at, seen, along, length)
        if found is None and along is not slopes:
            along = slopes
            found = _searched(score, atoms, at, seen, along, length)
        if found is None:
            break
        gained = found[1].value - seen.value
        at, seen, length = found[0], found[1], LONGER * found[2]
        before = slopes
        if gained <= LITTLE * seen.value:
            break
    return at, seen


def _direction(
    slopes: list[np.ndarray], before: list[np.ndarray] | None, along: list[np.ndarray]
) -> list[np.ndarray]:
    """Return the conjugate direction if it goes up, and otherwise the gradient itself."""
    if before is None:
        return slopes
    kept = (_inner(slopes, slopes) - _inner(slopes, before)) / _inner(before, before)
    if not kept > 0:
        return slopes
    turned = [g + kept * d for g, d in zip(slopes, along, strict=True)]
    return turned if _inner(turned, slopes) > 0 else slopes


def _searched(
    score: Score,
    atoms: MovableAtoms,
    at: list[np.ndarray],
    seen: Seen,
    along: list[np.ndarray],
    length: float,
) -> tuple[list[np.ndarray], Seen, float] | None:
    """Return the first parameters of a higher score, what is seen there, and the length."""
    unit = np.sqrt(sum(d.size for d in along) / _inner(along, along))
    for _ in range(TRIES):
        step = length * unit
        ways = zip(at, atoms.units, along, strict=True)
        moved = atoms.settled([place + step * u * d for place, u, d in ways])
        there = score.at(moved)
        if there.value > seen.value:
            return moved, there, length
        length /= 2.0
    return None


def _inner(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return float(sum(np.vdot(a, b) for a, b in zip(one, other, strict=True)))

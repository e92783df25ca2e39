"""Replay a finished run of holes: errors and shares at every stage, and which holes to keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from laconic.clumping.ties import WEIGHT_TIE, first_lowest
from laconic.holes.local_models import predicted_labels
from laconic.holes.state import Hole, Part, PunchState
from laconic.model.distances import inside_ball


def staged_labels(base: Any, holes: list[Hole], X: Any, dtype: Any) -> Iterator[np.ndarray]:
    """Yield the predicted labels with 0, 1, 2, … holes, in the type of the labels."""
    predicted = predicted_labels(base, X, dtype)
    yield predicted.copy()
    for hole in holes:
        rows = inside_ball(X, hole.centre, hole.radius)
        if len(rows):
            predicted[rows] = predicted_labels(hole.model, X[rows], dtype)
        yield predicted.copy()


def staged_errors(base: Any, holes: list[Hole], part: Part) -> np.ndarray:
    """Return the weighted errors with 0, 1, 2, … holes."""
    rows, total = np.arange(len(part.y)), part.weight.sum()
    labels = staged_labels(base, holes, part.X, part.y.dtype)
    return np.array([part.errors(rows, predicted) / total for predicted in labels])


def staged_shares(holes: list[Hole], part: Part) -> np.ndarray:
    """Return the share of the rows that each region decides, (n_holes + 1, n_holes + 1).

    Row j of the result is for the first j holes.
    """
    region, copies = np.zeros(len(part.y), dtype=np.int64), part.weights.copies
    shares = np.zeros((len(holes) + 1, len(holes) + 1))
    shares[0, 0] = 1.0
    for number, hole in enumerate(holes, start=1):
        region[inside_ball(part.X, hole.centre, hole.radius)] = number
        shares[number] = np.bincount(region, copies, len(holes) + 1) / copies.sum()
    return shares


def prune(state: PunchState, held: Part) -> list[Hole]:
    """Return the holes that are left after pruning.

    Holes are tried newest first. A hole is dropped if the held-out error is no higher without it.
    """
    table = np.empty((len(state.holes) + 1, len(held.y)), dtype=held.y.dtype)
    decides = np.zeros(table.shape, dtype=bool)
    table[0] = predicted_labels(state.base, held.X, table.dtype)
    decides[0] = True
    for number, hole in enumerate(state.holes, start=1):
        rows = inside_ball(held.X, hole.centre, hole.radius)
        decides[number, rows] = True
        if len(rows):
            table[number, rows] = predicted_labels(hole.model, held.X[rows], table.dtype)

    def missed(keep: np.ndarray) -> float:
        newest = len(keep) - 1 - (decides & keep[:, None])[::-1].argmax(axis=0)
        return held.errors(np.arange(len(held.y)), table[newest, np.arange(len(held.y))])

    keep = np.ones(len(table), dtype=bool)
    error, rounding = missed(keep), WEIGHT_TIE * float(held.weight.sum())
    for number in range(len(state.holes), 0, -1):
        keep[number] = False
        without = missed(keep)
        if without <= error + rounding:
            error = without
        else:
            keep[number] = True
    return [hole for hole, kept in zip(state.holes, keep[1:], strict=True) if kept]


class HolesChoice(NamedTuple):
    """The holes that a finished run leaves, and how many of them are used."""

    holes: list[Hole]
    use: int
    errors: np.ndarray
    """Weighted training error with 0, 1, 2, … of these holes."""
    held_errors: np.ndarray | None
    """The same on the held-out rows, if there are any."""
    status: str


def choose_holes(
    state: PunchState, parts: tuple[Part, Part | None], most: int, by_lowest: bool, pruned: bool
) -> HolesChoice:
    """Return the holes to keep, among the first ``most`` that were punched.

    ``by_lowest`` uses the holes up to the lowest held-out error. ``pruned`` drops holes without
    which the held-out error is no higher.
    """
    train, held = parts
    holes, errors = state.holes[:most], np.array(state.errors[: most + 1])
    if held is None:
        return HolesChoice(holes, len(holes), errors, None, state.status)
    punched = use = len(holes)
    held_errors = np.array(state.held_errors[: most + 1])
    if by_lowest:
        use = first_lowest(held_errors)
    if pruned:
        holes = prune(PunchState(state.base, holes[:use]), held)
        use = len(holes)
        errors, held_errors = (staged_errors(state.base, holes, part) for part in (train, held))
    status = state.status
    if use < punched:
        status += f"; by the held-out rows, {use} of the {punched} holes punched are used"
    return HolesChoice(holes, use, errors, held_errors, status)

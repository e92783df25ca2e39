"""Measure the regions that a search found, on the rows that it did not see."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from laconic.numeric.threads import row_blocks
from laconic.report.balls import ErrorBall
from laconic.report.expected import Recalibration
from laconic.report.facts import CONFIRMED, ClumpFacts, Rate
from laconic.report.features import NamedTable
from laconic.report.fix import LocalFix, try_fix
from laconic.report.gaps import feature_gaps
from laconic.report.search import HARD, SURPRISING, Kept, RowOutcome
from laconic.report.tails import falling, higher_losses, holm, spread_evenly, surprise

# Part of the level that the first hard clump gets, in units of that of the first surprising one.
HARDS = 0.5
# Rows that are summed together.
TOGETHER = 8192


class Measured(NamedTuple):
    """The facts of all clumps, and what local fixes would do."""

    clumps: list[ClumpFacts]
    fixed: Rate


class ReportRows(NamedTuple):
    """The rows of a report."""

    table: NamedTable
    outcome: RowOutcome
    labels: tuple[np.ndarray, np.ndarray] | None
    """True and predicted labels. None for losses."""
    fresh: np.ndarray
    place: np.ndarray
    """Place of every row in an order that does not depend on that of the table."""

    def rate(self, rows: np.ndarray) -> Rate:
        """Return the errors of some rows, or the sum of their losses."""
        if self.outcome.losses is not None:
            return Rate(float(self.outcome.losses[rows].sum()), len(rows))
        return Rate(int(self.outcome.wrong[rows].sum()), len(rows))


class Member(NamedTuple):
    """A region and the rows that belong to it."""

    kept: Kept
    rows: np.ndarray
    shared: int
    """Number of rows that the region holds too, but that belong to others."""
    chance: float
    adjusted: float


def measure(rows: ReportRows, found: list[Kept], curve: Recalibration | None) -> Measured:
    """Return the ranked facts of clumps, and the errors on fresh rows with every useful fix.

    Surprising clumps that fresh rows do not confirm are left out, and so are others in which fresh
    rows fail no more often than outside, or than all fresh rows. Their tests still count among
    those that the level is shared by.
    """
    confirmed, others, rest = _members(rows, found, curve)
    facts = []
    better = None if rows.labels is None else rows.labels[1].copy()
    members = [*confirmed, *others]
    gaps = feature_gaps(rows.table, [member.rows for member in members])
    for member, differs in zip(members, gaps, strict=True):
        inside = member.rows
        old, new = inside[~rows.fresh[inside]], inside[rows.fresh[inside]]
        fix = None if rows.labels is None else try_fix(rows.table.Z, *rows.labels, old, new)
        if better is not None and fix is not None and fix.labels is not None:
            better[new] = fix.labels
        facts.append(
            ClumpFacts(
                kind=member.kept.kind,
                shape=member.kept.region.shape,
                rows=inside,
                searched=rows.rate(old),
                inside=rows.rate(new),
                outside=rows.rate(rest),
                expected=_expected(rows, new, curve),
                chance=member.chance,
                own=None if rows.outcome.own is None else float(rows.outcome.own[new].sum()),
                beyond=_beyond(rows, member.kept, new, curve),
                adjusted=member.adjusted,
                mistakes=_mistakes(rows, inside),
                gaps=differs,
                fix=fix or LocalFix.none(len(new)),
                shared=member.shared,
            )
        )
    everywhere = rows.rate(np.flatnonzero(rows.fresh))
    borne_out = [
        fact
        for fact in facts
        if fact.excess > 0 and (fact.kind == SURPRISING or fact.inside.share > everywhere.share)
    ]
    borne_out.sort(key=lambda fact: (not fact.confirmed, fact.kind != SURPRISING, -fact.excess))
    fixed = everywhere
    if better is not None and rows.labels is not None:
        fixed = Rate(int((better != rows.labels[0])[rows.fresh].sum()), everywhere.rows)
    return Measured(borne_out, fixed)


def _members(
    rows: ReportRows, found: list[Kept], curve: Recalibration | None
) -> tuple[list[Member], list[Member], np.ndarray]:
    """Return confirmed surprising clumps, all other clumps, and the fresh rows in none of these.

    A row goes to the first clump that holds it. Surprising clumps that are not confirmed keep no
    rows from the others. They are judged as if no other clump were confirmed, so that their rows
    are known before the others are judged.
    """
    odd = [kept for kept in found if kept.kind == SURPRISING]
    even = found[len(odd) :]
    free = np.ones(len(rows.fresh), dtype=bool)
    held = [_held(rows, kept, free) for kept in odd]
    nothing = np.empty(0, dtype=np.int64)
    chances = [
        _chance(rows, kept, inside, nothing, curve)
        for kept, (inside, _) in zip(odd, held, strict=True)
    ]
    weights = [*falling(1.0, len(odd)), *falling(HARDS, len(even))]
    adjusted = holm([*chances, *(1.0 for _ in even)], weights)
    confirmed = [
        Member(kept, inside, shared, chance, level)
        for kept, (inside, shared), chance, level in zip(
            odd, held, chances, adjusted[: len(odd)], strict=True
        )
        if level < CONFIRMED
    ]
    free[:] = True
    for member in confirmed:
        free[member.rows] = False
    held = [_held(rows, kept, free) for kept in even]
    rest = np.flatnonzero(rows.fresh & free)
    later = [
        _chance(rows, kept, inside, rest, curve)
        for kept, (inside, _) in zip(even, held, strict=True)
    ]
    adjusted = holm([*chances, *later], weights)[len(odd) :]
    others = [
        Member(kept, inside, shared, chance, level)
        for kept, (inside, shared), chance, level in zip(even, held, later, adjusted, strict=True)
    ]
    return confirmed, others, rest


def _held(rows: ReportRows, kept: Kept, free: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the free rows of a clump, nearest first, and how many it shares. They are now taken.

    Rows of a rule are sorted by their distance from their mean.
    """
    Z, shape = rows.table.Z, kept.region.shape
    if isinstance(shape, ErrorBall):
        distance = shape.distances(Z)
        held = distance <= shape.radius**2
    else:
        held = shape.holds()
    inside = np.flatnonzero(held & free)
    shared = int((held & ~free).sum())
    free[inside] = False
    inside = inside[np.argsort(rows.place[inside])]
    if not isinstance(shape, ErrorBall):
        distance = ErrorBall(_mean(Z, inside), np.ones(Z.shape[1]), 0.0).distances(Z)
    return inside[np.argsort(distance[inside], kind="stable")], shared


def _mean(Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean of some rows, summed in their order and a block at a time."""
    total = np.zeros(Z.shape[1])
    for block in row_blocks(len(rows), TOGETHER):
        total += Z[rows[block]].sum(axis=0)
    return total / max(len(rows), 1)


def _expected(rows: ReportRows, new: np.ndarray, curve: Recalibration | None) -> float | None:
    """Return the number of errors that the model expects in some rows."""
    if curve is None or rows.outcome.own is None:
        return None
    return float(curve.expected(rows.outcome.own[new]).sum())


def _beyond(
    rows: ReportRows, kept: Kept, new: np.ndarray, curve: Recalibration | None
) -> float | None:
    """Return the chance of so many errors in a hard clump if rows failed as expected."""
    if kept.kind != HARD or curve is None or rows.outcome.own is None:
        return None
    return surprise(int(rows.outcome.wrong[new].sum()), rows.outcome.own[new], curve)


def _chance(
    rows: ReportRows, kept: Kept, inside: np.ndarray, rest: np.ndarray, curve: Recalibration | None
) -> float:
    """Return the probability of so many errors, or so large losses, on the fresh rows inside."""
    new = inside[rows.fresh[inside]]
    outcome = rows.outcome
    if outcome.losses is not None:
        return higher_losses(outcome.losses[new], outcome.losses[rest])
    errors = int(outcome.wrong[new].sum())
    if kept.kind == SURPRISING and curve is not None and outcome.own is not None:
        return surprise(errors, outcome.own[new], curve)
    return spread_evenly(errors, len(new), int(outcome.wrong[rest].sum()), len(rest))


def _mistakes(rows: ReportRows, inside: np.ndarray) -> list[tuple[Any, Any, int]]:
    if rows.labels is None:
        return []
    truth, predicted = (labels[inside] for labels in rows.labels)
    wrong = truth != predicted
    pairs = Counter(zip(truth[wrong].tolist(), predicted[wrong].tolist(), strict=True))
    # The commonest first; the labels decide between equally common ones, not the order of rows.
    ranked = sorted(pairs.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return [(true, taken, number) for (true, taken), number in ranked[:3]]

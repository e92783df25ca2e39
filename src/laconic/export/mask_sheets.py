"""Masks of patches as parts of a few sheets of weights, so that a chip keeps equal weights once.

A mask depends on the distances from its middle, and the borders of the image cut it. So all masks
of one width may be parts of one quarter of a Gaussian. In each direction, position p of an image
reads entry t of a sheet::

    t = step · p − first;  if t < 0: t = turn − t

If the middle lies halfway between two positions, step is 1 and turn is -1. With step 2 and turn -1,
a sheet has weights for the distances 1/4, 3/4, 5/4, ..., so one sheet serves middles at 1/4 and at
3/4. A mask without such a symmetry is read *plainly*: its turn leads beyond the sheet.

A row of a sheet ends with its last weight that is not zero. Every mask is compared with what it
reads, so sheets never change a weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from laconic.export.c_text import smallest

# Steps that are tried in each direction. A grid of g masks may need step g.
STEPS = (1, 2, 3, 4, 5, 6)
# In larger images than this, only step 1 is tried. Others would take much memory.
MOST_POSITIONS = 1 << 16
# A middle is on a grid if it is so near.
NEAR = 1e-3
# Sheets are cached if all masks together have at most this many bytes.
REMEMBERED = 1 << 18
# The turn of a direction that is read plainly, until the length of all sheets is known.
PLAIN = -2


class PlacedMask(NamedTuple):
    """A mask at a place of an image.

    Its ``middle`` may lie between two positions or a little beyond them. ``weights`` are the bytes
    of the mask at all positions in float64. Only masks of one ``sigma`` share a sheet.
    """

    shape: tuple[int, int]
    middle: tuple[float, float]
    sigma: float
    weights: bytes

    def mask(self) -> np.ndarray:
        """Return the weights of all positions."""
        return np.frombuffer(self.weights).reshape(self.shape)


class Sheets(NamedTuple):
    """All sheets, and what every place reads."""

    weight: np.ndarray
    """The rows of the first sheet, of the second one, and so on."""
    starts: np.ndarray
    """First weight of each row, and at last the number of weights."""
    first_row: np.ndarray
    rows: np.ndarray
    """Number of the first row of each sheet, and how many rows it has."""
    step: np.ndarray
    turn: np.ndarray
    """(n_sheets, 2): down and across."""
    sheet: np.ndarray
    """Number of the sheet that each place reads."""
    first: np.ndarray
    """(n_places, 2): down and across."""

    def bytes(self, of_weight: int) -> int:
        """Return the bytes of all tables, if a weight has ``of_weight`` bytes."""
        tables = [self.first_row, self.rows, *self.step.T, *self.turn.T, self.sheet, *self.first.T]
        starts = smallest(self.starts).itemsize * len(self.starts)
        return of_weight * len(self.weight) + starts + sum(map(bytes_of, tables))

    def mask(self, place: int, shape: tuple[int, int]) -> np.ndarray:
        """Return the mask of a place, as C reads it."""
        out, of = np.zeros(shape), self.sheet[place]
        axes = zip(self.step[of], self.turn[of], self.first[place], strict=True)
        row, across = (_entries(np.arange(n), *own) for n, own in zip(shape, axes, strict=True))
        for y in np.flatnonzero(row < self.rows[of]):
            start, end = self.starts[self.first_row[of] + row[y] :][:2]
            inside = across < end - start
            out[y, inside] = self.weight[start + across[inside]]
        return out


def bytes_of(values: np.ndarray) -> int:
    """Return the bytes of a table. If all entries are equal, it is not written."""
    equal = len(values) == 0 or bool((values == values[0]).all())
    return 0 if equal else smallest(values).itemsize * len(values)


def make_sheets(places: Iterable[PlacedMask], of_weight: int) -> Sheets:
    """Return the sheets of all places, with the steps for which their tables are smallest."""
    given = tuple(places)
    remembered = sum(len(place.weights) for place in given) <= REMEMBERED
    return (_smallest if remembered else _smallest.__wrapped__)(given, of_weight)


# A budget asks for the sheets of the same masks many times.
@lru_cache(maxsize=64)
def _smallest(places: tuple[PlacedMask, ...], of_weight: int) -> Sheets:
    tried: list[tuple[tuple[Axis, ...], ...]] = []
    large = max(height * width for (height, width), *_ in places) > MOST_POSITIONS
    for most in (0, 1) if large else (0, *STEPS):
        axes = tuple(_axes(place, most) for place in places)
        if axes not in tried:
            tried.append(axes)
    ways = (_joined(places, axes) for axes in tried)
    return min(ways, key=lambda sheets: sheets.bytes(of_weight))


Axis = tuple[int, int, int]
"""The step, the turn and the first entry of a direction."""


def _axes(place: PlacedMask, most: int) -> tuple[Axis, ...]:
    """Return how a place reads its sheet with steps of at most ``most``."""
    axes = tuple(_axis(middle, most) for middle in place.middle)
    mask = place.mask()
    for axis, own in enumerate(axes):
        if own[1] == PLAIN:
            continue
        reads = _entries(np.arange(mask.shape[axis]), *own)
        again = np.unique(reads, return_index=True, return_inverse=True)[1:]
        if not np.array_equal(mask, mask.take(again[0][again[1]], axis)):
            return _axes(place, 0)  # it is not symmetric
    return axes


def _axis(middle: float, most: int) -> Axis:
    """Return how one direction is read."""
    for step in STEPS[:most]:
        for turn in (-1, 0):
            first = step * middle - turn / 2
            if abs(first - round(first)) <= NEAR:
                return step, turn, round(first)
    return 1, PLAIN, int(np.floor(middle))


def _entries(positions: np.ndarray, step: int, turn: int, first: int) -> np.ndarray:
    entries = step * positions - first
    return entries if turn == PLAIN else np.where(entries < 0, turn - entries, entries)


class _Sheet(NamedTuple):
    """Weights of the entries from ``low`` on, down and across. Those that none reads are NaN."""

    step: tuple[int, int]
    turn: tuple[int, int]
    low: tuple[int, int]
    weights: np.ndarray

    def kept(self) -> tuple[tuple[int, int], np.ndarray]:
        """Return the first row and column that are kept, and the last column of each row."""
        used = np.nan_to_num(self.weights) != 0
        skip = [
            int(used.any(axis=1 - axis).argmax()) if turn == PLAIN else 0
            for axis, turn in enumerate(self.turn)
        ]
        last = used.shape[1] - used[:, ::-1].argmax(axis=1)
        return (skip[0], skip[1]), np.where(used.any(axis=1), last, skip[1])

    def size(self) -> int:
        """Return how many weights are kept."""
        (_, left), last = self.kept()
        return int((last - left).sum())

    def rows(self) -> tuple[tuple[int, int], list[np.ndarray]]:
        """Return the first entry down and across, and the rows of weights from there on."""
        (top, left), last = self.kept()
        bottom = max([top + 1, *(np.flatnonzero(last > left) + 1)])
        known = np.nan_to_num(self.weights)
        rows = [known[y, left : last[y]] for y in range(top, bottom)]
        if not len(rows[0]):  # no table in C may be empty
            rows[0] = np.zeros(1)
        return (self.low[0] + top, self.low[1] + left), rows

    def joined(self, other: _Sheet) -> _Sheet | None:
        """Return one sheet for both, or None if they differ or if that would take more weights."""
        low = np.minimum(self.low, other.low)
        shape = np.max([np.add(own.low, own.weights.shape) for own in (self, other)], axis=0) - low
        whole = np.full((2, *shape), np.nan)
        for out, own in zip(whole, (self, other), strict=True):
            y, x = own.low - low
            out[y : y + own.weights.shape[0], x : x + own.weights.shape[1]] = own.weights
        known = ~np.isnan(whole)
        if (whole[0] != whole[1])[known.all(axis=0)].any():
            return None
        both = self._replace(
            low=(int(low[0]), int(low[1])), weights=np.where(known[0], whole[0], whole[1])
        )
        return both if both.size() <= self.size() + other.size() else None


def _sheet(place: PlacedMask, axes: tuple[Axis, ...]) -> _Sheet:
    """Return the sheet of one place."""
    reads = [_entries(np.arange(n), *axis) for n, axis in zip(place.shape, axes, strict=True)]
    low = [int(own.min()) if axis[1] == PLAIN else 0 for own, axis in zip(reads, axes, strict=True)]
    weights = np.full([int(own.max()) + 1 - a for own, a in zip(reads, low, strict=True)], np.nan)
    weights[np.ix_(*(own - a for own, a in zip(reads, low, strict=True)))] = place.mask()
    step, turn, _ = zip(*axes, strict=True)
    return _Sheet(step, turn, (low[0], low[1]), weights)


def _joined(places: tuple[PlacedMask, ...], axes: tuple[tuple[Axis, ...], ...]) -> Sheets:
    """Return the sheets of all places. Each place joins the first sheet that it agrees with."""
    found: list[_Sheet] = []
    alike: dict[tuple[object, ...], list[int]] = {}
    of = []
    for place, own in zip(places, axes, strict=True):
        sheet = _sheet(place, own)
        # Plain sheets differ if the middles of their masks lie differently between positions.
        parts = [
            round(middle % 1, 3) if axis[1] == PLAIN else 0
            for middle, axis in zip(place.middle, own, strict=True)
        ]
        near = alike.setdefault((place.sigma, sheet.step, sheet.turn, *parts), [])
        for number in near:
            joined = found[number].joined(sheet)
            if joined is not None:
                found[number] = joined
                of.append(number)
                break
        else:
            of.append(len(found))
            near.append(len(found))
            found.append(sheet)
    kept, rows = zip(*(sheet.rows() for sheet in found), strict=True)
    lengths = [len(row) for of_sheet in rows for row in of_sheet]
    n_rows, sheet_of = np.array([len(of_sheet) for of_sheet in rows]), np.array(of)
    turn = np.array([sheet.turn for sheet in found])
    first = np.array([[axis[2] for axis in own] for own in axes])
    return Sheets(
        weight=np.concatenate([row for of_sheet in rows for row in of_sheet]),
        starts=np.cumsum([0, *lengths]),
        first_row=np.cumsum([0, *n_rows])[:-1],
        rows=n_rows,
        step=np.array([sheet.step for sheet in found]),
        turn=np.where(turn == PLAIN, [n_rows.max() - 1, max(lengths) - 1], turn),
        sheet=sheet_of,
        first=first + np.array(kept)[sheet_of],
    )

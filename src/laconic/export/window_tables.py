"""Tables of patches for a chip: groups of atoms with one template, and sheets of their masks."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from laconic.export.c_text import smallest
from laconic.export.mask_sheets import PlacedMask, Sheets, bytes_of, make_sheets
from laconic.model.integers import MASK
from laconic.model.segments import Segment, Tables, by_template

# Most atoms of a group. The largest value of each is on the stack.
TOGETHER = 64


class WindowTables(NamedTuple):
    """What C reads of a segment of windows, whose atoms have the order of their templates.

    A *group* is a run of atoms of one leaf that have the same template. Its responses are computed
    once.
    """

    segment: Segment
    starts: np.ndarray
    """First group of each leaf, and at last the number of groups."""
    first: np.ndarray
    """First atom of each group, and at last the number of atoms."""
    size: np.ndarray
    pixel: np.ndarray
    """Size of the template of each group, and its first pixel."""
    place: np.ndarray
    """Number of the place of each atom in the sheets."""
    sheets: Sheets
    of_weight: int
    """Bytes of a weight of a mask."""

    def bytes(self, of_pixel: int) -> int:
        """Return the bytes of the tables. Weights and shifts of atoms are not among them."""
        tables = (self.size, self.pixel, self.place)
        first = smallest(self.first).itemsize * len(self.first)
        pixels = of_pixel * self.segment.tables["pixel"].size
        return pixels + first + sum(map(bytes_of, tables)) + self.sheets.bytes(self.of_weight)


def window_tables(segment: Segment, of_weight: int) -> WindowTables:
    """Return the tables of a segment of windows; see `WindowTables`."""
    segment = by_template(segment)
    tables, n = segment.tables, segment.n_atoms
    runs = np.flatnonzero(np.diff(tables["template"]) != 0) + 1
    ends = np.unique([0, n, *runs, *segment.starts])
    first = np.concatenate(
        [[n], *(np.arange(a, b, TOGETHER) for a, b in itertools.pairwise(ends))], dtype=np.int64
    )
    first.sort()
    template = tables["template"][first[:-1]]
    place, sheets = _sheets(tables, of_weight)
    return WindowTables(
        segment,
        np.searchsorted(first, segment.starts),
        first,
        tables["size"][template],
        np.cumsum([0, *np.square(tables["size"])])[template],
        place,
        sheets,
        of_weight,
    )


def whole_masks(segment: Segment) -> Segment:
    """Return a segment with the masks that the integer model has, before its weights are known."""
    weight = segment.tables["weight"]
    if weight.dtype.kind == "f":
        weight = np.rint(weight * MASK)
    return segment._replace(tables=segment.tables | {"weight": weight})


def _sheets(tables: Tables, of_weight: int) -> tuple[np.ndarray, Sheets]:
    """Return the place of each atom, and the sheets of all places."""
    size = tables["size"][tables["template"]]
    begins = np.cumsum([0, *(tables["rows"] * tables["columns"])]).tolist()
    keys = np.column_stack([tables["mask"], tables["top"], tables["left"], size])
    distinct, number = np.unique(keys, axis=0, return_inverse=True)
    found = [_place(tables, begins[key[0]], *key) for key in distinct.tolist()]
    # In an order of their own, so that models of the same masks have the same sheets.
    places = sorted(set(found))
    order = {own: n for n, own in enumerate(places)}
    place = np.array([order[own] for own in found])[number.ravel()]
    few = make_sheets(places, of_weight)
    own = few._replace(sheet=few.sheet[place], first=few.first[place])
    if own.bytes(of_weight) <= few.bytes(of_weight) + bytes_of(place):
        return np.arange(len(place)), own
    return place, few


def _place(tables: Tables, begin: int, mask: int, top: int, left: int, size: int) -> PlacedMask:
    rows, columns = int(tables["rows"][mask]), int(tables["columns"][mask])
    height, width = (int(n) + 1 - size for n in tables["shape"])
    whole = np.zeros((height, width))
    cut = tables["weight"][begin : begin + rows * columns]
    whole[top : top + rows, left : left + columns] = cut.reshape(rows, columns)
    down, across = tables["middle"][mask].tolist()
    middle = (top + down, left + across)
    if not all(-n <= at <= 2 * n for n, at in zip(whole.shape, middle, strict=True)):
        middle = (0.0, 0.0)  # a sheet that starts so far away would be too large
    sigma = float(tables["sigma"][mask])
    return PlacedMask((height, width), middle, sigma, whole.tobytes())

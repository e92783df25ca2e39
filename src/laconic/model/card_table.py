"""The table of a card in plain text: a row for every atom, and a column for every class."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.model.regions import UNSEEN

# Longer class labels are shortened, as a table should not be mostly headings.
LABEL_WIDTH = 12
GAP = "  "


@dataclass(frozen=True)
class CardRow:
    """A line of the table. ``weights`` is None for the line that announces a group."""

    place: str
    name: str
    share: str
    weights: np.ndarray | None


def shorten(text: Any, width: int) -> str:
    """Shorten text to at most ``width`` characters. The ends stay, as they tell names apart.

    Control characters become ``?``, as names may come from an untrusted file.

    Examples
    --------
    >>> shorten("mean_temperature_of_the_last_week", 16)
    'mean_tem…st_week'
    """
    text = str(text)
    if len(text) > width:  # first, as a very long name would take long below
        tail = (width - 1) // 2
        text = text[: width - 1 - tail] + "…" + (text[-tail:] if tail else "")
    return "".join(c if c.isprintable() else "?" for c in text)


def text_table(rows: list[CardRow], classes: Sequence[Any] | np.ndarray, width: int) -> str:
    """Return the table of rows by classes (or points), in as many blocks as the width needs."""
    labels = [shorten(c, LABEL_WIDTH) for c in classes]
    cells = [[""] * len(labels) if r.weights is None else in_numbers(r.weights) for r in rows]
    cell_width = len(GAP) + max(len(c) for line in [labels, *cells] for c in line)
    share_width = max(len(r.share) for r in rows)
    if share_width:
        share_width = len(GAP) + max(share_width, len("share"))
    free = width - share_width
    spare = max(free - cell_width * len(labels), width // 3, 16)
    # Names get all the room that costs no further block.
    n_blocks = -(-len(labels) // max(1, (free - spare) // cell_width))
    spare = max(spare, free - cell_width * -(-len(labels) // n_blocks))
    names = _names(rows, [spare, min(width // 2, free - cell_width)])
    name_width = max(map(len, names))

    def line(name: str, share: str, words: list[str]) -> str:
        start = name.ljust(name_width) + share.rjust(share_width)
        return (start + "".join(w.rjust(cell_width) for w in words)).rstrip()

    fit = max(1, (free - name_width) // cell_width)
    blocks = []
    for block in np.array_split(np.arange(len(labels)), -(-len(labels) // fit)):
        first = block[0] == 0 and share_width > 0
        lines = [line("", "share" if first else "", [labels[c] for c in block])]
        for name, row, words in zip(names, rows, cells, strict=True):
            lines.append(line(name, row.share if first else "", [words[c] for c in block]))
        rule = "─" * max(map(len, lines))
        body = [rule, *lines[1:-1]] if len(rows) > 1 else []
        blocks.append("\n".join([lines[0], *body, rule, lines[-1]]))
    return "\n\n".join(blocks)


def _names(rows: list[CardRow], rooms: list[int]) -> list[str]:
    """Return the names of the rows, cut to the first of ``rooms`` that keeps them apart, if any."""
    distinct = len({r.name for r in rows})
    tries = [[shorten(r.name, room - len(r.place)) for r in rows] for room in rooms]
    names = next((names for names in tries if len(set(names)) == distinct), tries[0])
    return [r.place + name for r, name in zip(rows, names, strict=True)]


def in_numbers(row: np.ndarray) -> list[str]:
    """Return a row's weights as text. The largest has three significant digits."""
    seen = row > UNSEEN / 2  # a region has no real score for a class that is not in it
    top = float(np.abs(row[seen]).max(initial=0.0))
    power = math.floor(math.log10(top)) if 0 < top < math.inf else 0
    form = f".{min(max(2 - power, 0), 6)}f" if -4 <= power < 6 else ".2e"
    return [_number(float(v), form) if v > UNSEEN / 2 else "never" for v in row]


def _number(value: float, form: str) -> str:
    text = format(value, form)
    if float(text) != 0.0:
        return text
    return "0" if "e" in text else text.removeprefix("-")


def joined(pieces: list[str], width: int) -> str:
    """Join pieces with dots. Break lines between pieces, or within a piece that does not fit."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 3 + len(piece) <= width:
            lines[-1] += " · " + piece
        else:
            lines.append(piece)
    return "\n".join(wrapped for line in lines for wrapped in textwrap.wrap(line, width))

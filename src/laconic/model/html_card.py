"""The card of a model as HTML, for notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.model.card import MOST_LINES, card_parts
from laconic.model.card_table import LABEL_WIDTH, CardRow, in_numbers, shorten
from laconic.model.regions import UNSEEN
from laconic.notebook import MOST_ROWS, cell, sentences, table

# Most classes side by side, and longest name of an atom.
MOST_CLASSES, NAME_WIDTH = 20, 80
# Number of tints that tell small weights from large ones.
TINTS = 3


def html_card(model: Any, most: int = MOST_ROWS) -> list[str]:
    """Return the card of a fitted classifier or a predictor as parts of HTML.

    Parameters
    ----------
    model : ShareBoostClassifier, TotalQBoostClassifier or Predictor
    most : int, default=20
        Most lines of atoms. At most 20 classes are shown.
    """
    parts = card_parts(model)
    rows, heads = parts.rows[:most], parts.heads[:MOST_CLASSES]
    with_shares = any(row.share for row in rows)
    head = [cell("", "place", "th"), cell("", "name", "th")]
    head += [cell("share", tag="th")] if with_shares else []
    head += [cell(shorten(label, LABEL_WIDTH), tag="th") for label in heads]
    body = [_line(row, with_shares) for row in rows]
    out = [sentences(" · ".join(parts.headline), strong=True)]
    out.append(table(head, body, _line(parts.always, with_shares)))
    left_out = _left_out(len(parts.rows) - len(rows), len(parts.heads) - len(heads), most)
    return [*out, *left_out, *(sentences(text) for text in parts.closing)]


def _line(row: CardRow, with_shares: bool) -> str:
    """Return the cells of a line. The tints of its weights show which classes an atom is for."""
    place = row.place.strip()
    inside = row.place and not place  # a column of a group
    cells = [
        cell(place, "place"),
        cell(shorten(row.name, NAME_WIDTH), "name in" if inside else "name"),
    ]
    if with_shares:
        cells.append(cell(row.share))
    if row.weights is not None:
        texts = in_numbers(row.weights)[:MOST_CLASSES]
        tints = _tints(row.weights)[:MOST_CLASSES] if row.place else [""] * len(texts)
        cells += [cell(text, tint) for text, tint in zip(texts, tints, strict=True)]
    return "".join(cells)


def _tints(weights: np.ndarray) -> list[str]:
    """Return a tint for each weight of an atom, relative to the largest: p3 … p1, n1 … n3."""
    seen = weights > UNSEEN / 2
    top = float(np.abs(weights[seen]).max(initial=0.0))
    if not 0 < top < np.inf:
        return [""] * len(weights)
    levels = np.rint(TINTS * np.where(seen, weights, 0.0) / top).astype(int)
    return [f"{'p' if level > 0 else 'n'}{abs(level)}" if level else "" for level in levels]


def _left_out(atoms: int, classes: int, most: int) -> list[str]:
    """Say how many lines and classes are not shown, and where to find more lines."""
    missing = [
        f"{n:,} more {what}" for n, what in ((atoms, "lines"), (classes, "classes")) if n > 0
    ]
    if not missing:
        return []
    more = f" describe() shows up to {MOST_LINES} lines." if atoms > 0 and most < MOST_LINES else ""
    return [sentences(f"… and {' and '.join(missing)}.{more}")]

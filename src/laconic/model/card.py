"""The card of a model in plain text: a row for every atom, and a column for every class."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.data.dates import in_words
from laconic.model.atoms import ColumnsMap
from laconic.model.card_table import GAP, LABEL_WIDTH, CardRow, joined, shorten, text_table
from laconic.model.feature_maps import feature_name
from laconic.model.mixed import MixedMap
from laconic.model.predictor import Predictor
from laconic.model.regions import UNSEEN

MIN_WIDTH = 40
# Most lines of atoms in a card, and most names in a sentence.
MOST_LINES, MOST_NAMES = 200, 10

# For a score card, in which one score tells two classes apart.
_ALWAYS = 'Add up the points and the "always in" number: '


@dataclass(frozen=True)
class CardParts:
    """What a card says, before it is set as text or as HTML."""

    headline: list[str]
    heads: list[Any]
    """Class labels, or the one word "points"."""
    rows: list[CardRow]
    """The atoms, in order."""
    always: CardRow
    """The intercept."""
    closing: list[str]
    """How to read the card, in sentences."""


def card(model: Any, width: int | None = None) -> str:
    """Return the model as a table of weights, with a headline and how to read it.

    Parameters
    ----------
    model : ShareBoostClassifier, TotalQBoostClassifier or Predictor
        A fitted classifier or a predictor. A predictor does not hold the training loss, nor the
        shares of its atoms in the decrease of the loss.
    width : int, default=None
        Longest line, at least 40. The default is the width of the terminal, or 100 without one.
        Classes that do not fit side by side go into blocks, one below the other.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from laconic import ShareBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> print(card(ShareBoostClassifier(2).fit(X, y), width=72))  # doctest: +ELLIPSIS
    2 columns · 2 of 4 features · 3 classes
    training loss 1.86 → 0.209 (margin) · 6 operations per row, 88 bytes
    <BLANKLINE>
                share      0      1      2
    ──────────────────────────────────────
    1  x3      95.6 %  -5.27  -0.93   6.20
    2  x2       4.4 %  -1.85  -0.05   1.90
    ──────────────────────────────────────
    always in           12.5    4.4  -16.9
    <BLANKLINE>
    A class adds up weight × value for every atom and its "always in"
    number; the class with the largest sum wins. ...
    """
    parts = card_parts(model)
    width = shutil.get_terminal_size((100, 24)).columns if width is None else int(width)
    width = max(width, MIN_WIDTH)
    rows = parts.rows[:MOST_LINES]
    if len(parts.rows) > len(rows):
        rows.append(CardRow("", f"… and {len(parts.rows) - len(rows):,} more", "", None))
    told = [
        joined(parts.headline, width),
        text_table([*rows, parts.always], parts.heads, width),
        *(textwrap.fill(sentences, width) for sentences in parts.closing),
    ]
    return "\n\n".join(told)


def card_parts(model: Any) -> CardParts:
    """Return what the card of a fitted classifier or a predictor says."""
    fitted = hasattr(model, "predictor_")
    predictor: Predictor = model.predictor_ if fitted else model
    entry = model.path_[model.n_atoms_] if fitted else None
    weights, intercept = _shown(predictor)
    points = len(intercept) == 1
    closing = [_closing(predictor, entry, points)]
    to_see = getattr(predictor.map, "to_see", None)
    if predictor.widths and to_see is not None:
        plot = "model.plot_atoms()" if fitted else "laconic.look.mosaic.plot_patches(model)"
        closing.append(to_see.format(plot))
    # Scores have no unit, so an intercept this small is a rounding error.
    base = np.where(np.abs(intercept) < 1e-9, 0.0, intercept)
    return CardParts(
        _headline(predictor, entry),
        ["points"] if points else list(predictor.classes),
        _rows(predictor, entry, weights),
        CardRow("", "always in", "", base),
        closing,
    )


def shares(gains: Sequence[float]) -> np.ndarray:
    """Return the gains in per cent, with one decimal and a sum of 100 (0 if nothing was gained).

    Examples
    --------
    >>> shares([2.0, 1.0, 0.0]).tolist()
    [66.7, 33.3, 0.0]
    """
    positive = np.maximum(np.asarray(gains, dtype=np.float64), 0.0)
    total = positive.sum()
    if not total > 0:
        return np.zeros(len(positive))
    exact = 1000.0 * positive / total
    tenths = np.floor(exact)
    short = round(1000.0 - tenths.sum())
    tenths[np.argsort(tenths - exact, kind="stable")[:short]] += 1.0
    return tenths / 10.0


def count(number: int, noun: str) -> str:
    """Return a number and its noun: 1 column, 2,000 columns, 2 classes."""
    plural = noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def listed(names: Sequence[Any], most: int = MOST_NAMES) -> str:
    """Join names with commas. Of many names, only the first are listed.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(2000), 3)
    ('a, b', '0, 1, 2, … and 1,997 more')
    """
    more = f", … and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def atoms_in_words(predictor: Predictor) -> str:
    """Say how many atoms of which kind a predictor has: 3 columns, 2 stumps in 1 group."""
    found: dict[str, list[int]] = {}
    for map, width in zip(_owners(predictor), predictor.widths, strict=True):
        counted = found.setdefault(map.kind, [0, 0])
        counted[0] += 1
        counted[1] += 1 if hasattr(map, "summary") else width
    told = []
    for kind, (n_atoms, n_columns) in (found or {predictor.map.kind: [0, 0]}).items():
        one = kind.removesuffix("es") if kind.endswith("ches") else kind.removesuffix("s")
        one = {"filled": "filled column", "mixed": "atom"}.get(one, one)
        groups = f" in {count(n_atoms, 'group')}" if n_columns != n_atoms else ""
        told.append(count(n_columns, one) + groups)
    return " + ".join(told)


def _owners(predictor: Predictor) -> list[Any]:
    """Return the map of every atom. Only in a model of mixed atoms are they different maps."""
    map = predictor.map
    if not isinstance(map, MixedMap):
        return [map] * len(predictor.widths)
    first = np.cumsum([0, *predictor.widths[:-1]])[: len(predictor.widths)]
    return [map.parts[number] for number in map.part[first].tolist()]


def _headline(predictor: Predictor, entry: Any) -> list[str]:
    cost = predictor.cost()
    out = [
        atoms_in_words(predictor),
        f"{cost.features:,} of {count(predictor.n_features, 'feature')}",
        count(len(predictor.classes), "class"),
    ]
    if entry is None:
        known = hasattr(predictor, "predict_proba")
        out.append(f"{predictor.loss} loss" if known else "no probabilities")
    else:
        before = entry.loss + sum(entry.gains)
        out.append(f"training loss {before:.3g} → {entry.loss:.3g} ({predictor.loss})")
    if predictor.map.kind == "classifiers":
        out.append("the cost of each classifier is not counted")
    else:
        out.append(f"{count(cost.operations, 'operation')} per row, {count(cost.bytes, 'byte')}")
    return out


def _shown(predictor: Predictor) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and intercept to show. For two classes only the difference counts."""
    weights, intercept = predictor.weights, predictor.intercept
    never = np.abs(np.vstack([weights, intercept])).max(initial=0.0) > -UNSEEN / 2
    if len(intercept) != 2 or never or getattr(predictor.map, "points", "") is None:
        return weights, intercept
    return weights[:, 1:] - weights[:, :1], intercept[1:] - intercept[:1]


def _closing(predictor: Predictor, entry: Any, points: bool) -> str:
    how = getattr(predictor.map, "reading", ColumnsMap.reading)
    if points and getattr(predictor.map, "points", "") is not None:
        first, second = (shorten(c, LABEL_WIDTH) for c in predictor.classes)
        verdict = f"a sum above zero means {second}, otherwise {first}."
        how = getattr(predictor.map, "points", ColumnsMap.points) + _ALWAYS + verdict
    if entry is None:
        return how
    return how + (" Shares are of the decrease of the training loss." if entry.atoms else "")


def _rows(predictor: Predictor, entry: Any, weights: np.ndarray) -> list[CardRow]:
    widths = predictor.widths
    names = _names_with_units(predictor)
    percent = [""] * len(widths)
    if entry is not None:
        percent = [f"{s:.1f} %" for s in shares(entry.gains)]
    digits = len(str(len(widths)))
    rows: list[CardRow] = []
    summaries = _summaries(predictor, weights)
    at = 0
    for i, (map, width) in enumerate(zip(_owners(predictor), widths, strict=True)):
        place = f"{i + 1:>{digits}}{GAP}"
        if id(map) in summaries:
            name, points = next(summaries[id(map)], ("?", None))
            rows.append(CardRow(place, name, percent[i], points))
        elif width == 1:
            rows.append(CardRow(place, names[at], percent[i], weights[at]))
        else:
            rows.append(CardRow(place, f"group of {width}", percent[i], None))
            for j in range(at, at + width):
                rows.append(CardRow(" " * (digits + 4), names[j], "", weights[j]))
        at += width
    return rows


def _summaries(
    predictor: Predictor, weights: np.ndarray
) -> dict[int, Iterator[tuple[str, np.ndarray]]]:
    """Return names and numbers of atoms that are too wide to show column by column, by map."""
    map = predictor.map
    parts = [(map, weights)]
    if isinstance(map, MixedMap):
        parts = [(part, weights[map.of_part(j)]) for j, part in enumerate(map.parts)]
    return {
        id(part): zip(*part.summary(own), strict=True)
        for part, own in parts
        if hasattr(part, "summary")
    }


def _names_with_units(predictor: Predictor) -> list[str]:
    """Return names of columns. They have units if weights are per unit. Stumps name their own."""
    if not predictor.units:
        return predictor.names()
    features = [feature_name(f, predictor.feature_names) for f in range(predictor.n_features)]
    for f, unit in predictor.units.items():
        features[f] += f" ({in_words(unit)})"

    def names(map: Any) -> list[str]:
        if isinstance(map, MixedMap):
            return map.told_apart([names(part) for part in map.parts])
        return predictor.names_of(map, features if map.kind in ("columns", "products") else None)

    return names(predictor.map)

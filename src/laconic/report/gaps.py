"""Features whose distribution among some rows differs from that among all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from laconic.data.dates import DATE
from laconic.look.numbers import percent
from laconic.numeric.threads import Threads
from laconic.report.columns import TableColumn, quoted
from laconic.report.features import CATEGORIES, FeatureGap, NamedTable

# Most bars of a small plot of numbers.
BARS = 16
# If at least this share of a clump's rows has one number, the report names it, as it may be a code.
MOSTLY = 0.9
# Most features of a clump that get a sentence, and the smallest difference that gets one.
GAPS, LEAST_GAP = 6, 0.15


def feature_gaps(
    table: NamedTable, parts: Sequence[np.ndarray], most: int = GAPS
) -> list[list[FeatureGap]]:
    """Return, for each part, the features whose distribution there differs most from all others.

    ``parts`` are lists of row numbers. The answers are empty for pictures, as no pixel says much by
    itself.
    """
    if table.image_shape is not None:
        return [[] for _ in parts]
    inside = np.zeros((len(parts), len(table)), dtype=bool)
    for mask, rows in zip(inside, parts, strict=True):
        mask[rows] = True
    proper = [mask for mask in inside if mask.any() and not mask.all()]
    used = [column for column in table.columns if not column.left_out]
    with Threads() as threads:
        found = list(threads.map(lambda column: _gaps(column, proper), used))
    gaps = iter(np.array(found).reshape(len(used), len(proper), 2).swapaxes(0, 1))
    return [
        _largest(used, mask, next(gaps), most) if mask.any() and not mask.all() else []
        for mask in inside
    ]


def _largest(
    columns: list[TableColumn], inside: np.ndarray, gaps: np.ndarray, most: int
) -> list[FeatureGap]:
    """Describe the largest gaps. ``gaps`` has those of known values and of missing ones."""
    largest = gaps.max(axis=1)
    order = np.argsort(-largest, kind="stable")[:most]
    return [_described(columns[i], inside, *gaps[i]) for i in order if largest[i] >= LEAST_GAP]


def _gaps(column: TableColumn, inside: list[np.ndarray]) -> list[tuple[float, float]]:
    """Return the gaps of known values and of missing ones, for each mask of rows."""
    if column.names is None:
        of_numbers = _number_gaps(column.values, inside)
        of_missing = [_missing_gap(column.values, mask) for mask in inside]
        return list(zip(of_numbers, of_missing, strict=True))
    shares = [_shares(column, mask) for mask in inside]
    return [(float(0.5 * np.abs(here - there).sum()), 0.0) for here, there in shares]


def _number_gaps(values: np.ndarray, inside: list[np.ndarray]) -> list[float]:
    """Return the largest difference of the distribution functions of the known numbers.

    The numbers are sorted once for all masks.
    """
    order = np.argsort(values)
    known = len(order) - int(np.isnan(values).sum())  # missing numbers come last
    order = order[:known]
    if known == 0:
        return [0.0] * len(inside)
    sorted_ = values[order]
    last = np.flatnonzero(np.append(sorted_[1:] != sorted_[:-1], True))
    out = []
    for mask in inside:
        below = np.cumsum(mask[order], dtype=np.int32)
        here, there = int(below[-1]), known - int(below[-1])
        at = below[last] if len(last) < known else below
        gap = at / max(here, 1) - (last + 1 - at) / max(there, 1)
        out.append(float(np.abs(gap).max()) if here and there else 0.0)
    return out


def _missing_gap(values: np.ndarray, inside: np.ndarray) -> float:
    """Return the difference of the shares of missing numbers."""
    missing = np.isnan(values)
    return float(abs(missing[inside].mean() - missing[~inside].mean()))


def _shares(column: TableColumn, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of the categories (missing last) inside and outside."""
    codes, n = column.kinds()
    codes = np.where(codes < 0, n, codes).astype(np.int64)
    counts = [np.bincount(codes[part], minlength=n + 1) for part in (inside, ~inside)]
    return counts[0] / counts[0].sum(), counts[1] / counts[1].sum()


def _described(
    column: TableColumn, inside: np.ndarray, of_known: float, of_missing: float
) -> FeatureGap:
    gap = float(max(of_known, of_missing))
    if column.names is not None:
        return _categories(column, inside, gap)
    return _numbers(column, inside, gap, bool(of_missing > of_known))


def _categories(column: TableColumn, inside: np.ndarray, gap: float) -> FeatureGap:
    names = [*(column.kind_name(code) for code in range(column.kinds()[1])), "missing"]
    here, there = _shares(column, inside)
    # Of the categories that differ most, those that are common here come first, and the sentence
    # names one that is more common here than elsewhere.
    order = np.lexsort((there - here, -np.abs(here - there)))[:CATEGORIES]
    order = order[np.argsort(-here[order], kind="stable")]
    top = int(np.argmax(here - there))
    what = names[top] if names[top] == "missing" else quoted(names[top])
    sentence = (
        f"{column.name} is {what} in {percent(here[top])} of the clump, "
        f"in {percent(there[top])} elsewhere."
    )
    bars = [(names[i], float(here[i]), float(there[i])) for i in order if here[i] + there[i] > 0]
    return FeatureGap(column.name, gap, sentence, bars)


def _numbers(column: TableColumn, inside: np.ndarray, gap: float, by_missing: bool) -> FeatureGap:
    known = ~np.isnan(column.values)
    here, there = column.values[known & inside], column.values[known & ~inside]
    if by_missing:
        share = float(known[inside].mean()), float(known[~inside].mean())
        what = "known" if share[0] > share[1] else "missing"  # whichever is more common here
        if what == "missing":
            share = 1.0 - share[0], 1.0 - share[1]
        sentence = (
            f"{column.name} is {what} in {percent(share[0])} of the clump, "
            f"in {percent(share[1])} elsewhere."
        )
        return FeatureGap(column.name, gap, sentence, [(what, *share)])
    values = np.unique(column.values[known])
    if len(values) <= 2:
        often = [float((here == v).mean() - (there == v).mean()) for v in values]
        sentence = _so_often(column, float(values[int(np.argmax(often))]), here, there)
        bars = [
            (column.spelled(float(v)), float((here == v).mean()), float((there == v).mean()))
            for v in values
        ]
        return FeatureGap(column.name, gap, sentence, bars)
    sentence = _moved(column, here, there)
    low, high = np.quantile(column.values[known], [0.005, 0.995])
    if not low < high:
        low, high = float(values[0]), float(values[-1])
    edges = np.linspace(low, high, BARS + 1)
    counts = [np.histogram(np.clip(v, low, high), edges)[0] / len(v) for v in (here, there)]
    bars = [
        (f"{column.spelled(a)} to {column.spelled(b)}", float(x), float(z))
        for a, b, x, z in zip(edges[:-1], edges[1:], *counts, strict=True)
    ]
    return FeatureGap(column.name, gap, sentence, bars)


def _moved(column: TableColumn, here: np.ndarray, there: np.ndarray) -> str:
    """Compare the numbers in the clump with the others in a sentence."""
    quarters = [np.quantile(v, [0.25, 0.5, 0.75]) for v in (here, there)]
    middle, other = float(quarters[0][1]), float(quarters[1][1])
    if np.mean(here == middle) >= MOSTLY:
        return _so_often(column, middle, here, there)
    later, earlier = ("later", "earlier") if column.unit == DATE else ("higher", "lower")
    way = later if middle > other else earlier if middle < other else "spread differently"
    ends = [(column.spelled(q[0]), column.spelled(q[2])) for q in quarters]
    spans = [low if low == high else f"{low} to {high}" for low, high in ends]
    return (
        f"{column.name} is {way}: the middle half of the clump has {spans[0]}, "
        f"and that of the others has {spans[1]}."
    )


def _so_often(column: TableColumn, value: float, here: np.ndarray, there: np.ndarray) -> str:
    """Say how often a column has a value, in the clump and elsewhere."""
    inside, outside = (percent(float((v == value).mean())) for v in (here, there))
    return (
        f"{column.name} is {column.spelled(value)} in {inside} of the clump, "
        f"in {outside} elsewhere."
    )

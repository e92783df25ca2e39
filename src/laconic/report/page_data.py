"""Rows inside the page of a report, for its downloads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laconic.data.dates import DATE
from laconic.report.titles import title

if TYPE_CHECKING:
    from laconic.report.columns import TableColumn
    from laconic.report.facts import HolesReport

# Most bytes of rows in a page, and the fewest bytes of a cell.
MOST_BYTES, LEAST_BYTES = 1_000_000, 2
# Decimals of a probability.
DECIMALS = 6
# Characters that could end a script, or a line of one.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class PageRows(NamedTuple):
    """The rows of all clumps as JSON, and how many of each clump there are."""

    text: str
    held: list[int]


def page_rows(report: HolesReport) -> PageRows:
    """Return rows of all clumps, those nearest to the centres first, in at most ``MOST_BYTES``.

    If that is too little for all rows, all clumps keep the same number of rows, up to one.
    """
    clumps = [clump.rows for clump in report.clumps]
    names = _names(report)
    rank = np.concatenate([np.arange(len(rows)) for rows in clumps] or [np.empty(0, int)])
    which = np.repeat(np.arange(len(clumps)), [len(rows) for rows in clumps])
    order = np.lexsort((which, rank))[: MOST_BYTES // (LEAST_BYTES * len(names))]
    rows = np.concatenate([*clumps, np.empty(0, int)]).astype(np.int64)[order]
    columns, texts, sizes = [], [], np.full(len(rows), LEAST_BYTES)
    for values in _columns(report, rows):
        coded, spelled, size = _coded(values)
        columns.append(coded)
        texts.append(spelled)
        sizes += size
    most = int(np.searchsorted(np.cumsum(sizes), MOST_BYTES, side="right"))
    regions = [
        {"file": _file(report, number), "rows": [[c[i] for c in columns] for i in mine.tolist()]}
        for number in range(len(clumps))
        for mine in [np.flatnonzero(which[order[:most]] == number)]
    ]
    used = [_used(spelled, column, most) for spelled, column in zip(texts, columns, strict=True)]
    held = [len(region["rows"]) for region in regions]
    return PageRows(_safe({"columns": names, "texts": used, "regions": regions}), held)


def _names(report: HolesReport) -> list[str]:
    """Return the names of the columns of a download. Each is there only once."""
    told = ["true", "predicted"] if report.losses is None else ["loss", "high_loss"]
    told += [] if report.probability is None else ["probability"]
    names = ["row", *told, *(["wrong"] if report.losses is None else []), "half"]
    for column in report.table.columns:
        unit = f" ({column.unit})" if column.unit not in (None, DATE) else ""
        names.append(column.name + unit)
    seen: set[str] = set()
    for place, name in enumerate(names):
        number = 2
        while names[place] in seen:
            names[place], number = f"{name} ({number})", number + 1
        seen.add(names[place])
    return names


def _columns(report: HolesReport, rows: np.ndarray) -> list[list[Any]]:
    """Return the values of some rows: numbers, text, truth values, or None if they are missing."""
    out: list[list[Any]] = [(report.first_row + rows).tolist()]
    wrong = report.wrong[rows].tolist()
    if report.losses is None:
        out += [
            [_label(v) for v in said[rows].tolist()] for said in (report.truth, report.predicted)
        ]
    else:
        out += [report.losses[rows].tolist(), wrong]
    if report.probability is not None:
        out.append(report.probability[rows].round(DECIMALS).tolist())
    if report.losses is None:
        out.append(wrong)
    out.append(np.where(report.fresh[rows], "fresh", "searched").tolist())
    return out + [_cells(column, rows) for column in report.table.columns]


def _label(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else str(value)


def _cells(column: TableColumn, rows: np.ndarray) -> list[Any]:
    values = column.values[rows]
    if column.names is not None:
        return [None if v < 0 else column.names[int(v)] for v in values.tolist()]
    missing = np.isnan(values).tolist()
    if column.unit == DATE:
        return [None if m else column.cell(r) for r, m in zip(rows.tolist(), missing, strict=True)]
    return [
        None if m else int(v) if v.is_integer() else v
        for v, m in zip(values.tolist(), missing, strict=True)
    ]


def _coded(values: list[Any]) -> tuple[list[Any], list[str] | None, np.ndarray]:
    """Return values with text as numbers, the text, and the bytes that each value takes.

    A text is stored once. Its bytes count where it comes first.
    """
    texts: dict[str, int] = {}
    size = np.empty(len(values), dtype=np.int64)
    coded = []
    for place, value in enumerate(values):
        code, new = value, 0
        if isinstance(value, str):
            if value not in texts:
                texts[value] = len(texts)
                new = _bytes(value)
            code = texts[value]
        coded.append(code)
        size[place] = new + _bytes(code)
    return coded, list(texts) if texts else None, size


def _bytes(value: Any) -> int:
    """Return the bytes of a value in JSON and the comma after it."""
    if isinstance(value, str):
        return len(_safe(value).encode("utf-8", "surrogatepass")) + 1
    return len(str(value)) + 1


def _used(texts: list[str] | None, column: list[Any], most: int) -> list[str] | None:
    """Return the texts of the rows that are kept. They were numbered as they came."""
    if texts is None:
        return None
    return texts[: max((code for code in column[:most] if code is not None), default=-1) + 1]


def _safe(value: Any) -> str:
    """Return JSON that can stand in a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(UNSAFE)


def _file(report: HolesReport, number: int) -> str:
    """Return the name of a download, without its ending."""
    words = re.sub(r"[^a-z0-9]+", "-", title(report, report.clumps[number]).lower()).strip("-")
    return f"clump-{number + 1}-{words[:60].strip('-')}".rstrip("-")

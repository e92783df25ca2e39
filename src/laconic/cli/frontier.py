"""What ``laconic fit`` and ``laconic demo`` show of a search: its frontier and its choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

# Most models of a frontier that are shown.
MOST = 14


def frontier_of(model: Any) -> list[dict[str, Any]]:
    """Return the lines of the frontier, whether pandas is there or not."""
    lines = model.pareto_
    found: list[dict[str, Any]] = lines.to_dict("records") if hasattr(lines, "to_dict") else lines
    return found


def frontier_table(model: Any, X_test: Any, y_test: Any) -> Table:
    """Return a table of the frontier: bytes, scores and what the models are made of."""
    from rich import box
    from rich.table import Table

    accuracy = model.scoring is None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    heads = [f"bytes on\n{model.chip}", "cv error" if accuracy else f"cv {model.scoring}"]
    heads += ["test error"] * (X_test is not None) + ["atoms", "features", "bits", "pool"]
    for head in ["", *heads]:
        side: Any = "left" if head == "pool" else "right"
        table.add_column(head, justify=side, no_wrap=True)
    for line in _shown(frontier_of(model), model.bytes_):
        used = line["bytes"] == model.bytes_
        cells = [f"{line['bytes']:,}"]
        cells += [f"{100 * line['error']:.1f} %" if accuracy else f"{line['score']:.4f}"]
        if X_test is not None:
            wrong = 1.0 - model.at(line["bytes"]).score(X_test, y_test)
            cells += [f"{100 * wrong:.1f} %"]
        cells += [str(line[name]) for name in ("atoms", "features", "bits", "pool")]
        table.add_row("▶" if used else "", *cells, style="bold" if used else "")
    return table


def _shown(lines: list[dict[str, Any]], chosen: int) -> list[dict[str, Any]]:
    """Return the chosen model and some others, evenly spread."""
    if len(lines) <= MOST:
        return lines
    places = {round(k * (len(lines) - 1) / (MOST - 1)) for k in range(MOST)}
    return [
        line for place, line in enumerate(lines) if place in places or line["bytes"] == chosen
    ]  # fmt: skip

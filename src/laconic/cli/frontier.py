"""What ``laconic fit`` and ``laconic demo`` show of a search: its frontier and its choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

# Most models of a frontier that are shown.
MOST = 14


def frontier_table(model: Any, X_test: Any, y_test: Any) -> Table:
    """Return a table of the frontier: bytes, scores and what the models are made of."""
    from rich import box
    from rich.table import Table
    from sklearn.metrics import check_scoring

    from laconic.compact.tables import lines_of

    accuracy = model.scoring is None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    heads = [f"bytes on\n{model.chip}", "cv error" if accuracy else f"cv {model.scoring}"]
    test = "test error" if accuracy else f"test {model.scoring}"
    heads += [test] * (X_test is not None) + ["atoms", "features", "bits", "pool"]
    for head in ["", *heads]:
        side: Any = "left" if head == "pool" else "right"
        least = max(1, *map(len, head.split("\n")))
        # Only long names of pools take several lines.
        table.add_column(head, justify=side, no_wrap=head != "pool", min_width=least)
    scorer = check_scoring(model, model.scoring)
    lines = zip(lines_of(model.pareto_), model.frontier(), strict=True)
    for line, own in _shown(list(lines), model.bytes_):
        used = line["bytes"] == model.bytes_
        cells = [f"{line['bytes']:,}"]
        cells += [f"{100 * line['error']:.1f} %" if accuracy else f"{line['score']:.4f}"]
        if X_test is not None:
            score = scorer(own, X_test, y_test)
            cells += [f"{100 - 100 * score:.1f} %" if accuracy else f"{score:.4f}"]
        cells += [str(line[name]) for name in ("atoms", "features", "bits", "pool")]
        table.add_row("▶" if used else "", *cells, style="bold" if used else "")
    return table


def _shown(lines: list[Any], chosen: int) -> list[Any]:
    """Return the chosen model and some others, evenly spread."""
    if len(lines) <= MOST:
        return lines
    places = {round(k * (len(lines) - 1) / (MOST - 1)) for k in range(MOST)}
    return [
        line for place, line in enumerate(lines) if place in places or line[0]["bytes"] == chosen
    ]

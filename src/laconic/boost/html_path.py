"""A path as a table in HTML, for notebooks: what every size loses and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laconic.notebook import MOST_ROWS, box, cell, sentences, table

if TYPE_CHECKING:
    from laconic.boost.path import Path, PathEntry


def html_path(path: Path, most: int = MOST_ROWS) -> str:
    """Return the table of a path. Of many sizes, ``most`` evenly spaced ones are shown."""
    entries = path.entries
    places = np.unique(np.linspace(0, len(entries) - 1, most).round().astype(int))
    shown = [entries[place] for place in places]
    lines = [_facts(entry) for entry in shown]
    priced = any(entry.cost != entry.size for entry in shown)
    heads = [head for head in lines[0] if priced or head != "cost"]
    title = f"Path of {len(entries):,} models with {entries[0].size} to {entries[-1].size:,} atoms"
    parts = [
        sentences(title, strong=True),
        table(
            [cell(head, tag="th") for head in heads],
            ["".join(cell(line[head]) for head in heads) for line in lines],
        ),
    ]
    if len(shown) < len(entries):
        parts.append(sentences(f"{len(shown)} of {len(entries):,} sizes are shown."))
    last = entries[-1].size
    told = (
        "The loss is that of the training rows. The gap bounds how far loss and penalty together "
        f"are above their minimum for these atoms. path_[{last}] is the model of {last:,} atoms."
    )
    parts.append(sentences(told))
    return box(parts)


def _facts(entry: PathEntry) -> dict[str, str]:
    """Return the cells of a line, by heading."""
    cost = entry.predictor_cost
    facts = {
        "atoms": f"{entry.size:,}",
        "loss": f"{entry.loss:.4g}",
        "gap": f"{entry.certificate.gap:.1g}",
        "cost": f"{entry.cost:,.6g}",
        "features": f"{cost.features:,}",
        "operations": f"{cost.operations:,}",
        "bytes": f"{cost.bytes:,}",
    }
    if entry.footprint is not None:
        facts["bytes on the chip"] = f"{entry.footprint:,}"
    return {**facts, "seconds": f"{entry.seconds:.2f}"}

"""The tables of a search for people: all trials, the frontier, and why a model was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laconic.compact.frontier import Tried


def as_frame(lines: list[dict[str, Any]]) -> Any:
    """Return lines as a data frame, or as they are if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return lines
    return pd.DataFrame(lines)


def lines_of(table: Any) -> list[dict[str, Any]]:
    """Return the lines of a table, whether it is a data frame or not."""
    lines: list[dict[str, Any]] = table.to_dict("records") if hasattr(table, "to_dict") else table
    return lines


def trials_table(
    models: Sequence[Tried], titles: Sequence[str], alphas: Sequence[Any], priced: bool
) -> Any:
    """Return one line for each model that was tried. Costs are means over the folds.

    The price of features is a column only if users gave one.
    """
    return as_frame([
        {
            "rung": model.rung + 1,
            "rows": model.rows,
            "pool": titles[model.setting],
            "alpha": alphas[model.setting],
            "bits": model.bits,
            "atoms": model.atoms,
            "score": model.score,
            "standard_error": model.standard_error,
            "bytes": model.bytes,
            "operations": model.operations,
            "features": model.features,
            **({"cost": model.cost} if priced else {}),
        }
        for model in models
    ])  # fmt: skip


def frontier_table(
    points: Sequence[Any],
    titles: Sequence[str],
    alphas: Sequence[Any],
    accuracy: bool,
    priced: bool,
) -> Any:
    """Return one line for each model of the frontier, smallest first.

    The score is that of cross-validation. The costs are those of the model fitted to all rows.
    """
    lines = []
    for point in points:
        tried, costs = point.tried, point.costs
        scores = {"score": tried.score, "standard_error": tried.standard_error}
        lines.append({
            "bytes": point.bytes,
            **({"error": 1.0 - tried.score} if accuracy else {}),
            **scores,
            "pool": titles[tried.setting],
            "alpha": alphas[tried.setting],
            "bits": tried.bits,
            "atoms": costs.atoms,
            "operations": costs.operations,
            "features": costs.features,
            **({"cost": point.cost} if priced else {}),
        })  # fmt: skip
    return as_frame(lines)


def why_chosen(
    point: Any, title: str, found: Any, score_name: str, smallest: bool, budget: str
) -> str:
    """Say in words why a model was chosen."""
    tried = point.tried
    atoms = f"{point.costs.atoms} atom{'s' * (point.costs.atoms != 1)} of the pool {title}"
    rule = (
        "It is the smallest model within one standard error of the best that fits"
        if smallest
        else "It has the best score of all models that fit"
    )
    words = "float32" if tried.bits == 32 else f"{tried.bits} bits"
    return (
        f"Tried {len(found.models):,} models in {found.n_fits:,} fits; {found.status}. "
        f"{rule}{budget}: {atoms}, {words}, at most {point.bytes:,} bytes. Its {score_name} in "
        f"cross-validation is {tried.score:.4f} ± {tried.standard_error:.4f}."
    )

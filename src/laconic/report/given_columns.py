"""Columns of a table that any given model was fitted on, and what the model predicts."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from laconic.data.errors import UserError, cause


def _names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, if it knows them."""
    names = getattr(model, "feature_names_in_", getattr(model, "feature_names", None))
    return None if names is None else [str(name) for name in names]


def columns_of(model: Any, X: Any, kept: Any, file: str) -> Any:
    """Return the table's columns that the model was fitted on.

    A model that knows names finds its columns by name, whether they are ignored or not. For a
    Laconic model, only those that it reads must be there. A model without names gets all columns of
    the table, or those ``kept`` without the ignored ones, whichever has the right number.
    """
    names = _names(model)
    if names is None:
        return _by_number(model, X, kept, file)
    atoms = getattr(model, "map", None)
    reads = names if atoms is None else [names[f] for f in atoms.features()]
    absent = [name for name in reads if name not in X.columns]
    if absent:
        raise UserError(f"{file} has no column {absent[0]!r}, which the model reads.")
    return X[[name for name in names if name in X.columns]]


def predictions(model: Any, read: Any, file: str, way_out: str) -> tuple[Any, Any]:
    """Return the labels that the model predicts, and their probabilities if it has any.

    The model gets the columns that it was fitted on. ``way_out`` says what to do if it fails.
    """
    import numpy as np

    from laconic.data.frames import WrongCell
    from laconic.report.inputs import own_probability

    try:
        rows = read if _names(model) is not None else read.to_numpy()
        predicted = np.asarray(model.predict(rows))
        return predicted, own_probability(model, rows, predicted)
    except WrongCell as error:
        raise UserError(f"{file}: {error.of_table()}") from error
    except Exception as error:  # whatever another library's model raises
        raise UserError(
            f"the model cannot predict the rows of {file}: {cause(error)}{_hint(read)}.{way_out}"
        ) from error


def _hint(X: Any) -> str:
    """Return what to try if a model fails on columns of whole numbers, which may be codes."""
    numbers = X.select_dtypes("number")
    whole = [repr(name) for name in numbers if (numbers[name].dropna() % 1 == 0).all()]
    if not whole:
        return ""
    few = ", ".join(whole[:3]) + (", …" if whole[3:] else "")
    what = "is a number here" if len(whole) == 1 else "are numbers here"
    return (
        f"; if it was fitted on codes as text, such as 007, try --categorical COLUMN ({few} {what})"
    )


def _by_number(model: Any, X: Any, kept: Any, file: str) -> Any:
    """Return all columns or those kept, whichever are as many as the model was fitted on."""
    from laconic.model.card import count

    wanted = getattr(model, "n_features_in_", getattr(model, "n_features", None))
    if wanted is None or X.shape[1] == wanted:
        return X
    if kept.shape[1] == wanted:
        return kept
    ignored = X.shape[1] - kept.shape[1]
    beside = f", {kept.shape[1]} of them not ignored" if ignored else ""
    hint = ". Add --ignore for the others." if kept.shape[1] > wanted else "."
    raise UserError(
        f"the model knows no column names and was fitted on {count(wanted, 'column')}, but {file} "
        f"has {X.shape[1]} besides the labels{beside}{_surplus(kept, wanted) or hint}"
    )


def _surplus(kept: Any, wanted: int) -> str:
    """Suggest columns to ignore if the ``wanted`` others are named alike, such as pixel_0_0."""
    stems = [re.sub(r"\d+", "0", name) for name in kept.columns]
    common, number = Counter(stems).most_common(1)[0]
    odd = [repr(name) for name, stem in zip(kept.columns, stems, strict=True) if stem != common]
    return f". Add --ignore for {', '.join(odd)}." if odd and number == wanted else ""


def pixels_of(shape: tuple[int, int], read: Any, kept: Any, file: str) -> Any:
    """Return the columns to show as pictures: those of the model, or those kept of the table."""
    pixels = shape[0] * shape[1]
    models = [name for name in read.columns if name in kept.columns]
    if len(models) == pixels:
        return kept[models]
    if kept.shape[1] == pixels:
        return kept
    raise UserError(
        f"--image {shape[0]}x{shape[1]} means {pixels} pixels, but the model reads {len(models)} "
        f"columns of the {kept.shape[1]} in {file}{_surplus(kept, pixels)}"
    )

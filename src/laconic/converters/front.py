"""Steps in front of a model: scalers, imputers, encoders, selected columns.

Each function takes a fitted step and the columns in front of it, and returns those behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from laconic.converters.columns import (
    Affine,
    Answer,
    Column,
    Question,
    Value,
    WordCodes,
    is_plain,
    same,
)
from laconic.data.frames import is_missing
from laconic.model.conditions import EQUAL, MISSING

Columns = list[Column]


def after(step: Any, columns: Columns, words: WordCodes) -> Columns:
    """Return the columns behind a fitted step."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    expected = getattr(step, "n_features_in_", len(columns))
    if expected != len(columns):
        raise ValueError(f"{type(step).__name__} expects {expected} columns, not {len(columns)}")
    for kind in type(step).__mro__:
        if kind.__name__ in _STEPS and kind.__module__.startswith("sklearn."):
            return _STEPS[kind.__name__](step, columns, words)
    known = ", ".join(sorted(name for name in _STEPS if not name.endswith("Mixin")))
    raise TypeError(
        f"a step {type(step).__name__} in front of a model cannot be converted; known steps are "
        f"{known}, and selectors of columns"
    )


def _pipeline(step: Any, columns: Columns, words: WordCodes) -> Columns:
    for _, inner in step.steps:
        columns = after(inner, columns, words)
    return columns


def _column_transformer(step: Any, columns: Columns, words: WordCodes) -> Columns:
    if step.transformer_weights:
        raise ValueError("a ColumnTransformer with transformer_weights cannot be converted")
    read, out = step._transformer_to_input_indices, []
    for name, inner, _ in step.transformers_:
        if isinstance(inner, str) and inner == "drop":
            continue
        out += after(inner, [columns[place] for place in read[name]], words)
    return out


def _selector(step: Any, columns: Columns, words: WordCodes) -> Columns:
    return [columns[place] for place in step.get_support(indices=True)]


def _function(step: Any, columns: Columns, words: WordCodes) -> Columns:
    """Take a `FunctionTransformer` that changes nothing, as a ColumnTransformer makes one."""
    if step.func is not None:
        raise TypeError(
            "a FunctionTransformer cannot be converted, because its function may do anything; "
            "apply the function to the table before the pipeline"
        )
    return columns


# -- scalers ---------------------------------------------------------------------------------------


def _scaled(columns: Columns, subtract: Any, divide: Any) -> Columns:
    """Return (column − subtract) / divide, where either may be None."""
    n = len(columns)
    centres = np.zeros(n) if subtract is None else np.asarray(subtract, dtype=np.float64)
    scales = np.ones(n) if divide is None else np.asarray(divide, dtype=np.float64)

    def step(centre: float, scale: float) -> Affine:
        return Affine(lambda x: (x - centre) / scale, 1.0 / scale, -centre / scale)

    return [
        column.then(step(centre, scale))
        for column, centre, scale in zip(columns, centres, scales, strict=True)
    ]


def _clipped(columns: Columns, low: float, high: float) -> Columns:
    return [column.then(lambda x: np.clip(x, low, high)) for column in columns]


def _standard(step: Any, columns: Columns, words: WordCodes) -> Columns:
    mean = step.mean_ if step.with_mean else None
    return _scaled(columns, mean, step.scale_ if step.with_std else None)


def _robust(step: Any, columns: Columns, words: WordCodes) -> Columns:
    centre = step.center_ if step.with_centering else None
    return _scaled(columns, centre, step.scale_ if step.with_scaling else None)


def _largest(step: Any, columns: Columns, words: WordCodes) -> Columns:
    scaled = _scaled(columns, None, step.scale_)
    return _clipped(scaled, -1.0, 1.0) if getattr(step, "clip", False) else scaled


def _range(step: Any, columns: Columns, words: WordCodes) -> Columns:
    def one(factor: float, offset: float) -> Affine:
        return Affine(lambda x: x * factor + offset, factor, offset)

    pairs = zip(columns, step.scale_.tolist(), step.min_.tolist(), strict=True)
    scaled = [column.then(one(factor, offset)) for column, factor, offset in pairs]
    return _clipped(scaled, *map(float, step.feature_range)) if step.clip else scaled


# -- missing values --------------------------------------------------------------------------------


def _imputer(step: Any, columns: Columns, words: WordCodes) -> Columns:
    out: Columns = []
    for column, statistic in zip(columns, step.statistics_, strict=True):
        if not (is_missing(statistic) and not step.keep_empty_features):
            out.append(_imputed(column, step.missing_values, statistic))
    if step.add_indicator:
        out += [_gap(columns[place], step.missing_values) for place in step.indicator_.features_]
    return out


def _imputed(column: Column, gap: Any, statistic: Any) -> Column:
    """Return a column with a statistic in place of the values that count as missing."""
    if not isinstance(column, Value):
        return column
    number = statistic if isinstance(statistic, str) else float(statistic)
    if not is_missing(gap):
        _check_gap(column, gap)
        lost = column.missing is not None and same(column.missing, gap)
        column = replace(column, swapped=((float(gap), number),))
        return replace(column, missing=number, fill=number) if lost else column
    if column.missing is not None:
        return column
    fill = number
    if column.steps and all(isinstance(step, Affine) for step in column.steps):
        factor, offset = column.affine()
        fill = (float(number) - offset) / factor
    return replace(column, missing=number, fill=fill)


def _gap(column: Column, gap: Any) -> Column:
    """Return the column that says whether a value counts as missing."""
    if not isinstance(column, Value):
        return Answer(0, ())
    if not is_missing(gap):
        _check_gap(column, gap)
        return Answer(column.feature, (Question(EQUAL, float(gap)),))
    return Answer(column.feature, (Question(MISSING, 0.0),) if column.missing is None else ())


def _check_gap(column: Value, gap: Any) -> None:
    if isinstance(gap, str) or column.steps or column.swapped:
        raise ValueError(
            f"SimpleImputer(missing_values={gap!r}) cannot be converted here; only NaN and, as the "
            "first step, a number can stand for missing values"
        )


# -- categories ------------------------------------------------------------------------------------


def _one_hot(step: Any, columns: Columns, words: WordCodes) -> Columns:
    out: Columns = []
    dropped = [None] * len(columns) if step.drop_idx_ is None else step.drop_idx_
    rare = getattr(step, "infrequent_categories_", [None] * len(columns))
    joins = step.handle_unknown in ("infrequent_if_exist", "warn")
    for column, known, drop, few in zip(columns, step.categories_, dropped, rare, strict=True):
        if not is_plain(column):
            raise ValueError("a OneHotEncoder behind a scaler or an encoder cannot be converted")
        out += _encoded(column, list(known), drop, [] if few is None else list(few), joins, words)
    return out


def _encoded(
    column: Any, known: list[Any], drop: Any, rare: list[Any], joins: bool, words: WordCodes
) -> list[Answer]:
    """Return the columns of one encoded feature: frequent categories, then all others as one."""
    if sum(map(is_missing, known)) > 1:
        raise ValueError(
            "a OneHotEncoder that tells None from NaN cannot be converted; use one of them"
        )
    if column.missing is not None and any(map(is_missing, known)):
        raise ValueError(
            "a SimpleImputer fills NaN but not None, so the OneHotEncoder behind it has a category "
            "None, which cannot be converted; replace None by NaN before you fit"
        )
    groups = [[category] for category in known if not any(same(category, few) for few in rare)]
    groups += [rare] if rare else []
    asked = [[q for c in group for q in questions(column, c, words)] for group in groups]
    out = []
    for number, group in enumerate(groups):
        if drop is not None and any(same(known[drop], category) for category in group):
            continue
        if joins and rare and number == len(groups) - 1:  # also what no category equals
            others = [q for own in asked[:-1] for q in own]
            out.append(Answer(column.feature, tuple(others), no=1.0, yes=0.0))
        else:
            out.append(Answer(column.feature, tuple(asked[number])))
    return out


def questions(column: Value, category: Any, words: WordCodes) -> list[Question]:
    """Return the questions of which one holds if a column without steps equals a category."""
    out = [
        Question(EQUAL, words.number(column.feature, x))
        for x, z in column.swapped
        if same(z, category)
    ]
    lost = np.nan if column.missing is None else column.missing
    if same(lost, category):
        out.append(Question(MISSING, 0.0))
    if not is_missing(category) and not any(same(x, category) for x, _ in column.swapped):
        out.append(Question(EQUAL, words.number(column.feature, category)))
    return out


_STEPS: dict[str, Callable[[Any, Columns, WordCodes], Columns]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "SelectorMixin": _selector,
    "FunctionTransformer": _function,
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MinMaxScaler": _range,
    "MaxAbsScaler": _largest,
    "SimpleImputer": _imputer,
    "OneHotEncoder": _one_hot,
}

"""Conditions of stumps and rules in codes of the inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.model.conditions import ABOVE, EQUAL, MISSING
from laconic.model.input_codes import Inputs
from laconic.model.segments import SIDES, Segment


class CodedValues(NamedTuple):
    """Values to compare codes with, and which of the conditions any code meets."""

    codes: np.ndarray
    possible: np.ndarray


class Comparer:
    """Expresses thresholds and categories in codes, by what some rows answer.

    Parameters
    ----------
    inputs : Inputs
    rows, codes : array of shape (n_rows, n_read)
        The values of some rows, and their codes.
    far : int
        Largest size of a code of a value.
    """

    def __init__(self, inputs: Inputs, rows: np.ndarray, codes: np.ndarray, far: int) -> None:
        self.inputs, self.rows, self.codes, self.far = inputs, rows, codes, far
        self.scale = inputs.scale
        self.origin = (inputs.base - inputs.low) / self.scale  # x = origin + code / scale

    def nearest(self, place: int, value: float) -> int:
        """Return the code of a number, also beyond the smallest and largest codes."""
        code = (value - self.origin[place]) * self.scale[place]
        return round(min(max(code, -self.far), self.far))

    def thresholds(self, of: np.ndarray, cuts: np.ndarray, above: np.ndarray) -> CodedValues:
        """Return the last code that is at most a threshold, or the first code above it."""
        low, high = self.inputs.low[of], self.inputs.high[of]
        if self.inputs.given == "float":
            codes = np.array([self._cut(f, v) for f, v in zip(of, cuts, strict=True)], np.int64)
        else:
            codes = np.floor(np.clip(cuts, low - 1.0, high + 1.0)).astype(np.int64)
        codes = codes + above
        possible = np.where(above, codes <= high, codes >= low)
        return CodedValues(np.clip(codes, low, high), possible)

    def _cut(self, place: int, value: float) -> int:
        """Return the code up to which a row answers yes, by what the rows at hand answer."""
        low, high = int(self.inputs.low[place]), int(self.inputs.high[place])
        known = ~np.isnan(self.rows[:, place])
        codes, yes = self.codes[known, place], self.rows[known, place] <= value
        nominal = min(max(self.nearest(place, value), low - 1), high)
        tried = [nominal, nominal - 1]
        tried += [int(codes[yes].max())] if yes.any() else []
        tried += [int(codes[~yes].min()) - 1] if not yes.all() else []
        wrong = [np.count_nonzero((codes <= code) != yes) for code in tried]
        return tried[int(np.argmin(wrong))]

    def categories(self, of: np.ndarray, values: np.ndarray) -> CodedValues:
        """Return the codes of categories. NaN is the code of missing values."""
        low, high = self.inputs.low[of], self.inputs.high[of]
        lost = np.isnan(values)
        codes = np.full(len(of), self.inputs.missing or 0)
        for j in np.flatnonzero(~lost):
            codes[j] = self.nearest(of[j], values[j])
        whole = lost | (self.inputs.given == "float") | (values == np.rint(values))
        known = whole & (lost | ((codes >= low) & (codes <= high)))
        return CodedValues(np.where(known, codes, low), known)

    # -- segments ------------------------------------------------------------------------------

    def at_most(self, segment: Segment) -> Segment:
        """Return stumps v ≤ θ in codes."""
        of, cuts = segment.tables["feature"], segment.tables["value"]
        return _compared(segment, self.thresholds(of, cuts, np.zeros(len(of), dtype=bool)))

    def equals(self, segment: Segment) -> Segment:
        """Return stumps v = c in codes."""
        of, values = segment.tables["feature"], segment.tables["value"]
        return _compared(segment, self.categories(of, values))

    def rules(self, segment: Segment) -> Segment:
        """Return rules in codes. The condition v > θ becomes code ≥ value."""
        tables, possible = dict(segment.tables), np.ones(segment.n_atoms, dtype=bool)
        for side in SIDES:
            of, values, test = (tables[f"{side}{part}"] for part in ("", "_value", "_test"))
            codes, equal = np.empty(len(of), dtype=np.int64), test == EQUAL
            for where, found in (
                (equal, self.categories(of[equal], values[equal])),
                (~equal, self.thresholds(of[~equal], values[~equal], test[~equal] == ABOVE)),
            ):
                codes[where] = found.codes
                possible[where] &= found.possible
            tables[f"{side}_value"] = codes
        return segment._replace(tables=tables, weights=_kept(segment, possible))


def _compared(stumps: Segment, found: CodedValues) -> Segment:
    """Return stumps that compare codes with these values."""
    tables = stumps.tables | {"value": found.codes}
    return stumps._replace(tables=tables, weights=_kept(stumps, found.possible))


def _kept(segment: Segment, possible: np.ndarray) -> np.ndarray:
    """Return weights that are 0 for atoms which are 0 for every input."""
    return np.where(possible[:, None], segment.weights, 0.0)


def without_missing(segments: list[Segment]) -> list[Segment]:
    """Return segments in which "is missing" is the question "equals NaN"."""
    segments = [_equal_nan(s) if s.kind == "rules" else s for s in segments]
    kinds = {segment.kind: segment for segment in segments if segment.kind in ("equals", "missing")}
    if "missing" not in kinds:
        return segments
    lost = kinds["missing"]
    tables = {**lost.tables, "value": np.full(lost.n_atoms, np.nan)}
    lost = lost._replace(kind="equals", tables=tables)
    if "equals" not in kinds:
        return [lost if segment.kind == "missing" else segment for segment in segments]
    both = _interleaved(kinds["equals"], lost)
    out = [both if segment.kind == "equals" else segment for segment in segments]
    return [segment for segment in out if segment.kind != "missing"]


def _equal_nan(rules: Segment) -> Segment:
    tables = dict(rules.tables)
    for side in SIDES:
        test, value = tables[f"{side}_test"], tables[f"{side}_value"]
        tables[f"{side}_value"] = np.where(test == MISSING, np.nan, value)
        tables[f"{side}_test"] = np.where(test == MISSING, EQUAL, test)
    return rules._replace(tables=tables)


def _interleaved(first: Segment, second: Segment) -> Segment:
    """Return the atoms of two segments of the same kind, leaf by leaf."""
    n = first.n_atoms
    order: list[int] = []
    for leaf in range(len(first.starts) - 1):
        order += range(first.starts[leaf], first.starts[leaf + 1])
        order += range(n + second.starts[leaf], n + second.starts[leaf + 1])
    tables = {
        name: np.concatenate([first.tables[name], second.tables[name]])[order]
        for name in first.tables
    }
    weights = np.concatenate([first.weights, second.weights])[order]
    return Segment(first.kind, tables, weights, first.starts + second.starts)

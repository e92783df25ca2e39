"""What the columns are that the last step of a pipeline sees.

A column is either a number that follows from one input, or the answer to a question about one
input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from laconic.converters.terms import TermSums
from laconic.converters.thresholds import Step, largest_below, through
from laconic.data.frames import is_missing
from laconic.model.conditions import EQUAL


@dataclass(frozen=True)
class Affine:
    """A step a·x + b, with a > 0, and how the model computes it."""

    step: Step
    factor: float
    offset: float

    def __call__(self, value: Any) -> Any:
        """Return a number after the step."""
        return self.step(value)


Curve = Callable[[float], np.ndarray]
"""What a model adds to its scores for a number. It is also asked for NaN."""


@dataclass(frozen=True)
class Value:
    """The number of an input after some steps.

    ``missing`` is the number of a missing input after all steps, or None if it stays missing.
    ``fill`` is the input that would give the same number. ``swapped`` holds inputs that are
    replaced by another number: the input, and the number after all steps.
    """

    feature: int
    steps: tuple[Step, ...] = ()
    missing: Any = None
    fill: Any = None
    swapped: tuple[tuple[float, Any], ...] = ()

    def then(self, step: Step) -> Value:
        """Return the column after one more step."""
        moved = tuple((x, through((step,), z)) for x, z in self.swapped)
        lost = None if self.missing is None else through((step,), self.missing)
        return replace(self, steps=(*self.steps, step), missing=lost, swapped=moved)

    def add_linear(self, terms: TermSums, weights: np.ndarray) -> None:
        """Add weights times the column."""
        factor, offset = self.affine()
        terms.column(self.feature, weights * factor, self.fill)
        terms.constant = terms.constant + weights * offset
        for x, z in self.swapped:
            terms.equal(self.feature, x, weights * (z - (factor * x + offset)))

    def affine(self) -> tuple[float, float]:
        """Return a and b such that the column is a·x + b."""
        factor, offset = 1.0, 0.0
        for step in self.steps:
            if not isinstance(step, Affine):
                raise ValueError(
                    "a scaler with clip=True in front of a linear model cannot be converted, "
                    "because a clipped column is not linear; fit it with clip=False"
                )
            factor, offset = factor * step.factor, offset * step.factor + step.offset
        return factor, offset

    def add_curve(self, terms: TermSums, cuts: list[float], curve: Curve) -> None:
        """Add a function that is constant between cuts. A cut belongs to the numbers below it.

        ``curve`` also says what a missing number adds. If that is NaN, the model refuses it.
        """
        last = curve(float(np.nextafter(max(cuts), np.inf)))
        terms.constant = terms.constant + last
        for cut in sorted(cuts):
            step = curve(cut) - curve(float(np.nextafter(cut, np.inf)))
            terms.at_most(self.feature, largest_below(self.steps, cut), step)
        lost = curve(np.nan if self.missing is None else float(self.missing))
        if not np.isnan(lost).any():
            terms.missing(self.feature, lost - last)
        for x, z in self.swapped:
            gap = curve(float(z)) - curve(float(through(self.steps, np.float64(x))))
            terms.equal(self.feature, x, gap)


class Question(NamedTuple):
    """Is an input equal to a value, or missing? See `laconic.model.primitives.Compare`."""

    test: int
    value: float


@dataclass(frozen=True)
class Answer:
    """``yes`` if one of some questions about an input holds, else ``no``. At most one may hold."""

    feature: int
    questions: tuple[Question, ...]
    no: float = 0.0
    yes: float = 1.0

    def then(self, step: Step) -> Answer:
        """Return the column after one more step."""
        no, yes = (float(through((step,), np.float64(v))) for v in (self.no, self.yes))
        return replace(self, no=no, yes=yes)

    def add_linear(self, terms: TermSums, weights: np.ndarray) -> None:
        """Add weights times the column."""
        self._add(terms, weights * self.no, weights * self.yes)

    def add_curve(self, terms: TermSums, cuts: list[float], curve: Curve) -> None:
        """Add a function that is constant between cuts."""
        self._add(terms, curve(self.no), curve(self.yes))

    def _add(self, terms: TermSums, no: np.ndarray, yes: np.ndarray) -> None:
        terms.constant = terms.constant + no
        for question in self.questions:
            if question.test == EQUAL:
                terms.equal(self.feature, question.value, yes - no)
            else:
                terms.missing(self.feature, yes - no)


Column = Value | Answer


@dataclass
class WordCodes:
    """The codes of the words of each feature that holds text."""

    codes: dict[int, dict[str, int]] = field(default_factory=dict)

    def number(self, feature: int, category: Any) -> float:
        """Return a category as the number that a predictor compares with: itself, or a code."""
        if isinstance(category, str):
            known = self.codes.setdefault(feature, {})
            return float(known.setdefault(category, len(known)))
        if feature in self.codes:
            raise ValueError(f"categories of column {feature} are both text and numbers")
        try:
            return float(category)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"categories must be numbers or text, not {type(category).__name__}"
            ) from error


def is_plain(column: Column) -> bool:
    """Return whether a column is an input as it is, apart from filled gaps."""
    return isinstance(column, Value) and not column.steps


def same(first: Any, second: Any) -> bool:
    """Return whether two categories are the same. All missing values are the same."""
    if is_missing(first) or is_missing(second):
        return is_missing(first) and is_missing(second)
    return isinstance(first, str) == isinstance(second, str) and bool(first == second)

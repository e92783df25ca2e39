"""Rules on new rows: two conditions that must both hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from laconic.files.layout import Array
from laconic.model.conditions import (
    ABOVE,
    CONDITION_KINDS,
    categories_asked,
    condition_writer,
    passes,
)
from laconic.model.distinct_names import quoted_if_alike
from laconic.model.feature_maps import SUM, Labels, Names
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.primitives import check_lengths, take, whole


class Condition(NamedTuple):
    """A condition on one feature.

    ``kind`` is ``"le"`` for v ≤ value, ``"gt"`` for v > value, ``"eq"`` for v = value (a category)
    and ``"missing"`` for a missing v. A missing v meets only the last.
    """

    feature: int
    value: float = 0.0
    kind: str = "le"


class RuleAtom(NamedTuple):
    """A rule: 1 if two conditions hold, on two different features, and 0 otherwise."""

    first: Condition
    second: Condition

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return (self.first.feature, self.second.feature)

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1


class Both(Primitive):
    """Pairs of conditions: column j is 1 if both conditions of rule j hold, and 0 otherwise.

    Parameters
    ----------
    first, first_value, first_test : array of shape (n_columns,)
        The first condition of rule j is about x = x[first[j]]. It is x ≤ value for test 0,
        x = value for test 1, "x is missing" for test 2, and x > value for test 3. A missing x meets
        only the condition of test 2.
    second, second_value, second_test : array of shape (n_columns,)
        The second condition.
    """

    fields = ("first", "first_value", "first_test", "second", "second_value", "second_test")

    def __init__(
        self,
        first: Any,
        first_value: Any,
        first_test: Any,
        second: Any,
        second_value: Any,
        second_test: Any,
    ) -> None:
        self.first, self.second = whole(first), whole(second)
        self.first_value = np.asarray(first_value, dtype=np.float64)
        self.second_value = np.asarray(second_value, dtype=np.float64)
        self.first_test = np.asarray(first_test, dtype=np.uint8)
        self.second_test = np.asarray(second_test, dtype=np.uint8)
        check_lengths(self, **self.arrays())
        for test in (self.first_test, self.second_test):
            if test.max(initial=0) > ABOVE:
                raise ValueError(f"a test must be 0, 1, 2 or 3, not {int(test.max())}")

    @property
    def n_columns(self) -> int:
        """Number of columns, one per rule."""
        return len(self.first)

    def columns(self, X: Any) -> np.ndarray:
        """Return the answers on new rows, 0 or 1, in the type of the rows if it is a float."""
        v = take(X, self.first)
        dtype = v.dtype if v.dtype.kind == "f" else np.dtype(np.float64)
        both = passes(v, self.first_value, self.first_test)
        both &= passes(take(X, self.second), self.second_value, self.second_test)
        return both.astype(dtype)

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return np.unique(np.concatenate([self.first, self.second]))

    def operations(self) -> int:
        """Return the number of comparisons, two per rule."""
        return 2 * len(self.first)


class RulesMap(LoweredMap):
    """Rules, each with the column 1[both of its conditions hold]. See `Both` for the arrays."""

    kind = "rules"
    allows_missing = True
    worth = "A rule is 1 if both of its conditions hold and 0 otherwise."
    reading = f"{worth} A class adds up the weights of the rules that are 1 and {SUM}"
    points = "A rule gives its points if both of its conditions hold. "
    layout: ClassVar[dict[str, Array]] = {
        "first": Array("i", ("columns",), 0, below="features"),
        "first_value": Array("f", ("columns",)),
        "first_test": Array("i", ("columns",), 0, len(CONDITION_KINDS) - 1),
        "second": Array("i", ("columns",), 0, below="features"),
        "second_value": Array("f", ("columns",)),
        "second_test": Array("i", ("columns",), 0, len(CONDITION_KINDS) - 1),
    }

    def __init__(
        self,
        first: np.ndarray,
        first_value: np.ndarray,
        first_test: np.ndarray,
        second: np.ndarray,
        second_value: np.ndarray,
        second_test: np.ndarray,
    ) -> None:
        self._both = Both(first, first_value, first_test, second, second_value, second_test)

    @classmethod
    def of(cls, rules: list[RuleAtom]) -> RulesMap:
        """Return the map of some rules."""
        sides: list[np.ndarray] = []
        for conditions in ([rule.first for rule in rules], [rule.second for rule in rules]):
            sides += [
                np.array([c.feature for c in conditions], dtype=np.int64),
                np.array([c.value for c in conditions], dtype=np.float64),
                np.array([CONDITION_KINDS.index(c.kind) for c in conditions], dtype=np.uint8),
            ]
        return cls(*sides)

    def lower(self) -> list[Primitive]:
        """Return the rules as one `Both`."""
        return [self._both]

    def _conditions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features, values and tests of all conditions: first ones, then second ones."""
        b = self._both
        return (
            np.concatenate([b.first, b.second]),
            np.concatenate([b.first_value, b.second_value]),
            np.concatenate([b.first_test, b.second_test]),
        )

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return names such as ``workclass = Local-gov and age > 45``."""
        conditions = self._conditions()
        write_all, n = condition_writer(*conditions, feature_names, categories), self.n_columns

        def write(name: Callable[[str], str]) -> list[str]:
            words = write_all(name)
            return [f"{a} and {b}" for a, b in zip(words[:n], words[n:], strict=True)]

        listed = np.stack([part.reshape(2, n) for part in conditions]).reshape(6, n)
        return quoted_if_alike(write, len(set(map(tuple, listed.T.tolist()))))

    def asked(self) -> dict[int, set[int]]:
        """Return the category codes that the rules ask about, for each feature."""
        return categories_asked(*self._conditions())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return self._both.arrays()

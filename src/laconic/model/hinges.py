"""Hinges on new rows: max(0, ⟨v, x⟩ − b), where the direction v reads one input or several."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from laconic.files.layout import Array
from laconic.model.distinct_names import fewest_digits
from laconic.model.feature_maps import SUM, Labels, Names, feature_name
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.primitives import check_lengths, take, whole
from laconic.numeric.threads import row_blocks

# Rows whose projections are computed together.
TOGETHER = 4096
# Most terms that the name of a hinge shows. More are counted, unless names would then be alike.
SHOWN = 4


class HingeAtom(NamedTuple):
    """A hinge: max(0, Σ_t values[t] · x[features[t]] − knot)."""

    features: tuple[int, ...]
    values: tuple[float, ...]
    knot: float

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features the atom reads."""
        return self.features

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1


class Hinge(Primitive):
    """Hinges: column j is max(0, Σ_t value[t] · x[feature[t]] − knot[j]) over its own terms t.

    The terms of all hinges follow each other: the first ``length[0]`` terms are those of hinge 0.

    Parameters
    ----------
    length : array of shape (n_columns,)
        Number of terms of every hinge.
    feature, value : array of shape (n_terms,)
    knot : array of shape (n_columns,)

    Attributes
    ----------
    directions : sparse matrix of shape (n_distinct, features that are read)
        The distinct directions. Their columns are the features of `reads`.
    which : ndarray of shape (n_columns,)
        The direction of every hinge.

    Examples
    --------
    Two hinges: max(0, x0 − 1), and max(0, 2 − x0 − x1).

    >>> hinges = Hinge([1, 2], [0, 0, 1], [1.0, -1.0, -1.0], [1.0, -2.0])
    >>> hinges.columns(np.array([[3.0, -2.0], [0.0, 0.5]])).tolist()
    [[2.0, 1.0], [0.0, 1.5]]
    """

    fields = ("length", "feature", "value", "knot")

    def __init__(self, length: Any, feature: Any, value: Any, knot: Any) -> None:
        self.length, self.feature = whole(length), whole(feature)
        self.value = np.asarray(value, dtype=np.float64)
        self.knot = np.asarray(knot, dtype=np.float64)
        check_lengths(self, length=self.length, knot=self.knot)
        check_lengths(self, feature=self.feature, value=self.value)
        total = int(self.length.sum())
        if total != len(self.feature) or self.length.min(initial=0) < 0:
            raise ValueError(
                f"the length of every hinge must be its number of terms; there are "
                f"{len(self.feature)} terms, but the lengths add up to {total}"
            )
        self._reads, place = np.unique(self.feature, return_inverse=True)
        self.directions, self.which = self._distinct(place.reshape(-1))

    def _distinct(self, place: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the distinct directions as a sparse matrix, and which one every hinge has."""
        ends = np.cumsum([0, *self.length])
        found: dict[tuple[bytes, bytes], int] = {}
        which, first = np.empty(len(self.length), dtype=np.int64), list[int]()
        for j, (a, b) in enumerate(pairwise(ends)):
            key = place[a:b].tobytes(), self.value[a:b].tobytes()
            which[j] = found.setdefault(key, len(found))
            if which[j] == len(first):
                first.append(j)
        terms = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in first] or [place[:0]])
        starts = np.cumsum([0, *self.length[first]])
        directions = sparse.csr_matrix(
            (self.value[terms], place[terms], starts), shape=(len(first), len(self._reads))
        )
        return directions, which

    @property
    def n_columns(self) -> int:
        """Number of hinges."""
        return len(self.knot)

    def columns(self, X: Any) -> np.ndarray:
        """Return the values on new rows in float64. A missing value stays missing."""
        out = np.empty((X.shape[0], self.n_columns))
        if self.n_columns == 0:
            return out
        for s in row_blocks(X.shape[0], TOGETHER):
            rows = take(X[s], self._reads)
            with np.errstate(over="ignore", invalid="ignore"):
                # A sparse product adds the terms in their order, whatever the other rows are.
                along = self.directions @ np.ascontiguousarray(rows.T, dtype=np.float64)
                np.subtract(along[self.which].T, self.knot, out=out[s])
                np.maximum(out[s], 0.0, out=out[s])
            self._check_overflow(rows, out[s], s.start)
        return out

    def _check_overflow(self, rows: np.ndarray, found: np.ndarray, first: int) -> None:
        """Refuse rows of finite numbers in which a hinge overflows."""
        if np.isfinite(found).all():
            return
        over = np.isfinite(rows).all(axis=1) & ~np.isfinite(found).all(axis=1)
        if over.any():
            raise ValueError(
                f"a hinge overflows in row {first + int(over.argmax())} of X; give X in the units "
                "of the training rows"
            )

    def reads(self) -> np.ndarray:
        """Return the sorted distinct features that are read."""
        return self._reads

    def operations(self) -> int:
        """Count a multiplication per term and a comparison per hinge."""
        return len(self.feature) + self.n_columns


class HingesMap(LoweredMap):
    """Hinges of directions in the units of the input. See `Hinge` for the arrays."""

    kind = "hinges"
    worth = "A hinge max(0, u) is u where u is positive, and 0 elsewhere."
    reading = f"{worth} A class adds up weight × hinge for every atom and {SUM}"
    points = "An atom gives its points times its value. "
    layout: ClassVar[dict[str, Array]] = {
        "length": Array("i", ("columns",), 0, "terms"),
        "feature": Array("i", ("terms",), 0, below="features"),
        "value": Array("f", ("terms",)),
        "knot": Array("f", ("columns",)),
    }

    def __init__(
        self, length: np.ndarray, feature: np.ndarray, value: np.ndarray, knot: np.ndarray
    ) -> None:
        self._hinge = Hinge(length, feature, value, knot)

    @classmethod
    def of(cls, hinges: list[HingeAtom]) -> HingesMap:
        """Return the map of some hinges."""
        return cls(
            np.array([len(hinge.features) for hinge in hinges], dtype=np.int64),
            np.array([f for hinge in hinges for f in hinge.features], dtype=np.int64),
            np.array([v for hinge in hinges for v in hinge.values], dtype=np.float64),
            np.array([hinge.knot for hinge in hinges], dtype=np.float64),
        )

    def lower(self) -> list[Primitive]:
        """Return the hinges as one `Hinge`."""
        return [self._hinge]

    def atoms(self) -> list[HingeAtom]:
        """Return the records of the hinges."""
        hinge, ends = self._hinge, np.cumsum([0, *self._hinge.length])
        return [
            HingeAtom(tuple(hinge.feature[a:b].tolist()), tuple(hinge.value[a:b].tolist()), knot)
            for a, b, knot in zip(ends[:-1], ends[1:], hinge.knot.tolist(), strict=True)
        ]

    def take(self, atoms: Any) -> HingesMap:
        """Return the map of some of the hinges, in the order given."""
        known = self.atoms()
        return HingesMap.of([known[place] for place in atoms])

    def beside(self, other: HingesMap) -> HingesMap:
        """Return the map of these hinges and then those of another map."""
        return HingesMap.of([*self.atoms(), *other.atoms()])

    def names(self, feature_names: Names = None, categories: Labels = None) -> list[str]:
        """Return names such as ``max(0, 0.8·petal length − 0.6·x3 − 1.2)``.

        A long direction shows only its largest terms.
        """
        atoms = self.atoms()
        different = len(set(atoms))

        def write(digits: int, shown: int = SHOWN) -> list[str]:
            return [written(atom, feature_names, digits, shown) for atom in atoms]

        names = fewest_digits(write, different, 3)
        if len(set(names)) >= different:
            return names
        longest = int(self._hinge.length.max(initial=0))
        return fewest_digits(lambda digits: write(digits, longest), different, 3)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        return self._hinge.arrays()


def written(atom: HingeAtom, feature_names: Names, digits: int, shown: int) -> str:
    """Return a hinge in words. Only the ``shown`` largest terms are written.

    Examples
    --------
    >>> written(HingeAtom((3,), (-1.0,), -2.5), None, 3, 4)
    'max(0, 2.5 − x3)'
    >>> written(HingeAtom((0, 1, 2), (0.8, -0.61, 0.1), 1.2), ["a", "b", "c"], 3, 2)
    'max(0, 0.8·a − 0.61·b + 1 more − 1.2)'
    """

    def number(value: float) -> str:
        return f"{abs(value):.{digits}g}"

    def term(place: int) -> tuple[bool, str]:
        value, name = atom.values[place], feature_name(atom.features[place], feature_names)
        factor = number(value)
        return value < 0, name if factor == "1" else f"{factor}·{name}"

    order = np.argsort(-np.abs(atom.values), kind="stable")[:shown]
    parts = [term(place) for place in sorted(order.tolist())]
    hidden = len(atom.features) - len(parts)
    parts += [(False, f"{hidden} more")] * (hidden > 0)
    if atom.knot or not parts:
        constant = atom.knot > 0, number(atom.knot)
        leads = bool(parts) and parts[0][0] and not constant[0]  # no minus comes first then
        parts = [constant, *parts] if leads else [*parts, constant]
    return f"max(0, {_joined(parts)})"


def _joined(parts: list[tuple[bool, str]]) -> str:
    """Return terms with their signs. The first term has a sign only if it is negative."""
    text = "".join(f" {'−' if negative else '+'} {word}" for negative, word in parts)
    return f"−{text[3:]}" if parts[0][0] else text[3:]

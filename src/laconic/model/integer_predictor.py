"""A predictor whose scores are computed with integers only, as a small chip computes them."""

from __future__ import annotations

import textwrap
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from laconic.losses import decide
from laconic.model.choose_codes import ARITHMETIC, uses
from laconic.model.cost import Cost
from laconic.model.feature_maps import GAPS, feature_name
from laconic.model.input_codes import given_type
from laconic.model.integers import IntegerProgram
from laconic.model.predictor import Predictor
from laconic.model.primitives import take
from laconic.model.proof import Bound, bounds
from laconic.model.quantise import integers_of
from laconic.notebook import MOST_ROWS, folded
from laconic.registry import TABLE_BYTES, find

# Most inputs whose ranges are printed.
MOST_INPUTS = 20


class Change(NamedTuple):
    """What integers change on the rows that were given to `laconic.Predictor.quantise`."""

    rows: int
    """Number of rows."""
    labels: float
    """Part of the rows whose label changes."""
    error: tuple[float, float] | None
    """Part of the rows with a wrong label before and after, or None without labels."""

    def __str__(self) -> str:
        text = f"Integers change {self.labels:.2%} of the labels of the {self.rows:,} rows given."
        if self.error is not None:
            text += f" Their error goes from {self.error[0]:.2%} to {self.error[1]:.2%}."
        return text


class IntegerPredictor(Predictor):
    """A predictor that uses integers only. Make it with `laconic.Predictor.quantise`.

    `scores` returns whole numbers: the scores of the model in units of ``unit``, rounded. If only
    the difference of two scores counts, there is one score. The C code of `to_c` gives the same
    numbers, bit for bit.

    Attributes
    ----------
    integers : IntegerProgram
        The tables of whole numbers.
    change : Change or None
        How many labels change on the rows given to ``quantise``. A file keeps it.
    """

    integers: IntegerProgram
    change: Change | None

    @classmethod
    def of(
        cls, source: Predictor, integers: IntegerProgram, change: Change | None = None
    ) -> IntegerPredictor:
        """Return the integer form of a predictor."""
        made = cls.__new__(cls)
        made.__dict__.update(source.__dict__)
        made.integers, made.change = integers, change
        return made

    def __repr__(self) -> str:
        i = self.integers
        return f"Integer{super().__repr__()[:-1]}, {i.bits} bits, inputs {i.inputs.given!r})"

    @property
    def reads_tensors(self) -> bool:
        """False: whole numbers are computed on the processor."""
        return False

    @property
    def unit(self) -> float:
        """Value of one unit of the scores."""
        return self.integers.unit

    def encoded_scores(self, X: Any) -> np.ndarray:
        """Return the scores of rows, (n_rows, n_outputs), in int64."""
        self._check_width(X)
        self._check_gaps(X)
        return self.integers.scores(X)

    def _check_gaps(self, X: Any) -> None:
        """Refuse missing values in features that are calculated with and not filled."""
        inputs = self.integers.inputs
        if inputs.missing is not None:
            refuses = set(ARITHMETIC) - {"filled"}
            use = uses(self.integers.program)
            calculated = [place for place, kinds in use.items() if kinds & refuses]
            if np.isnan(take(X, inputs.features[calculated])).any():
                raise ValueError(GAPS)

    def encoded_probabilities(self, X: Any) -> np.ndarray:
        """Return class probabilities, from the scores times their unit."""
        scores = self.encoded_scores(X) * self.unit
        if scores.shape[1] < len(self.intercept):  # the difference of two scores
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return self._meaning()(scores)

    def device_rows(self, X: Any) -> np.ndarray:
        """Return rows as the device hands them over, (n_rows, n_features)."""
        X, inputs = self._matrix(X), self.integers.inputs
        rows = inputs.handed_over(X)
        out = np.zeros((len(rows), self.n_features), dtype=rows.dtype)
        out[:, inputs.features] = rows
        return out

    def cost(self) -> Cost:
        """Return the cost of one row, and the bytes of the tables of integers."""
        program, inputs = self.integers.program, self.integers.inputs
        classes = len(self.classes)
        bytes = find(TABLE_BYTES)(program, self.integers.bits, inputs.given, classes)
        return super().cost()._replace(bytes=bytes)

    def quantise(
        self, X: Any, bits: int = 8, inputs: str = "auto", y: Any = None, sample_weight: Any = None
    ) -> Any:
        """Refuse, because the model is one of integers already."""
        raise TypeError("this predictor has integers already; quantise the one it was made from")

    def bounds(self) -> list[Bound]:
        """Return the bounds on everything that is added up, for every input."""
        i = self.integers
        return bounds(i.program, i.inputs, i.bits, i.accumulator)

    def proof(self) -> str:
        """Say in words that no accumulator overflows, whatever the inputs are."""
        lines = ["No number below can overflow, for any input in its range:"]
        lines += [f"  {bound}" for bound in self.bounds()]
        return "\n".join(lines)

    def range_of(self, feature: int) -> str:
        """Return in words which numbers of a feature the model tells apart."""
        inputs = self.integers.inputs
        place = int(np.searchsorted(inputs.features, feature))
        low, high = int(inputs.low[place]), int(inputs.high[place])
        if place in inputs.asked:
            return "codes of categories"
        if inputs.given != "float":
            return f"{low} to {high}"
        base, step = int(inputs.base[place]), 1.0 / float(inputs.scale[place])
        return f"{base * step:.6g} to {(base + high - low) * step:.6g}, in steps of {step:.3g}"

    def summary(self) -> str:
        """Say how the numbers are stored, what that changes, and that nothing overflows."""
        i = self.integers
        given = f"float, scaled to {i.inputs.bits} bits" if i.inputs.given == "float" else (
            f"{i.inputs.given}, as they are"
        )  # fmt: skip
        lines = [
            f"Weights are integers of {i.bits} bits, and inputs are {given}. Inputs beyond their "
            f"range count as its nearest end. One unit of a score is {i.unit:.4g}."
        ]
        if i.inputs.missing is not None and i.inputs.given != "float":
            lines[0] += f" A missing value is {i.inputs.missing}."
        if self.change is not None:
            lines.append(str(self.change))
        wrapped = [textwrap.fill(line, 96) for line in lines]
        return "\n".join([*wrapped, "", self.proof()])

    def details(self) -> str:
        """Return the summary, and the ranges of the inputs."""
        lines = [self.summary(), "", "Ranges of the inputs:"]
        read = self.integers.inputs.features.tolist()
        for f in read[:MOST_INPUTS]:
            lines.append(f"  {feature_name(f, self.feature_names)}: {self.range_of(f)}")
        if len(read) > MOST_INPUTS:
            lines.append(f"  … and {len(read) - MOST_INPUTS:,} more")
        return "\n".join(lines)

    def _card(self) -> str:
        """Return the card of the model, how its integers are stored, and the ranges of inputs."""
        return f"{super()._card()}\n\n{self.details()}"

    def _html(self, most: int = MOST_ROWS) -> list[str]:
        return [*super()._html(most), folded("Integers, bounds and ranges", self.details())]


def quantise(
    predictor: Predictor, X: Any, bits: int, inputs: str, y: Any = None, sample_weight: Any = None
) -> IntegerPredictor:
    """Return the integer form of a predictor; see `laconic.Predictor.quantise`."""
    if bits not in (8, 16) or not isinstance(bits, Integral):
        raise ValueError(f"bits must be 8 or 16, not {bits!r}")
    inputs = given_type(X) if inputs == "auto" else inputs
    rows = predictor._matrix(X)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != (rows.shape[0],):
        raise ValueError(f"y must have one label per row ({rows.shape[0]}), not {labels.shape}")
    weight = _weights(sample_weight, rows.shape[0])
    if not (weight > 0).all():
        rows, weight = rows[weight > 0], weight[weight > 0]
        labels = None if labels is None else labels[np.asarray(sample_weight) > 0]
    integers = integers_of(predictor, rows, bits, inputs, weight)
    change = change_of(predictor, integers, rows, labels, weight)
    return IntegerPredictor.of(predictor, integers, change)


def change_of(
    predictor: Predictor, integers: IntegerProgram, rows: Any, labels: Any, weight: np.ndarray
) -> Change:
    """Return what integers change on rows of numbers, with their labels (or None) and weights."""
    before = decide(predictor.encoded_scores(rows))
    after = decide(integers.scores(rows))
    error = None
    if labels is not None:
        wrong = [_share(predictor.classes[code] != labels, weight) for code in (before, after)]
        error = wrong[0], wrong[1]
    return Change(len(before), _share(before != after, weight), error)


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return the weights of rows, by default 1."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    sound = weight.shape == (n_rows,) and np.isfinite(weight).all() and (weight >= 0).all()
    if not sound:
        raise ValueError(f"sample_weight must be {n_rows} numbers, none of them below 0")
    return weight


def _share(yes: np.ndarray, weight: np.ndarray) -> float:
    """Return the part of the rows for which something holds."""
    return float(np.average(yes, weights=weight))

"""Integer predictors in files: the predictor they were made from, and tables of whole numbers.

What a file says about the structure of the model is not trusted. The structure comes from the
predictor in the same file, and only the numbers come from the tables. All bounds are proven again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.files.layout import Array, Number, check_arrays, real_number, whole_number
from laconic.model.choose_codes import MOST_POWER, asked_codes, uses
from laconic.model.compared_codes import without_missing
from laconic.model.in_codes import FAR, compact
from laconic.model.input_codes import GIVEN, LARGEST_FIXED, Inputs, code_range
from laconic.model.integer_predictor import Change, IntegerPredictor
from laconic.model.integers import EXACT, FALL_BITS, MASK, IntegerProgram
from laconic.model.lowering import lowered
from laconic.model.predictor import Predictor
from laconic.model.program import program_of
from laconic.model.proof import bounds, overflow
from laconic.model.quantise import MOST_SHIFT
from laconic.model.segments import Segment
from laconic.model.windows import WindowMaximum
from laconic.numeric.magnitudes import LARGEST_SCORE

# The tables that only a file knows, by kind of segment: name, smallest and largest entry. None
# stands for codes of inputs.
_BALLS: dict[str, tuple[int, int] | None] = {"centre": (-FAR, FAR), "limit": (-1, EXACT)}
_SOFT = {**_BALLS, "fall": (0, 2**30), "drop": (0, 62)}
NUMBERS: dict[str, dict[str, tuple[int, int] | None]] = {
    "gather": {},
    "filled": {"value": (-FAR, FAR)},
    "multiply": {"rescale": (0, 30)},
    "at_most": {"value": None},
    "equals": {"value": None},
    "rules": {"first_value": None, "second_value": None},
    "hinge": {"value": (-(2**15), 2**15), "knot": (-(2**31), 2**31), "rescale": (0, 30)},
    "look_up": {"value": (-(2**15), 2**15)},
    "balls": _BALLS,
    "soft_balls": _SOFT,
    "bumps": _SOFT,
    "windows": {"pixel": (-(2**15), 2**15), "weight": (0, MASK), "down": (0, 31)},
}


def integer_parts(predictor: IntegerPredictor) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header entry and the arrays of an integer predictor."""
    i, change = predictor.integers, predictor.change
    header = {
        "given": i.inputs.given,
        "bits": i.bits,
        "unit": i.unit,
        "accumulator": i.accumulator,
        "missing": i.inputs.missing is not None,
        "change": None if change is None else [change.rows, change.labels, *(change.error or ())],
    }
    arrays = {"bias": i.program.bias, **{n: getattr(i.inputs, n) for n in _INPUTS}}
    for number, segment in enumerate(i.program.segments):
        own = {name: segment.tables[name] for name in (*NUMBERS[segment.kind], "shift")}
        own["weights"] = segment.weights
        arrays |= {f"{number}_{name}": table for name, table in own.items()}
    if i.program.routing is not None:
        arrays |= {"hole_centre": i.program.routing.centre, "hole_limit": i.program.routing.limit}
    return header, arrays


_INPUTS = ("low", "high", "base", "shift")


def integer_predictor(
    source: Predictor, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> IntegerPredictor:
    """Return the integer predictor of a file. A `ValueError` says what is wrong with it."""
    if header["given"] not in GIVEN or header["bits"] not in (8, 16):
        raise ValueError("its integers are of an unknown type")
    bits = whole_number(header["bits"], "bits")
    accumulator = whole_number(header["accumulator"], "accumulator")
    unit = real_number(header["unit"], "unit")
    if accumulator not in (32, 64) or not unit > 0.0:
        raise ValueError("its scores are of an unknown type")
    Number(bool).checked(header["missing"], "missing")
    _check_pixels(source, arrays)
    program = program_of(source)
    use = uses(program)
    features = np.array(list(use), dtype=np.int64)
    inputs = _inputs(header, arrays, features, bits, asked_codes(program, features, use))
    segments = [compact(s, features) for s in without_missing(program.segments)]
    layout = _layout(segments, program, inputs)
    checked = {n: a.astype(np.int64) for n, a in check_arrays(arrays, layout, {}).items()}
    made = [_segment(segment, n, checked, bits) for n, segment in enumerate(segments)]
    routing = program.routing
    if routing is not None:
        routing = routing._replace(centre=checked["hole_centre"], limit=checked["hole_limit"])
    program = program._replace(bias=checked["bias"], segments=made, routing=routing)
    proven = bounds(program, inputs, bits, accumulator)
    if wide := overflow(proven):
        raise ValueError(f"its numbers do not fit: {wide}")
    if unit * proven[0].largest > LARGEST_SCORE:
        raise ValueError("its scores are too large")
    distance = max((bound.bits for bound in proven if bound.what == "squared distance"), default=32)
    _check_together(made, inputs, distance)
    integers = IntegerProgram(program, inputs, bits, unit, accumulator, distance)
    return IntegerPredictor.of(source, integers, _change(header["change"]))


def _check_pixels(source: Predictor, arrays: dict[str, np.ndarray]) -> None:
    """Refuse images whose pixels are not all in the file, before anything is built for them."""
    every = [inner for outer in lowered(source.map) for inner in outer.every()]
    images = any(isinstance(p, WindowMaximum) and p.n_columns for p in every)
    if images and arrays["low"].shape != (source.n_features,):
        raise ValueError("its images have another number of pixels than it has inputs")


def _change(stored: Any) -> Change | None:
    if stored is None:
        return None
    rows, labels, *error = stored
    numbers = [real_number(value, "change") for value in (labels, *error)]
    if len(numbers) not in (1, 3) or not all(0.0 <= value <= 1.0 for value in numbers):
        raise ValueError("its change must be parts of the rows")
    after = (numbers[1], numbers[2]) if len(numbers) == 3 else None
    return Change(whole_number(rows, "change"), numbers[0], after)


def _inputs(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    features: np.ndarray,
    bits: int,
    asked: dict[int, np.ndarray],
) -> Inputs:
    given = header["given"]
    dtype = np.dtype(given if given != "float" else f"int{bits}")
    least, most = code_range(dtype, header["missing"])
    layout = {name: Array("i", ("read",), least, most) for name in ("low", "high")}
    layout["base"] = Array("i", ("read",), -LARGEST_FIXED // 2, LARGEST_FIXED // 2)
    layout["shift"] = Array("i", ("read",), -MOST_POWER, MOST_POWER)
    taken = {name: arrays.pop(name) for name in _INPUTS}
    own = check_arrays(taken, layout, {"read": len(features)})
    whole = {name: own[name].astype(np.int64) for name in _INPUTS}
    sound = bool((whole["low"] <= whole["high"]).all())
    if given != "float":
        plain = np.array_equal(whole["base"], whole["low"])
        sound = sound and plain and not whole["shift"].any()
    if not sound:
        raise ValueError("its ranges of inputs are empty or do not fit their type")
    missing = int(np.iinfo(dtype).max) if header["missing"] else None
    other = most if dtype.kind == "u" else -1
    return Inputs(
        given, 8 * dtype.itemsize, features, missing=missing, asked=asked, other=other, **whole
    )


def _layout(segments: list[Segment], program: Any, inputs: Inputs) -> dict[str, Array]:
    """Return what the arrays of the segments must look like."""
    codes = code_range(inputs.dtype, False)
    layout = {"bias": Array("i", program.bias.shape, -EXACT, EXACT)}
    if program.routing is not None:
        shape = program.routing.centre.shape
        layout["hole_centre"] = Array("i", shape, -FAR, FAR)
        layout["hole_limit"] = Array("i", shape[:1], -1, EXACT)
    for number, segment in enumerate(segments):
        for name, ends in NUMBERS[segment.kind].items():
            low, high = codes if ends is None else ends
            shape = (1,) if name == "down" else (segment.n_atoms,)
            if name in segment.tables:
                shape = segment.tables[name].shape
            layout[f"{number}_{name}"] = Array("i", shape, low, high)
        layout[f"{number}_shift"] = Array("i", (segment.n_atoms,), 0, MOST_SHIFT)
        layout[f"{number}_weights"] = Array("i", segment.weights.shape, -EXACT, EXACT)
    return layout


def _segment(segment: Segment, number: int, arrays: dict[str, np.ndarray], bits: int) -> Segment:
    """Return a segment with the numbers of a file."""
    own = {name: arrays[f"{number}_{name}"] for name in (*NUMBERS[segment.kind], "shift")}
    weights = arrays[f"{number}_weights"]
    limited = weights if weights.ndim == 2 else weights[:, :-1]
    most = 2 ** (bits - 1) - 1
    if np.abs(limited).max(initial=0) > most:
        raise ValueError(f"its weights do not fit {bits} bits")
    for name in ("pixel", "value"):
        if segment.kind in ("windows", "look_up", "hinge") and name in own and (
            np.abs(own[name]).max(initial=0) > most
        ):  # fmt: skip
            raise ValueError(f"its table of {name}s does not fit {bits} bits")
    if "drop" in own and ((np.maximum(own["limit"], 0) >> own["drop"]) >= 2**FALL_BITS).any():
        raise ValueError("its soft balls do not fit together")
    return segment._replace(tables=segment.tables | own, weights=weights)


def _check_together(segments: list[Segment], inputs: Inputs, distance: int) -> None:
    """Refuse numbers with which C would compute something else, although each is sound."""
    for segment in segments:
        if segment.kind == "windows" and len(np.unique(inputs.zero)) > 1:
            raise ValueError("its pixels have different scales")
        if segment.kind == "filled" and inputs.missing is None:
            raise ValueError("it fills missing values, but has no code for them")
        if "drop" in segment.tables and segment.tables["drop"].max(initial=0) >= distance:
            raise ValueError("its soft balls do not fit together")


BOTH_WAYS = integer_parts, integer_predictor
"""The functions that write and read the integers of a file."""

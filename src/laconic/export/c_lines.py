"""Lines of C that several kinds of atoms share."""

from __future__ import annotations

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.model.segments import Segment


def table(code: Code, segment: Segment, name: str, why: str, dtype: str | None = None) -> str:
    """Return how the entry of atom j in a table of the segment is read."""
    return code.constant(f"{segment.kind}_{name}", segment.tables[name], "j", why, dtype)


def input_of(code: Code, segment: Segment, name: str = "feature") -> str:
    """Return the input that atom j reads."""
    features = segment.tables[name]
    if code.inputs is not None and code.direct:
        features = code.inputs.features[features]
    if len(segment.starts) == 2 and np.array_equal(features, np.arange(len(features))):
        return "q[j]"
    numbers = "x" if code.direct or code.reads_all else f"{code.name}_reads"
    table = code.rom.table(f"{segment.kind}_{name}", features, f"Places of inputs in {numbers}.")
    return f"q[{code.rom.read(table, 'j')}]"


def weight_of(code: Code, segment: Segment) -> str:
    """Return the weight of atom j for score c."""
    table = code.rom.table(
        f"{segment.kind}_weight", segment.weights, "Weights: for each atom, one for each score.",
        code.weight_type,
    )  # fmt: skip
    if code.n_outputs == 1:
        return code.rom.read(table, "j")
    return code.rom.read(table, f"{line_of('j', code.n_outputs, segment.weights.size)} + c")


def line_of(index: str, width: int, size: int) -> str:
    """Return the place of the first entry of a line in a table of ``size`` entries."""
    return f"{index} * {width}u" if size < 2**16 else f"(uint_fast32_t){index} * {width}u"


def shifted(code: Code, segment: Segment, value: str) -> str:
    """Return a value times the power of two of atom j. The value must be of the score's type."""
    if code.integers is None or not segment.tables["shift"].any():
        return value
    shift = table(code, segment, "shift", "Powers of two of the atoms.")
    return f"{value} * (({code.score})1 << {shift})"


def add(code: Code, segment: Segment, value: str, kind: str = "int32_t") -> list[str]:
    """Return the lines that add weight times value. ``kind`` is the integer type of the value."""
    weight = weight_of(code, segment)
    if code.integers is None:
        lines = code.per_class(f"scores[c] = scores[c] + {weight} * v;")
        return [f"const float v = {value};", *lines]
    if segment.tables["shift"].any():
        kind, value = code.score, shifted(code, segment, f"({code.score})({value})")
    lines = code.per_class(f"scores[c] += ({code.score}){weight} * v;")
    return [f"const {kind} v = ({kind})({value});", *lines]


def add_if(code: Code, segment: Segment, condition: str) -> list[str]:
    """Return the lines that add the weights of atom j if a condition holds."""
    weight = weight_of(code, segment)
    if code.integers is None:
        add = f"scores[c] = scores[c] + {weight};"
    else:
        add = f"scores[c] += {shifted(code, segment, f'({code.score}){weight}')};"
    return [f"if ({condition}) {{", *indented(code.per_class(add)), "}"]

"""C code of hinges: sums of inputs, where they are above a knot."""

from __future__ import annotations

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.export.c_lines import add, line_of, table
from laconic.model.segments import Segment, ends_of


def hinge_lines(code: Code, segment: Segment) -> list[str]:
    """Return the lines for hinge j. Term i is one of its terms."""
    whole, length = code.integers is not None, segment.tables["length"]
    kind, zero = ("int32_t", "0") if whole else ("float", "0.0f")
    first, last = _span(code, segment)
    value = code.constant(
        "hinge_value", segment.tables["value"], "i", "Factors of inputs.", code.weight_type
    )
    term = f"{value} * {_input(code, segment)}"
    knot = table(code, segment, "knot", "Knots.")
    above = f"t > {zero} ? t : {zero}"
    if whole and segment.tables["rescale"].any():
        down = table(code, segment, "rescale", "Hinges are divided by these powers of two.")
        above = f"({above}) >> {down}"
    return [
        f"{_counter(int(length.sum()))} i;",
        f"{kind} t = {zero};",
        f"for (i = {first}; i < {last}; i++) {{",
        *indented([f"t += (int32_t){term};" if whole else f"t = t + {term};"]),
        "}",
        f"t = t - ({knot});",
        *add(code, segment, above, "int16_t"),
    ]


def _counter(n_terms: int) -> str:
    return "uint_fast16_t" if n_terms < 2**16 else "uint_fast32_t"


def _span(code: Code, segment: Segment) -> tuple[str, str]:
    """Return the first term of hinge j, and the first one of the next hinge."""
    length = segment.tables["length"]
    if (length == length[0]).all():
        first = line_of("j", int(length[0]), int(length.sum()))
        return first, f"{first} + {length[0]}u"
    starts = code.rom.table("hinge_first", ends_of(length), "First term of each hinge.")
    return code.rom.read(starts, "j"), code.rom.read(starts, "j + 1")


def _input(code: Code, segment: Segment) -> str:
    """Return the input of term i. Hinges that read all numbers in their order need no table."""
    length, features = segment.tables["length"], segment.tables["feature"]
    if code.inputs is not None and code.direct:
        features = code.inputs.features[features]
    in_order = np.tile(np.arange(length[0]), len(length))
    if (length == length[0]).all() and np.array_equal(features, in_order):
        return f"q[i - {line_of('j', int(length[0]), int(length.sum()))}]"
    numbers = "x" if code.direct or code.reads_all else f"{code.name}_reads"
    table = code.rom.table("hinge_feature", features, f"Places of inputs in {numbers}.")
    return f"q[{code.rom.read(table, 'i')}]"

"""C code of the atoms: what the atoms of a segment add to the scores."""

from __future__ import annotations

from collections.abc import Callable

from laconic.export.c_code import Code, indented, loop
from laconic.export.c_hinges import hinge_lines
from laconic.export.c_lines import add, add_if, input_of, line_of, shifted, table
from laconic.export.c_rules import rule_lines
from laconic.export.c_windows import window_lines
from laconic.model.integers import FALL_BITS, HEIGHT_BITS
from laconic.model.segments import Segment, ends_of


def segment_lines(code: Code, segment: Segment) -> list[str]:
    """Return the loop over the atoms of a segment."""
    if segment.kind == "windows":
        return window_lines(code, segment)
    lines = _LINES[segment.kind](code, segment)
    return code.of_leaf("j", segment.kind, segment.starts, lines)


def _gather(code: Code, segment: Segment) -> list[str]:
    return add(code, segment, input_of(code, segment), "int16_t")


def _filled(code: Code, segment: Segment) -> list[str]:
    fill = table(code, segment, "value", "Values in place of missing inputs.")
    if code.inputs is None:
        lines = [f"const float given = {input_of(code, segment)};"]
        return [*lines, *add(code, segment, f"given != given ? {fill} : given")]
    lines = [f"const int32_t given = {input_of(code, segment)};"]
    chosen = f"given == {code.inputs.missing} ? {fill} : given"
    return [*lines, *add(code, segment, chosen)]


def _multiply(code: Code, segment: Segment) -> list[str]:
    if code.inputs is None:
        value = f"{input_of(code, segment, 'first')} * {input_of(code, segment, 'second')}"
        return add(code, segment, value)
    factors = []
    for name in ("first", "second"):
        zero = code.inputs.zero[segment.tables[name]]
        factor = f"(int32_t){input_of(code, segment, name)}"
        if zero.any():
            moved = code.constant(f"multiply_zero_{name}", zero, "j", "Codes of zero.")
            factor = f"({factor} - ({moved}))"
        factors.append(factor)
    value = f"{factors[0]} * {factors[1]}"
    if segment.tables["rescale"].any():
        down = table(code, segment, "rescale", "Products are divided by these powers of two.")
        value = f"{code.rescale()}({value}, {down})"
    return add(code, segment, value, "uint16_t" if code.inputs.given == "uint8" else "int16_t")


def _at_most(code: Code, segment: Segment) -> list[str]:
    return add_if(code, segment, f"{input_of(code, segment)} <= {_value(code, segment)}")


def _equals(code: Code, segment: Segment) -> list[str]:
    return add_if(code, segment, f"{input_of(code, segment)} == {_value(code, segment)}")


def _value(code: Code, segment: Segment) -> str:
    """Return the value of atom j. A number in its place might make compilers warn."""
    values, dtype = segment.tables["value"], code.code_type
    made = code.rom.table(f"{segment.kind}_value", values, "Values to compare with.", dtype)
    return code.rom.read(made, "j")


def _missing(code: Code, segment: Segment) -> list[str]:
    given = f"const float given = {input_of(code, segment)};"
    return [given, *add_if(code, segment, "given != given")]


def _look_up(code: Code, segment: Segment) -> list[str]:
    tables, feature = segment.tables, input_of(code, segment)
    first = code.constant(
        "look_up_first", ends_of(tables["length"])[:-1], "j", "First value of each atom."
    )
    length = table(code, segment, "length", "Number of values of each atom.")
    values = code.rom.table(
        "look_up_value", tables["value"], "Values of categories.", code.weight_type
    )
    kind, whole = (
        ("float", " && (float)code == given") if code.integers is None else ("int32_t", "")
    )
    given = f"const float given = {feature};"
    found = "const int32_t code = given >= 0.0f && given < 1e6f ? (int32_t)given : -1;"
    lines = [given, found]
    if code.inputs is not None:
        zero = code.inputs.zero[tables["feature"]]
        moved = code.constant("look_up_zero", zero, "j", "Codes of zero.")
        lines = [f"const int32_t code = (int32_t){feature} - ({moved});"]
    lines += [
        f"{kind} t = 0;",
        f"if (code >= 0 && code < (int32_t){length}{whole}) {{",
        f"    t = {code.rom.read(values, f'{first} + (uint_fast16_t)code')};",
        "}",
    ]
    return [*lines, *add(code, segment, "t")]


def _balls(code: Code, segment: Segment) -> list[str]:
    width, soft = code.program.n_features, segment.kind == "soft_balls"
    slope = code.rom.table(
        f"{segment.kind}_slope", segment.weights[:, :-1],
        "Slopes: for each ball and input, one for each score.", code.weight_type,
    )  # fmt: skip
    constant = code.rom.table(
        f"{segment.kind}_constant", segment.weights[:, -1], "Constants of balls."
    )
    k, at = code.n_outputs, "c" if code.n_outputs > 1 else "0"
    size = segment.weights.size
    weight = code.rom.read(slope, f"({line_of('j', width, size)} + f) * {k}u + {at}")
    start = code.rom.read(constant, f"{line_of('j', k, size)} + {at}")
    add = "t = t + {} * q[f];" if code.integers is None else f"t += ({code.score}){{}} * q[f];"
    linear = [
        f"{code.score} t = {start};",
        "uint_fast16_t f;",
        *loop("f", width, [add.format(weight)]),
    ]
    height: list[str] = []
    if code.integers is None:
        added = "scores[c] = scores[c] + t;"
        if soft:
            height = ["const float height = 1.0f - square / limit;"]
            added = "scores[c] = scores[c] + t * height;"
    else:
        value = "t"
        if soft:
            height = _height(code, segment)
            bits = HEIGHT_BITS[code.integers.bits]
            value = f"{code.rescale()}(t, {bits}) * height"
        added = f"scores[c] += {shifted(code, segment, value)};"
    return _inside(code, segment, [*height, *code.per_class(*linear, added)])


def _bumps(code: Code, segment: Segment) -> list[str]:
    if code.integers is None:
        return _inside(code, segment, add(code, segment, "1.0f - square / limit"))
    return _inside(code, segment, [*_height(code, segment), *add(code, segment, "height")])


def _inside(code: Code, segment: Segment, lines: list[str]) -> list[str]:
    """Return the lines for a row that may be inside ball j: ``square`` is less than ``limit``."""
    centres, width = segment.tables["centre"], code.program.n_features
    centre = code.rom.table(
        f"{segment.kind}_centre", centres, "Centres of balls.", code.centre_type()
    )
    limit = table(code, segment, "limit", "Squared radii.", code.limit_type())
    size = max(centres.size, segment.weights.size)
    return [
        f"const {code.square} square = {code.squared(centre)}"
        f"(q, &{centre}[{line_of('j', width, size)}]);",
        f"const {code.square} limit = {limit};",
        f"if (square {'<' if code.integers is None else '<='} limit) {{",
        *indented(lines),
        "}",
    ]


def _height(code: Code, segment: Segment) -> list[str]:
    drop = table(code, segment, "drop", "Shifts of the gap to the sphere.")
    fall = table(code, segment, "fall", "Height of one step of the gap.")
    gap = f"(int32_t)((limit - square) >> {drop})"
    return [f"const int32_t height = ({gap} * (int32_t){fall}) >> {FALL_BITS};"]


_LINES: dict[str, Callable[[Code, Segment], list[str]]] = {
    "gather": _gather,
    "filled": _filled,
    "multiply": _multiply,
    "at_most": _at_most,
    "equals": _equals,
    "missing": _missing,
    "rules": rule_lines,
    "hinge": hinge_lines,
    "look_up": _look_up,
    "balls": _balls,
    "soft_balls": _balls,
    "bumps": _bumps,
}
"""What is added to the scores for atom j of each kind of segment. Windows are in groups."""

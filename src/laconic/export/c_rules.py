"""C code of rules: pairs of conditions that must both hold."""

from __future__ import annotations

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.export.c_lines import add_if
from laconic.model.conditions import ABOVE, AT_MOST, EQUAL, MISSING
from laconic.model.segments import SIDES, Segment

PLACES = 4
"""A condition reads input ``place / 4``. What is left of ``place`` says which test it is."""
# The lowest bits of a place. In integers, 1 asks for at most the value and 2 for at least it. So
# both together ask for the value itself.
_BITS = {AT_MOST: 1, ABOVE: 2, EQUAL: 3, MISSING: 0}


def rule_lines(code: Code, segment: Segment) -> list[str]:
    """Return the lines for rule j. Its conditions are 2 j and 2 j + 1."""
    tables = segment.tables
    feature, value, test = (
        np.column_stack([tables[f"{side}{part}"] for side in SIDES]).ravel()
        for part in ("", "_value", "_test")
    )
    if code.inputs is not None and code.direct:
        feature = code.inputs.features[feature]
    bits = np.array([_BITS[number] for number in test.tolist()])
    places = PLACES * feature + bits
    place = code.rom.table(
        "rules_place", places,
        "Conditions: 4 times the place of an input, plus the test.",
    )  # fmt: skip
    values = code.rom.table("rules_value", value, "Values to compare with.", code.code_type)
    ask = _float_test if code.inputs is None else _integer_test
    kind = "uint_fast16_t" if places.max() < 2**16 else "uint_fast32_t"
    body = [
        f"const {kind} place = {code.rom.read(place, 'i')};",
        f"const {code.code} x = q[place / {PLACES}u];",
        f"const {code.code} value = {code.rom.read(values, 'i')};",
        f"if (!({ask(code, set(test.tolist()))})) {{",
        "    break;",
        "}",
    ]
    return [
        "uint_fast16_t i;",
        "for (i = 2u * j; i < 2u * j + 2u; i++) {",
        *indented(body),
        "}",
        *add_if(code, segment, "i == 2u * j + 2u"),
    ]


def _integer_test(code: Code, tests: set[int]) -> str:
    assert code.inputs is not None
    low, high = "x <= value", "x >= value"
    if ABOVE in tests:
        lost = code.inputs.missing
        asked = f"(place & 1u ? {low} : x != {lost})"
        low = f"(!(place & 1u) || {low})" if lost is None else asked
    if AT_MOST in tests:
        high = f"(!(place & 2u) || {high})"
    return f"{low} && {high}"


def _float_test(code: Code, tests: set[int]) -> str:
    written = {AT_MOST: "x <= value", ABOVE: "x > value", EQUAL: "x == value", MISSING: "x != x"}
    *others, last = sorted(tests)
    chosen = [f"place % {PLACES}u == {_BITS[number]}u ? {written[number]} : " for number in others]
    return "".join([*chosen, written[last]])

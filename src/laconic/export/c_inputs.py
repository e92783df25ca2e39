"""C code that turns what a device hands over into the codes of an integer model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laconic.model.input_codes import Inputs

if TYPE_CHECKING:
    from laconic.export.c_code import Code


def code_lines(code: Code, inputs: Inputs, value: str) -> list[str]:
    """Return the lines that set ``q[f]`` to the code of a value."""
    return (_scaled if inputs.given == "float" else _clamped)(code, inputs, value)


def _scaled(code: Code, inputs: Inputs, value: str) -> list[str]:
    shift = code.constant("input_shift", inputs.shift, "f", "Inputs times 2^shift are rounded.")
    base = code.constant("input_base", inputs.base, "f", "Rounded inputs with the lowest code.")
    low = code.constant("input_low", inputs.low, "f", "Lowest codes.")
    steps = code.constant("input_steps", inputs.high - inputs.low, "f", "Steps of codes.")
    lines = [
        f"const float given = {value};",
        f"int32_t t = {_fixed(code)}(given, {shift}) - ({base});",
        f"t = t < 0 ? 0 : t > (int32_t){steps} ? (int32_t){steps} : t;",
        f"q[f] = ({code.code})(t + ({low}));",
    ]
    if inputs.missing is not None:
        lines += [f"if ({_is_nan(code)}(given)) {{", f"    q[f] = {inputs.missing};", "}"]
    return lines


def _is_nan(code: Code) -> str:
    """Return the function that tells missing values, without arithmetic on floats."""
    return code.helper(
        "is_nan",
        "/* Whether a float is missing. */\nstatic inline int {}(float x)",
        [
            "uint32_t bits;",
            "memcpy(&bits, &x, sizeof bits);",
            "return (bits & 0x7fffffffu) > 0x7f800000u;",
        ],
    )


def _fixed(code: Code) -> str:
    """Return the function that scales a float by shifting its digits."""
    return code.helper(
        "fixed",
        "/* A float times 2^shift, rounded half away from zero. It saturates at 2^30. */\n"
        "static inline int32_t {}(float x, int_fast16_t shift)",
        [
            "uint32_t bits;",
            "int32_t value = (int32_t)1 << 30;",
            "int_fast16_t places;",
            "memcpy(&bits, &x, sizeof bits);",
            "places = (int_fast16_t)((bits >> 23) & 255u);",
            "if (places == 0) {",
            "    return 0;",
            "}",
            "places += shift - 150;",
            "if (places <= 6) {",
            "    value = (int32_t)((bits & 0x7fffffu) | 0x800000u);",
            "    if (places >= 0) {",
            "        value <<= places;",
            "    } else if (places > -30) {",
            "        value = (value + ((int32_t)1 << (-places - 1))) >> -places;",
            "    } else {",
            "        value = 0;",
            "    }",
            "}",
            "return (bits >> 31) != 0 ? -value : value;",
        ],
    )


def _clamped(code: Code, inputs: Inputs, value: str) -> list[str]:
    low = code.constant("low", inputs.low, "f", "Smallest inputs; others saturate.")
    high = code.constant("high", inputs.high, "f", "Largest inputs; others saturate.")
    known = "" if inputs.missing is None else f"given != {inputs.missing} && "
    return [
        f"const {code.code} given = {value};",
        f"const {code.code} low = ({code.code}){low};",
        f"const {code.code} high = ({code.code}){high};",
        "q[f] = given;",
        f"if ({known}given < low) {{",
        "    q[f] = low;",
        f"}} else if ({known}given > high) {{",
        "    q[f] = high;",
        "}",
    ]

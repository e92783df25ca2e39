"""C text: names, numbers, comments and tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# No unsigned type is wider than 16 bits. A difference of larger ones would not be an int.
INTEGERS = ("uint8", "int8", "uint16", "int16", "int32", "int64")
# How a table in the program memory of an AVR is read.
_ON_AVR = {
    "uint8": "pgm_read_byte(p)",
    "int8": "((int8_t)pgm_read_byte(p))",
    "uint16": "pgm_read_word(p)",
    "int16": "((int16_t)pgm_read_word(p))",
    "int32": "((int32_t)pgm_read_dword(p))",
    "int64": (
        "((int64_t)(((uint64_t)pgm_read_dword((const char *)(p) + 4) << 32) | pgm_read_dword(p)))"
    ),
    "float32": "pgm_read_float(p)",
}
# Most characters of a label that a comment quotes.
MOST_QUOTED = 60
# Words that no C or C++ name may be.
_KEYWORDS = """
 alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
 constexpr continue decltype default delete do double else enum explicit export extern false float
 for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
 or_eq private protected public register restrict return short signed sizeof static struct switch
 template this throw true try typedef typeid typename union unsigned using virtual void volatile
 wchar_t while xor xor_eq """
_PLAIN = str.maketrans({"─": "-", "·": "|", "×": "x", "≤": "<=", "…": "...", "±": "+-", "²": "^2"})
# Signs that tell labels apart, in C names.
_SIGNS = {"<=": "up_to", ">=": "at_least", "<": "below", ">": "above"}


def c_type(dtype: Any) -> str:
    """Return the C name of a NumPy type."""
    name = np.dtype(dtype).name
    return {"float32": "float"}.get(name, f"{name}_t")


def smallest(values: np.ndarray) -> np.dtype[Any]:
    """Return the smallest integer type that holds the values."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for name in INTEGERS:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return np.dtype(name)
    raise ValueError(f"no C integer holds the numbers from {low} to {high}")


def literal(value: Any) -> str:
    """Return a number as C writes it. Nine digits give back every float32."""
    if isinstance(value, np.floating | float):
        text = f"{float(value):.9g}"
        return text + ("f" if "." in text or "e" in text else ".0f")
    number = int(value)
    if number == -(2**31):
        return "(-2147483647 - 1)"
    if abs(number) >= 2**31:
        return f"INT64_C({number})" if number != -(2**63) else "(-INT64_C(9223372036854775807) - 1)"
    return str(number)


def comment(text: str) -> str:
    """Return lines as a C comment. Whatever could end the comment is taken apart."""
    lines = harmless(text.translate(_PLAIN).encode("ascii", "replace").decode()).splitlines()
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def harmless(text: str) -> str:
    r"""Return a text that neither ends a comment nor continues its last line.

    Examples
    --------
    >>> harmless("a *\\ b ??/ c")
    'a * / b ? ?/ c'
    """
    text = text.replace("\\", "/")  # first, because it may make the end of a comment
    text = text.replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", text)


def quoted(text: Any) -> str:
    """Return a text in quotes for a comment, on one line. Other than ASCII is given by number.

    Examples
    --------
    >>> quoted("é */")
    '"<U+00E9> * /"'
    """
    signs = (c if " " <= c <= "~" else f"<U+{ord(c):04X}>" for c in str(text)[:MOST_QUOTED])
    return f'"{harmless("".join(signs))}"'


def identifier(text: Any) -> str:
    """Return the letters and digits of a text as part of a C name, in capitals.

    Signs that tell labels apart become words.

    Examples
    --------
    >>> identifier("<=50K"), identifier(">50K"), identifier("-1")
    ('UP_TO_50K', 'ABOVE_50K', 'MINUS_1')
    """
    plain = str(text).replace("-", "_minus_") if re.fullmatch(r"-\d+", str(text)) else str(text)
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, f"_{word}_")
    words = re.findall(r"[A-Za-z0-9]+", plain)
    return "_".join(words).upper() or "EMPTY"


def distinct(names: Iterable[str]) -> list[str]:
    """Return names that differ. A name that was there before gets a number."""
    taken: set[str] = set()
    out = []
    for name in names:
        new, number = name, 2
        while new in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new)
        out.append(new)
    return out


def check_name(name: Any) -> str:
    """Return the prefix of all C names, or raise an error that says what would do."""
    sound = isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
    if not sound or re.search(rf"\s{name}\s", _KEYWORDS) or "__" in name:
        raise ValueError(
            f"name must be a C name: letters, digits and single underscores, starting with a "
            f"letter, and no keyword; got {name!r}"
        )
    return str(name)


@dataclass
class Rom:
    """The constant tables of a header. `table` adds one and returns how its entries are read."""

    name: str
    tables: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    """NumPy type of every table, by the name of its C array."""
    bytes: int = 0

    def table(self, title: str, values: Any, why: str, dtype: Any = None) -> str:
        """Add a table, and return the name of its C array; read it with `read`."""
        values = np.asarray(values)
        if values.dtype.kind in "iub":
            values = values.astype(smallest(values) if dtype is None else dtype)
        array = distinct([*self.types, f"{self.name}_{title}"])[-1]
        self.types[array] = values.dtype.name
        body = ", ".join(literal(v) for v in values.ravel().tolist())
        if values.dtype.kind == "f":
            body = ", ".join(literal(v) for v in values.ravel())
        wrapped = textwrap.fill(body, 96, initial_indent="    ", subsequent_indent="    ")
        self.tables.append(
            f"/* {why} */\n"
            f"static const {c_type(values.dtype)} {array}[{values.size}] {self.name.upper()}_ROM = "
            f"{{\n{wrapped}\n}};"
        )
        self.bytes += values.nbytes
        return array

    def type_of(self, array: str) -> str:
        """Return the C type of the entries of a table."""
        return c_type(self.types[array])

    def read(self, array: str, index: str) -> str:
        """Return the C expression that reads an entry of a table."""
        return f"{self._macro(self.types[array])}(&{array}[{index}])"

    def at(self, array: str, pointer: str) -> str:
        """Return the C expression that reads the entry of a table at a pointer."""
        return f"{self._macro(self.types[array])}({pointer})"

    def _macro(self, kind: str) -> str:
        """Return the name of the macro that reads entries of a type, such as MODEL_I8."""
        short = kind.replace("uint", "U").replace("int", "I").replace("float", "F")
        return f"{self.name.upper()}_{short}"

    def macros(self) -> str:
        """Return the macros that read tables, on an AVR and elsewhere."""
        NAME = self.name.upper()
        kinds = [(self._macro(kind), _ON_AVR[kind]) for kind in sorted(set(self.types.values()))]
        lines = ["#if defined(__AVR__)", "#include <avr/pgmspace.h>", f"#define {NAME}_ROM PROGMEM"]
        lines += [f"#define {macro}(p) {how}" for macro, how in kinds]
        lines += ["#else", f"#define {NAME}_ROM"]
        lines += [f"#define {macro}(p) (*(p))" for macro, _ in kinds]
        return "\n".join([*lines, "#endif"])

"""A predictor as one readable C99 header."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.export.c_atoms import segment_lines
from laconic.export.c_code import Code, function
from laconic.export.c_text import Rom, check_name, comment, distinct, identifier, quoted
from laconic.export.labels import Named, label_names, label_values
from laconic.export.probabilities import probability_function
from laconic.files.whole import whole_file
from laconic.model.card import card
from laconic.model.feature_maps import feature_name
from laconic.model.program import program_of
from laconic.model.single import single

if TYPE_CHECKING:
    from laconic.export.compiled import CompiledModel

# Most features that are listed by name.
MOST_NAMES = 1000
# Names of macros that columns and categories cannot have.
RESERVED = (
    "H", "ROM", "N_FEATURES", "N_CLASSES", "N_SCORES", "MISSING", "UNIT",
    "APART", "U8", "I8", "U16", "I16", "I32", "I64", "F32",
)  # fmt: skip
# Width of a card in a comment.
WIDTH = 96


def to_c(predictor: Any, name: str = "model", probabilities: bool = False) -> CHeader:
    """Return a predictor as a C99 header; see `laconic.Predictor.to_c`."""
    return CHeader(predictor, check_name(name), probabilities)


class CHeader:
    """A C99 header of a model, which is also valid C++. ``str(header)`` is its text.

    Attributes
    ----------
    name : str
        The prefix of all names in the header.
    table_bytes : int
        Bytes of the constant tables.
    """

    def __init__(self, predictor: Any, name: str, probabilities: bool) -> None:
        self.predictor = predictor
        self.name = name
        self.integers = getattr(predictor, "integers", None)
        self.program = single(program_of(predictor)) if self.integers is None else (
            self.integers.program
        )  # fmt: skip
        self._rom = Rom(name)
        self._code = Code(self.program, self.integers, self._rom)
        functions = self._code.functions(segment_lines)
        functions.append(self._predict())
        if probabilities:
            functions.append(probability_function(predictor, self._code))
        self._text = self._written(functions, probabilities)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"CHeader({self.name!r}, {self.table_bytes:,} bytes of tables)"

    @property
    def table_bytes(self) -> int:
        """Bytes of the constant tables."""
        return self._rom.bytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the header to a file."""
        with whole_file(path) as file:
            file.write(self._text.encode("ascii"))

    def compile(self, compiler: str | None = None) -> CompiledModel:
        """Compile the header on this machine, and return an object that runs the compiled code.

        Parameters
        ----------
        compiler : str, optional
            A C compiler that takes the options of gcc. The default is the environment variable
            ``CC``, or else ``cc``.
        """
        from laconic.export.compiled import CompiledModel

        return CompiledModel(self, compiler)

    # -- the text ------------------------------------------------------------------------------

    def _written(self, functions: list[str], probabilities: bool) -> str:
        NAME, code = self.name.upper(), self._code
        parts = [
            comment(self._about()),
            f"#ifndef {NAME}_H\n#define {NAME}_H",
            "\n".join(self._includes(probabilities)),
            self._rom.macros(),
            self._numbers(),
            f"typedef {code.input} {self.name}_input;\ntypedef {code.score} {self.name}_score;",
            *self._enums(),
            *self._rom.tables,
            *functions,
            f"#endif /* {NAME}_H */",
        ]
        if any(segment.kind == "windows" for segment in self.program.segments):
            parts.insert(3, _APART.format(NAME=NAME))
        if self.integers is None:
            parts.insert(2, _CONTRACT)
        return "\n\n".join(parts) + "\n"

    def _includes(self, probabilities: bool) -> list[str]:
        inputs = self._code.inputs
        scaled = inputs is not None and inputs.given == "float"
        wanted = {"math.h": probabilities, "stdint.h": True, "string.h": scaled}
        return [f"#include <{name}>" for name, needed in wanted.items() if needed]

    def _numbers(self) -> str:
        NAME = self.name.upper()
        numbers = {
            "N_FEATURES": self.program.n_features,
            "N_CLASSES": len(self.predictor.classes),
            "N_SCORES": self.program.n_outputs,
        }
        lines = [f"#define {NAME}_{title} {number}" for title, number in numbers.items()]
        inputs = self._code.inputs
        if inputs is not None and inputs.missing is not None and inputs.given != "float":
            lines.append(f"#define {NAME}_MISSING {inputs.missing} /* a missing value */")
        if self.integers is not None:
            lines.append(
                f"#define {NAME}_UNIT {self.integers.unit:.9g} /* value of one score unit */"
            )
        return "\n".join(lines)

    def _about(self) -> str:
        from laconic import __version__

        p, inputs = self.predictor, self._code.inputs
        lines = [f"{self.name}.h, written by Laconic {__version__}.", ""]
        lines += [*card(p, WIDTH).splitlines(), ""]
        one = self.program.n_outputs == 1
        decide = "The class with the largest score wins. Of equal scores the first wins."
        if one:
            first, second = p.classes
            decide = f"There is one score. Above 0 it means {second}, otherwise {first}."
        lines += [decide, ""]
        if self.integers is not None:
            lines += [*p.summary().splitlines(), ""]
        else:
            lines += [
                "Everything is computed in float32, in the order of the code below. Compile with",
                "-ffp-contract=off, so that no two operations are fused.",
            ]
            if any(segment.kind == "missing" for segment in self.program.segments):
                lines.append("A missing value is NaN.")
            lines.append("")
        lines.append("Inputs that the model reads:")
        read = p.map.features().tolist()
        for f in read[:MOST_NAMES]:
            words = f"  x[{f}]  {feature_name(f, p.feature_names)}"
            unit = p.units.get(f)
            words += f" ({unit})" if unit else ""
            if inputs is not None:
                words += f": {p.range_of(f)}"
            lines.append(words)
        if len(read) > MOST_NAMES:
            lines.append(f"  ... and {len(read) - MOST_NAMES:,} more")
        return "\n".join(lines)

    def _enums(self) -> list[str]:
        """Return the enum of the labels, and one for each feature that holds categories."""
        p, inputs, NAME = self.predictor, self._code.inputs, self.name.upper()
        enums = [label_names(NAME, p.classes)]
        for feature, words in p.categories.items():
            column = feature_name(feature, p.feature_names)
            # With IS, no name is one of a standard header, such as INT_FAST16_MAX.
            prefix = f"{NAME}_{identifier(column)}_IS"
            other = -1 if inputs is None else inputs.other
            # First, so that a category of this name does not take it.
            rest = Named(f"{prefix}_OTHER", other, f"any other value of {quoted(column)}")
            named = (Named(f"{prefix}_{identifier(word)}", code, quoted(word))
                     for code, word in words.items())  # fmt: skip
            enums.append([rest, *named])
        # No two names of the header may be the same, whatever columns and categories are called.
        macros = [f"{NAME}_{title}" for title in RESERVED]
        every = [own.name for enum in enums for own in enum]
        names = iter(distinct([*macros, *every])[len(macros) :])
        out = []
        for number, enum in enumerate(enums):
            lines = "\n".join(f"    {next(names)} = {own.value}{',' * (own is not enum[-1])} "
                              f"/* {own.means} */" for own in enum)  # fmt: skip
            head = f"enum {self.name}_label" if number == 0 else "enum"
            out.append(f"{head} {{\n{lines}\n}};")
        return out

    def _predict(self) -> str:
        name, n = self.name, self.program.n_outputs
        values = label_values(self.predictor.classes)
        table = None
        if not np.array_equal(values, np.arange(len(values))):
            table = self._rom.table("label", values, "Labels of the classes.")
        lines = [f"{name}_score scores[{n}];"]
        if n > 1:
            lines += ["uint_fast16_t c, best = 0;", f"{name}_scores(x, scores);"]
            lines += [
                f"for (c = 1; c < {n}u; c++) {{",
                "    if (scores[c] > scores[best]) {",
                "        best = c;",
                "    }",
                "}",
            ]
            place = "best"
        else:
            lines.append(f"{name}_scores(x, scores);")
            place = "scores[0] > 0"
        lines.append(
            f"return {f'(int){self._rom.read(table, place)}' if table else f'(int)({place})'};"
        )
        return function(
            f"/* The label of one row, a value of enum {name}_label. */\n"
            f"static inline int {name}_predict(const {name}_input *x)",
            lines,
        )


# Two words for a function that a compiler must not merge into its caller.
_APART = """\
#if defined(__GNUC__)
#define {NAME}_APART __attribute__((noinline, unused))
#else
#define {NAME}_APART inline
#endif"""

_CONTRACT = """\
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif"""

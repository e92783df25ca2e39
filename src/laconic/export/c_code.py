"""C functions that compute the scores of a program. Their length does not grow with the model."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.export.c_inputs import code_lines
from laconic.export.c_text import Rom, c_type, literal, smallest
from laconic.model.input_codes import Inputs
from laconic.model.integers import IntegerProgram
from laconic.model.program import Program, Routing
from laconic.model.segments import Segment

# What each segment adds to the scores, as a comment.
TITLES = {
    "gather": "Inputs.",
    "filled": "Inputs, or values in place of missing ones.",
    "multiply": "Products of two inputs.",
    "at_most": "Inputs that are at most a value.",
    "equals": "Inputs that equal a value.",
    "missing": "Inputs that are missing.",
    "rules": "Pairs of conditions that both hold.",
    "hinge": "Hinges: what a sum of inputs is above a knot.",
    "look_up": "Values of categories.",
    "balls": "Linear functions in balls.",
    "soft_balls": "Linear functions in soft balls.",
    "bumps": "Heights of bumps.",
    "windows": "Largest masked responses of templates.",
}


@dataclass
class Code:
    """The tables and functions of a header.

    ``integers`` is None for a float model. The C types are ``input`` of the device's numbers,
    ``code`` of what the atoms read, ``score``, and ``square`` of squared distances.
    """

    program: Program
    integers: IntegerProgram | None
    rom: Rom
    helpers: dict[str, str] = field(default_factory=dict)
    """Functions that others call, by name."""

    def __post_init__(self) -> None:
        self.name = self.rom.name
        self.n_outputs = self.program.n_outputs
        self.inputs: Inputs | None = self.integers.inputs if self.integers else None
        self.direct = self.inputs is None or self.inputs.direct
        self.input = self.code = self.score = self.square = "float"
        if self.integers is not None and self.inputs is not None:
            self.code = c_type(self.inputs.dtype)
            self.input = "float" if self.inputs.given == "float" else self.code
            self.score = f"int{self.integers.accumulator}_t"
            self.square = f"int{self.integers.distance}_t"

    @property
    def reads_all(self) -> bool:
        """Whether all inputs are read, so that they need no list."""
        return self.inputs is None or len(self.inputs.features) == self.program.n_features

    @property
    def mask_bytes(self) -> int:
        """Bytes of a weight of a mask."""
        return 4 if self.integers is None else 1

    @property
    def code_type(self) -> str | None:
        """NumPy type of codes, or None for float32."""
        return None if self.inputs is None else self.inputs.dtype.name

    @property
    def weight_type(self) -> str | None:
        """NumPy type of weights, or None for float32."""
        return None if self.integers is None else f"int{self.integers.bits}"

    # -- building blocks -----------------------------------------------------------------------

    def constant(self, title: str, values: Any, index: str, why: str, dtype: Any = None) -> str:
        """Return how an entry is read: from a table, or as a number if all entries are equal."""
        values = np.asarray(values)
        if len(values) and (values == values[0]).all():
            return literal(values[0])
        return self.rom.read(self.rom.table(title, values, why, dtype), index)

    def per_class(self, *statements: str) -> list[str]:
        """Return a loop over the scores."""
        if self.n_outputs == 1:
            return [s.replace("scores[c]", "scores[0]") for s in statements]
        return loop("c", self.n_outputs, statements)

    def helper(self, name: str, head: str, body: list[str]) -> str:
        """Add a function that others call, unless it is there, and return its full name."""
        full = f"{self.name}_{name}"
        self.helpers.setdefault(name, function(head.format(full), body))
        return full

    def rescale(self) -> str:
        """Return the function that rounds numbers which may be negative."""
        kind = self.score if self._is_wide() else "int32_t"
        return self.helper(
            "rescale",
            "/* A value divided by 2^bits, rounded half away from zero. */\n"
            f"static inline {kind} {{}}({kind} value, uint_fast8_t bits)",
            [
                f"const {kind} half = (({kind})1 << bits) >> 1;",
                "return value < 0 ? -((half - value) >> bits) : (value + half) >> bits;",
            ],
        )

    def _is_wide(self) -> bool:
        return any(segment.kind == "soft_balls" for segment in self.program.segments)

    def squared(self, centre: str) -> str:
        """Return the function for the squared distance of a row from a centre."""
        kind, read = self.square, self.rom.read(centre, "f").replace(f"{centre}[f]", "centre[f]")
        return self.helper(
            "squared",
            "/* The squared distance of a row from a centre. */\n"
            f"static inline {kind} {{}}(const {self.code} *q, "
            f"const {self.rom.type_of(centre)} *centre)",
            [
                f"{kind} sum = 0;",
                "uint_fast16_t f;",
                *loop("f", self.program.n_features, [
                    f"const {kind} gap = ({kind})q[f] - {read};",
                    "sum = sum + gap * gap;",
                ]),
                "return sum;",
            ],
        )  # fmt: skip

    def centre_type(self) -> Any:
        """Return one type for the centres of balls and holes."""
        if self.integers is None:
            return None
        parts = [s.tables["centre"] for s in self.program.segments if "centre" in s.tables]
        routing = self.program.routing
        parts += [] if routing is None else [routing.centre]
        return smallest(np.concatenate([part.ravel() for part in parts]))

    def limit_type(self) -> str | None:
        """NumPy type of squared radii, or None for float32."""
        return None if self.integers is None else f"int{self.integers.distance}"

    # -- functions -----------------------------------------------------------------------------

    def functions(self, segment_lines: Callable[[Code, Segment], list[str]]) -> list[str]:
        """Write all tables and functions, and return the functions in order.

        ``segment_lines`` writes what the atoms of a segment add to the scores.
        """
        bias = self.rom.table("bias", self.program.bias, "What the scores start from.")
        leaves, body = self.program.n_leaves, ["uint_fast16_t j;"]
        if self.n_outputs > 1:
            body.append("uint_fast16_t c;")
        first = "c" if self.n_outputs > 1 else "0"
        if self.program.routing is not None:
            body.append(f"const uint_fast16_t leaf = {self._leaf(self.program.routing)}(q);")
            first = f"leaf * {self.n_outputs}u + {first}"
        body += self.per_class(f"scores[c] = {self.rom.read(bias, first)};")
        if any(segment.kind == "windows" for segment in self.program.segments):
            body.append("uint_fast16_t k;")
        for segment in self.program.segments:
            body += ["", f"/* {TITLES[segment.kind]} */", *segment_lines(self, segment)]
        if not self.program.segments:
            body = [line for line in body if line != "uint_fast16_t j;"]
            body += [] if leaves > 1 else ["(void)q;"]
        sums = function(
            f"/* The scores of a row of {'inputs' if self.direct else 'codes'}. */\n"
            f"static inline void {self.name}_add_up(const {self.code} *q, {self.score} *scores)",
            body,
        )
        scores = self._scores()
        return [*self.helpers.values(), sums, scores]

    def of_leaf(self, counter: str, kind: str, starts: np.ndarray, lines: list[str]) -> list[str]:
        """Return the loop over the atoms (or groups of atoms) of a segment that the leaf has."""
        if self.program.n_leaves == 1:
            return loop(counter, int(starts[-1]), lines)
        table = self.rom.table(f"{kind}_starts", starts, "First of each leaf.")
        first, last = self.rom.read(table, "leaf"), self.rom.read(table, "leaf + 1")
        return [
            f"for ({counter} = {first}; {counter} < {last}; {counter}++) {{",
            *indented(lines),
            "}",
        ]

    def _scores(self) -> str:
        head = (
            "/* The scores of one row: x has "
            f"{self.name.upper()}_N_FEATURES numbers, scores gets {self.name.upper()}_N_SCORES. */"
            f"\nstatic inline void {self.name}_scores(const {self.name}_input *x, "
            f"{self.name}_score *scores)"
        )
        if self.direct:
            return function(head, [f"{self.name}_add_up(x, scores);"])
        assert self.inputs is not None
        n = len(self.inputs.features)
        lines = [f"{self.code} q[{max(n, 1)}] = {{0}};", "uint_fast16_t f;"]
        if n:
            place = "f"
            if not self.reads_all:
                reads = self.rom.table("reads", self.inputs.features, "Inputs that are read.")
                place = self.rom.read(reads, "f")
            lines += loop("f", n, code_lines(self, self.inputs, f"x[{place}]"))
        else:
            lines = [lines[0], "(void)x;"]
        return function(head, [*lines, f"{self.name}_add_up(q, scores);"])

    def _leaf(self, routing: Routing) -> str:
        """Return the function that finds the leaf of a row."""
        centre = self.rom.table(
            "hole_centre", routing.centre, "Centres of holes.", self.centre_type()
        )
        limit = self.rom.table(
            "hole_limit", routing.limit, "Largest squared distances in holes.", self.limit_type()
        )
        inside = self.rom.table("inside", routing.inside, "Where holes lead. Leaf l is -1 - l.")
        first, outside, last = "0", str(int(routing.outside[0])), f"{len(routing.limit)}u"
        if routing.nested:
            table = self.rom.table("first_hole", routing.first, "First hole of each node.")
            first, last = self.rom.read(table, "place"), self.rom.read(table, "place + 1")
            table = self.rom.table("outside", routing.outside, "Where a row in no hole goes.")
            outside = self.rom.read(table, "place")
        width = self.program.n_features
        start = f"h * {width}u" if routing.centre.size < 2**16 else f"(uint_fast32_t)h * {width}u"
        distance = f"{self.squared(centre)}(q, &{centre}[{start}])"
        body = [
            f"next = {outside};",
            f"for (h = {first}; h < {last}; h++) {{",
            f"    if ({distance} <= {self.rom.read(limit, 'h')}) {{",
            f"        next = {self.rom.read(inside, 'h')};",
            "    }",
            "}",
            "place = next;",
        ]
        if routing.nested:
            body = ["do {", *indented(body), "} while (place >= 0);"]
        return self.helper(
            "leaf",
            "/* The leaf of a row: the newest hole that contains the row decides. */\n"
            f"static inline uint_fast16_t {{}}(const {self.code} *q)",
            [
                f"int_fast16_t place{' = 0' if routing.nested else ''};",
                "int_fast16_t next;",
                "uint_fast16_t h;",
                *body,
                "return (uint_fast16_t)(-1 - place);",
            ],
        )


def indented(lines: Any) -> list[str]:
    """Return lines one step to the right."""
    return [f"    {line}" if line else "" for line in lines]


def loop(counter: str, count: int, lines: Any) -> list[str]:
    """Return a loop from 0 to ``count - 1``."""
    head = f"for ({counter} = 0; {counter} < {count}u; {counter}++) {{"
    return [head, *indented(lines), "}"]


def function(head: str, body: list[str]) -> str:
    """Return a C function."""
    return f"{head}\n{{\n{textwrap.indent(chr(10).join(body), '    ')}\n}}"

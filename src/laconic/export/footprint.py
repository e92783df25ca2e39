"""Bytes that a model adds to a program on a chip, before any weight is known.

The promise is tables plus code. Tables are counted (`laconic.export.table_bytes`). The code depends
only on the kinds of atoms and on the types of numbers, not on how many atoms there are.
``benchmarks/code_bytes.py`` links many random models of each kind, and keeps the largest code with
a margin in ``code_bytes.json``. Kinds share code, such as the loop over classes. So a second kind
counts less than a first one, by a part of what kinds save in all measured mixes. The promise is a
measured bound, for the compilers and flags in that file.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic.export.table_bytes import Layout, table_bytes
from laconic.model.input_codes import GIVEN
from laconic.model.lowering import lowered
from laconic.model.program import Program, make_program
from laconic.model.segments import KINDS

CHIP_NAMES = ("c99", "avr", "cortex-m0", "cortex-m4", "rv32")
"""Chips whose code was measured."""

FLOAT = 32
"""Bits of a weight in a float model."""

_MEASURED = Path(__file__).with_name("code_bytes.json")


class Target(NamedTuple):
    """Where a model will run, and with which numbers.

    ``bits`` and ``inputs`` are those of `laconic.Predictor.quantise`. ``bits=None``, or 32, is a
    float model. ``inputs="auto"`` takes uint8, int8 and int16 arrays as they are, and all other
    data as floats.
    """

    chip: str = "c99"
    bits: int | None = 8
    inputs: str = "auto"


def find_target(chip: Any) -> Target:
    """Return the target of a chip's name. A `Target` is returned unchanged, if it is valid."""
    target = Target(chip) if isinstance(chip, str) else chip
    if not isinstance(target, Target):
        known = ", ".join(map(repr, CHIP_NAMES))
        raise TypeError(f"chip must be one of {known}, or a Target, not {chip!r}.")
    if target.bits in (FLOAT, None):
        target = target._replace(bits=None)
        if target.inputs == "auto":
            target = target._replace(inputs="float")
    inputs = ("auto", *GIVEN)
    for name, value, known_values in (
        ("chip", target.chip, CHIP_NAMES), ("inputs", target.inputs, inputs),
        ("bits", target.bits, (8, 16, None)),
    ):  # fmt: skip
        if value not in known_values:
            near = get_close_matches(str(value), map(str, known_values), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            names = ", ".join(map(repr, known_values))
            raise ValueError(f"{name} must be one of {names}, not {value!r}.{hint}")
    return target


def footprint(
    map: Any, n_outputs: int, target: Target, n_features: int, n_classes: int | None = None
) -> int:
    """Return the bytes that a model of these atoms adds to a program at most.

    Parameters
    ----------
    map : FeatureMap
    n_outputs : int
        Number of scores in C. Two scores of which only the difference counts are one.
    target : Target
        With ``inputs`` that are not ``"auto"``.
    n_features : int
        Number of columns of an input row.
    n_classes : int, optional
        Number of classes, by default as many as scores, but at least two.
    """
    primitives = lowered(map)
    width = sum(primitive.n_columns for primitive in primitives)
    weights = np.broadcast_to(0.0, (width, n_outputs))
    program = make_program(primitives, weights, np.zeros(n_outputs), n_features)
    return program_bytes(program, target, n_classes or max(n_outputs, 2))


def program_bytes(program: Program, target: Target, n_classes: int) -> int:
    """Return the bytes that a program adds at most, whatever its weights."""
    tables = table_bytes(program, target.bits, target.inputs, n_classes)
    measured = measured_code()[target.chip]["bytes"]
    return tables + code_bytes(measured, code_parts(program, target.bits, target.inputs))


@cache
def measured_code() -> dict[str, Any]:
    """Return the measured bytes of code, by chip."""
    found: dict[str, Any] = json.loads(_MEASURED.read_text())["chips"]
    return found


def code_bytes(measured: dict[str, int], parts: list[str]) -> int:
    """Return the bytes that all parts of the code take together at most."""
    shared = measured.get(shared_part(parts[0]), 0)
    return sum(part_bytes(measured, part) for part in parts) - shared * (n_kinds(parts) - 1)


def shared_part(part: str) -> str:
    """Return the name of what kinds of atoms share, for the numbers and inputs of a part.

    Examples
    --------
    >>> shared_part("int32 hinge of int8")
    'int32 shared of int8'
    """
    number, _, _, given = part.split()
    return f"{number} shared of {given}"


def n_kinds(parts: list[str]) -> int:
    """Return how many kinds of atoms that share code are among the parts, at least one."""
    kinds = [part.split()[1].removesuffix("_far") for part in parts]
    return max(1, sum(kind not in IN_FULL for kind in kinds))


def part_bytes(measured: dict[str, int], part: str) -> int:
    """Return the bytes of a part of the code. For a part not measured, take the most of its kind.

    The kind of ``"int32 hinge of int8"`` is ``hinge``, with any integers and inputs.
    """
    if part in measured:
        return measured[part]
    number, kind, *_ = part.split()
    alike = [
        size
        for name, size in measured.items()
        if name.split()[1] == kind and name.startswith("float") == number.startswith("float")
    ]
    if not alike:
        raise ValueError(f"the code of {part!r} was not measured on this chip")
    return max(alike)


# More scores than this may make a compiler call memcpy. That counts as a part of its own.
FEW_SCORES = 12
# Parts that count in full. Measured mixes have none of them.
IN_FULL = ("many_scores", "holes", "nested_holes", "balls", "soft_balls", "windows")
# Kinds of segments that stumps have. They are measured together.
STUMPS = ("at_most", "equals", "missing")


def code_parts(program: Program, bits: int | None, given: str) -> list[str]:
    """Return the parts of the code of a header: kinds of atoms, with their numbers and inputs."""
    layout = Layout(program, bits, given)
    number = "float32" if bits is None else f"int{8 * layout.score}"
    far = "_far" if layout.far else ""
    present = {segment.kind for segment in program.segments}
    if bits is not None and "missing" in present:
        present = present - {"missing"} | {"equals"}
    kinds = [kind for kind in KINDS if kind in present and kind not in STUMPS]
    # Images of several shapes have functions of their own.
    kinds += ["windows"] * (sum(segment.kind == "windows" for segment in program.segments) - 1)
    kinds = [kind + far if kind in ("balls", "soft_balls", "bumps") else kind for kind in kinds]
    if asked := [kind for kind in STUMPS if kind in present]:
        kinds.append("+".join(asked))
    if program.routing is not None:
        kinds.append(("nested_holes" if program.routing.nested else "holes") + far)
    kinds = kinds or ["nothing"]
    if program.n_outputs > FEW_SCORES:
        # Routines for distances of 64 bits leave few registers for many scores.
        kinds.append("many_scores" + far * any(kind.endswith("_far") for kind in kinds))
    return [f"{number} {kind} of {given}" for kind in kinds]

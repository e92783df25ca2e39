"""C code of patches: the largest masked response of a template."""

from __future__ import annotations

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.export.c_lines import add, table
from laconic.model.integers import MASK_BITS
from laconic.model.segments import Segment


def window_lines(code: Code, segment: Segment) -> list[str]:
    """Return the lines for atom j: loops over positions under the mask and pixels of a template."""
    pixels = code.rom.table(
        "pixel", segment.tables["pixel"], "Pixels of templates.", code.weight_type
    )
    masks = code.rom.table(
        "mask", segment.tables["weight"], "Weights of masks.",
        None if code.integers is None else "uint8",
    )  # fmt: skip
    kind, response, found, final = _numbers(code, segment, pixels)
    weight = code.rom.read(masks, "weight + y * columns + x")
    position = [
        f"const {code.rom.type_of(masks)} g = {weight};",
        "if (g > 0) {",
        f"    {kind} r = 0;",
        "    for (dy = 0; dy < size; dy++) {",
        "        for (dx = 0; dx < size; dx++) {",
        f"            {response}",
        "        }",
        "    }",
        *indented(found),
        "}",
    ]
    return [
        *_places(code, segment),
        "uint_fast16_t y, x, dy, dx;",
        f"{kind} best = 0;",
        "for (y = 0; y < rows; y++) {",
        "    for (x = 0; x < columns; x++) {",
        *indented(indented(position)),
        "    }",
        "}",
        *add(code, segment, final, "int16_t"),
    ]


def _places(code: Code, segment: Segment) -> list[str]:
    """Return the lines that find the template and the mask of atom j."""
    tables = segment.tables
    sizes, rows, columns = tables["size"], tables["rows"], tables["columns"]
    long = max(tables["pixel"].size, tables["weight"].size) >= 2**16
    place = "uint_fast32_t" if long else "uint_fast16_t"
    of_template = {
        "size": ("uint_fast16_t", sizes, "Sizes of templates."),
        "pixel": (place, np.cumsum([0, *np.square(sizes)])[:-1], "First pixel of each template."),
    }
    of_mask = {
        "rows": ("uint_fast16_t", rows, "Rows of masks."),
        "columns": ("uint_fast16_t", columns, "Columns of masks."),
        "weight": (place, np.cumsum([0, *(rows * columns)])[:-1], "First weight of each mask."),
    }
    lines = []
    for number, name, entries in (("t", "template", of_template), ("m", "mask", of_mask)):
        own = [
            f"const {kind} {entry} = {code.constant(f'{name}_{entry}', values, number, why)};"
            for entry, (kind, values, why) in entries.items()
        ]
        if any(f"[{number}]" in line for line in own):  # not all templates or masks are alike
            of_atom = table(code, segment, name, f"{name.capitalize()}s of atoms.")
            lines.append(f"const uint_fast16_t {number} = {of_atom};")
        lines += own
    for name, why in (("top", "First rows of masks."), ("left", "First columns of masks.")):
        lines.append(f"const uint_fast16_t {name} = {table(code, segment, name, why)};")
    return lines


def _numbers(code: Code, segment: Segment, pixels: str) -> tuple[str, str, list[str], str]:
    """Return the type of a response, how it is added up, masked and kept, and the final value."""
    value = f"q[(top + y + dy) * {int(segment.tables['shape'][1])}u + left + x + dx]"
    pixel = code.rom.read(pixels, "pixel + dy * size + dx")
    larger = ["if (masked > best) {", "    best = masked;", "}"]
    if code.inputs is None:
        masked = "const float masked = g * r;"
        return "float", f"r = r + {pixel} * {value};", [masked, *larger], "best"
    zero, down = int(code.inputs.zero[0]), int(segment.tables["down"][0])
    value = f"({value} - ({zero}))" if zero else value
    rescaled = f"(r >> {down})" if down else "r"
    masked = f"const int32_t masked = r > 0 ? {rescaled} * g : 0;"
    response = f"r += (int32_t){pixel} * {value};"
    return "int32_t", response, [masked, *larger], f"best >> {MASK_BITS}"

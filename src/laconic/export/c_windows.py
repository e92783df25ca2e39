"""C code of patches: the largest masked response of a template.

Atoms with one template form a group. The code walks over an image line by line. It computes a
response when the first mask of the group asks for it, and keeps it for the other masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.export.c_lines import add
from laconic.export.window_tables import WindowTables, window_tables
from laconic.model.integers import MASK_BITS
from laconic.model.proof import pixel_range
from laconic.model.segments import Segment


class _Names(NamedTuple):
    """C types of a segment: of places and counters, of responses that are kept, and of sums."""

    number: str
    kept: str
    sum: str


def window_lines(code: Code, segment: Segment) -> list[str]:
    """Return the loop over the groups of a segment."""
    tables = window_tables(segment, code.mask_bytes)
    height, width = (int(n) for n in segment.tables["shape"])
    types = _Names(_number(tables), "float", "float")
    final = "best[j - first]"
    if code.integers is not None:
        types, final = types._replace(kept="int16_t", sum="int32_t"), f"{final} >> {MASK_BITS}"
    pixels = code.rom.table(
        "pixel", segment.tables["pixel"], "Pixels of templates.", code.weight_type
    )
    lines = [
        *_group(code, tables, types, pixels),
        f"const {types.number} across = {width + 1} - size;",
        f"{types.sum} best[{int(np.diff(tables.first).max())}];",
        f"{types.kept} line[{width + 1 - int(tables.size.min())}];",
        f"{types.number} y, x, dy, dx;",
        "for (j = first; j < last; j++) {",
        "    best[j - first] = 0;",
        "}",
        f"for (y = 0; y < {height + 1} - size; y++) {{",
        "    for (x = 0; x < across; x++) {",
        "        line[x] = -1; /* not computed yet */",
        "    }",
        "    for (j = first; j < last; j++) {",
        *indented(indented(_atom(code, tables, types, pixels))),
        "    }",
        "}",
        "for (j = first; j < last; j++) {",
        *indented(add(code, tables.segment, final, "int16_t")),
        "}",
    ]
    return code.of_leaf("k", "windows", tables.starts, lines)


def _number(tables: WindowTables) -> str:
    """Return the C type of positions in an image and of entries of sheets."""
    sheets, most = tables.sheets, [0]
    for axis, side in enumerate(tables.segment.tables["shape"].tolist()):
        step, turn = (own[sheets.sheet, axis] for own in (sheets.step, sheets.turn))
        ends = [step * end - sheets.first[:, axis] for end in (0, side)]
        most += [side + 1, *(int(np.abs(own).max()) for own in (*ends, turn - ends[0]))]
    bits = next(bits for bits in (8, 16, 32) if max(most) < 2 ** (bits - 1))
    return f"int_fast{bits}_t"


def _group(code: Code, tables: WindowTables, types: _Names, pixels: str) -> list[str]:
    """Return the lines that find the atoms and the template of group k."""
    first, last = "0", f"{tables.first[-1]}"
    if len(tables.first) > 2:
        own = code.rom.table("windows_first", tables.first, "First atom of each group.")
        first, last = code.rom.read(own, "k"), code.rom.read(own, "k + 1")
    size = code.constant("windows_size", tables.size, "k", "Size of each template.")
    pixel = code.constant("windows_pixel", tables.pixel, "k", "First pixel of each template.")
    return [
        f"const uint_fast16_t first = {first}, last = {last};",
        f"const {types.number} size = {size};",
        f"const {code.rom.type_of(pixels)} *const template_pixels = &{pixels}[{pixel}];",
    ]


def _atom(code: Code, tables: WindowTables, types: _Names, pixels: str) -> list[str]:
    """Return the lines that take the largest masked response of atom j on line y."""
    sheets, lines, place, sheet = tables.sheets, [], "j", "0"
    if not np.array_equal(tables.place, np.arange(len(tables.place))):
        own = code.constant("windows_place", tables.place, "j", "Place of each atom.")
        lines.append(f"const uint_fast16_t place = {own};")
        place = "place"
    if len(sheets.rows) > 1:
        own = code.constant("windows_sheet", sheets.sheet, place, "Sheet of masks of each place.")
        lines.append(f"const uint_fast16_t sheet = {own};")
        sheet = "sheet"
    first, step, turn = [], [], []
    for axis, name in enumerate(("row", "column")):
        why = f"Entry of the first {name} of a sheet, negated."
        first.append(code.constant(f"windows_{name}", sheets.first[:, axis], place, why))
        why = f"Steps from {name} to {name}."
        step.append(code.constant(f"windows_{name}_step", sheets.step[:, axis], sheet, why))
        why = f"Where entries of {name}s below 0 are."
        turn.append(code.constant(f"windows_{name}_turn", sheets.turn[:, axis], sheet, why))
    rows = code.constant("windows_rows", sheets.rows, sheet, "Rows of each sheet.")
    before = code.constant("windows_sheet_row", sheets.first_row, sheet, "First row of each sheet.")
    starts = code.rom.table("mask_start", sheets.starts, "First weight of each row of a sheet.")
    weight = sheets.weight.astype(np.float32 if code.integers is None else np.uint8)
    masks = code.rom.table("mask", weight, "Weights of masks.", weight.dtype)
    at = "row" if before == "0" else f"{before} + row"
    down = "y" if step[0] == "1" else f"{step[0]} * y"
    weighed = [
        *_response(code, tables, types, pixels),
        f"masked = {_masked(code, types, code.rom.at(masks, 'weights + column'))};",
        "if (masked > largest) {",
        "    largest = masked;",
        "}",
    ]
    if (sheets.weight == 0).any():
        weight = code.rom.at(masks, "weights + column")
        weighed = [f"if ({weight} > 0) {{", *indented(weighed), "}"]
    return [
        *lines,
        f"{types.number} row = {down} - ({first[0]});",
        f"row = row < 0 ? {turn[0]} - row : row;",
        f"if (row < {rows}) {{",
        f"    const uint_fast16_t start = {code.rom.read(starts, at)};",
        f"    const {types.number} length = {code.rom.read(starts, f'{at} + 1')} - start;",
        f"    const {code.rom.type_of(masks)} *const weights = &{masks}[start];",
        f"    {types.number} entry = -({first[1]});",
        f"    {types.sum} largest = best[j - first], masked;",
        "    for (x = 0; x < across; x++) {",
        f"        const {types.number} column = entry < 0 ? {turn[1]} - entry : entry;",
        "        if (column < length) {",
        *indented(indented(indented(weighed))),
        "        }",
        f"        entry += {step[1]};",
        "    }",
        "    best[j - first] = largest;",
        "}",
    ]


def _response(code: Code, tables: WindowTables, types: _Names, pixels: str) -> list[str]:
    """Return the lines that compute the response at (y, x), unless it is known."""
    pixel, width = code.rom.at(pixels, "v + dx"), int(tables.segment.tables["shape"][1])
    value, kept = "p[dx]", "r"
    if code.inputs is not None:
        zero, down = int(code.inputs.zero[0]), int(tables.segment.tables["down"][0])
        value = f"(p[dx] - ({zero}))" if zero else value
        kept = f"(int16_t)(r >> {down})"
        far = max(map(abs, pixel_range(code.inputs)))
        if far * int(np.abs(tables.segment.tables["pixel"]).max()) >= 2**15:
            pixel = f"(int32_t){pixel}"
    return [
        "if (line[x] < 0) {",
        f"    const {code.code} *p = &q[y * {width}u + x];",
        f"    const {code.rom.type_of(pixels)} *v = template_pixels;",
        f"    {types.sum} r = 0;",
        "    for (dy = 0; dy < size; dy++) {",
        "        for (dx = 0; dx < size; dx++) {",
        f"            r = r + {pixel} * {value};",
        "        }",
        "        v += size;",
        f"        p += {width};",
        "    }",
        f"    line[x] = r > 0 ? {kept} : 0;",
        "}",
    ]


def _masked(code: Code, types: _Names, weight: str) -> str:
    if code.integers is None:
        return f"{weight} * line[x]"
    return f"(int32_t)line[x] * {weight}"

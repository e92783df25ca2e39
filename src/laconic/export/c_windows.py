"""C code of patches: the largest masked response of a template.

Atoms with one template form a group. The code walks over an image line by line. It computes a
response when the first mask of the group asks for it, and keeps it for the other masks. The two
inner loops are functions of their own, because a Cortex-M0 has only eight registers for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laconic.export.c_code import Code, indented
from laconic.export.c_lines import add
from laconic.export.window_tables import WindowTables, window_tables
from laconic.model.integers import MASK_BITS
from laconic.model.proof import pixel_range
from laconic.model.segments import Segment


def window_lines(code: Code, segment: Segment) -> list[str]:
    """Return the loop over the groups of a segment."""
    return _Writer(code, window_tables(segment, code.mask_bytes)).lines()


@dataclass
class _Writer:
    code: Code
    tables: WindowTables

    def __post_init__(self) -> None:
        code, tables = self.code, self.tables
        self.whole = code.integers is not None
        self.number = _number(tables)
        self.kept, self.sum = ("int16_t", "int32_t") if self.whole else ("float", "float")
        height, width = tables.segment.tables["shape"].tolist()
        self.height, self.width = int(height), int(width)
        rom, sheets = code.rom, tables.sheets
        given = tables.segment.tables["pixel"]
        self.pixels = rom.table("pixel", given, "Pixels of templates.", code.weight_type)
        self.pixel_type = rom.type_of(self.pixels)
        weight = sheets.weight.astype(np.uint8 if self.whole else np.float32)
        self.masks = rom.table("mask", weight, "Weights of masks.", weight.dtype)
        self.mask_type = rom.type_of(self.masks)
        # Functions of a second segment have other names.
        self.suffix = self.pixels.removeprefix(f"{code.name}_pixel")
        self.size = code.constant("windows_size", tables.size, "k", "Size of each template.")

    def lines(self) -> list[str]:
        """Return the loop over the groups."""
        code, tables, n = self.code, self.tables, self.number
        first, last = "0", f"{tables.first[-1]}"
        if len(tables.first) > 2:
            own = code.rom.table("windows_first", tables.first, "First atom of each group.")
            first, last = code.rom.read(own, "k"), code.rom.read(own, "k + 1")
        pixel = code.constant("windows_pixel", tables.pixel, "k", "First pixel of each group.")
        final = f"best[j - first]{f' >> {MASK_BITS}' if self.whole else ''}"
        lines = [
            f"const uint_fast16_t first = {first}, last = {last};",
            f"const {n} size = {self.size};",
            f"const {self.pixel_type} *const pixels = &{self.pixels}[{pixel}];",
            f"{self.sum} best[{int(np.diff(tables.first).max())}] = {{0}};",
            f"{self.kept} line[{self.width + 1 - int(tables.size.min())}];",
            f"{n} y, x;",
            f"for (y = 0; y < {self.height + 1} - size; y++) {{",
            f"    for (x = 0; x < {self.width + 1} - size; x++) {{",
            "        line[x] = -1; /* not computed yet */",
            "    }",
            f"    {self.sum} *own = best;",
            "    for (j = first; j < last; j++, own++) {",
            *indented(indented(self._atom())),
            "    }",
            "}",
            "for (j = first; j < last; j++) {",
            *indented(add(code, tables.segment, final, "int16_t")),
            "}",
        ]
        return code.of_leaf("k", "windows", tables.starts, lines)

    def _atom(self) -> list[str]:
        """Return the lines that take the largest masked response of atom j on line y."""
        code, sheets, n = self.code, self.tables.sheets, self.number
        lines, place, sheet = [], "j", "0"
        if not np.array_equal(self.tables.place, np.arange(len(self.tables.place))):
            own = code.constant("windows_place", self.tables.place, "j", "Place of each atom.")
            lines.append(f"const uint_fast16_t place = {own};")
            place = "place"
        if len(sheets.rows) > 1:
            own = code.constant("windows_sheet", sheets.sheet, place, "Sheet of each place.")
            lines.append(f"const uint_fast16_t sheet = {own};")
            sheet = "sheet"
        rows = code.constant("windows_rows", sheets.rows, sheet, "Rows of each sheet.")
        before = code.constant("windows_before", sheets.first_row, sheet, "First row of a sheet.")
        starts = code.rom.table("mask_start", sheets.starts, "First weight of each row of a sheet.")
        (y, step_y, turn_y), (x, step_x, turn_x) = (
            self._axis(axis, place, sheet) for axis in range(2)
        )
        at = "row" if before == "0" else f"{before} + row"
        fixed = [
            (f"const {code.code} *p", f"&q[y * {self.width}u]"),
            (f"const {self.pixel_type} *v", "pixels"),
            (f"{self.kept} *line", "line"),
            (f"const {code.rom.type_of(starts)} *starts", f"&{starts}[{at}]"),
            (f"{n} entry", f"-({x})"),
            (f"{self.sum} *best", "own"),
        ]
        named = [(f"{n} size", self.size), (f"{n} step", step_x), (f"{n} turn", turn_x)]
        more = [(name, name.split()[1]) for name, value in named if not _is_number(value)]
        weigh = self._weigh([name for name, _ in (*fixed, *more)], starts, step_x, turn_x)
        given = ", ".join(value for _, value in (*fixed, *more))
        return [
            *lines,
            f"{n} row = {f'{step_y} * ' if step_y != '1' else ''}y - ({y});",
            f"row = row < 0 ? {turn_y} - row : row;",
            f"if (row < {rows}) {{",
            *(f"    const {name} = {value};" for name, value in named[1:] if not _is_number(value)),
            f"    {weigh}({given});",
            "}",
        ]

    def _axis(self, axis: int, place: str, sheet: str) -> tuple[str, str, str]:
        """Return the first entry, the step and the turn of a direction; see `mask_sheets`."""
        code, sheets, name = self.code, self.tables.sheets, ("row", "column")[axis]
        what = (
            (f"windows_{name}", sheets.first, place, f"Before the first {name} of each place."),
            (f"windows_{name}_step", sheets.step, sheet, f"Steps from {name} to {name}."),
            (f"windows_{name}_turn", sheets.turn, sheet, f"Where {name}s below 0 are read."),
        )
        first, step, turn = (code.constant(t, v[:, axis], at, why) for t, v, at, why in what)
        return first, step, turn

    def _weigh(self, parameters: list[str], starts: str, step: str, turn: str) -> str:
        """Return the function for the largest masked response of an atom on a line."""
        begin, end = (self.code.rom.at(starts, place) for place in ("starts", "starts + 1"))
        step, turn = (
            value if _is_number(value) else name for value, name in ((step, "step"), (turn, "turn"))
        )
        size = self.size if _is_number(self.size) else "size"
        across = f"{self.width + 1 - int(size)}" if _is_number(size) else f"{self.width + 1} - size"
        if step != "1":
            across = f"{step} * ({across})"
        weight = self.code.rom.at(self.masks, f"weights + (entry < 0 ? {turn} - entry : entry)")
        response = f"{self._response()}(p, v{', size' if size == 'size' else ''})"
        weighed = [
            f"{self.kept} r = *line;",
            f"{self.sum} masked;",
            "if (r < 0) {",
            f"    r = {response};",
            "    *line = r;",
            "}",
            f"masked = {'(int32_t)' if self.whole else ''}r * {weight};",
            "if (masked > largest) {",
            "    largest = masked;",
            "}",
        ]
        if (self.tables.sheets.weight == 0).any():
            weighed = [f"if ({weight} > 0) {{", *indented(weighed), "}"]
        long = len(self.tables.sheets.weight) >= 2**16
        low = f"{turn} - length"  # entries up to it are beyond the sheet
        if (self.tables.sheets.turn > 0).any():
            low = f"{turn} < length ? {low} : -1"
        return self.code.helper(
            f"weigh{self.suffix}",
            "/* Keep the largest masked response of an atom, if it is on this line. */\n"
            f"static {self.code.name.upper()}_APART void {{}}({', '.join(parameters)})",
            [
                f"const {'uint_fast32_t' if long else 'uint_fast16_t'} start = {begin};",
                f"const {self.number} length = {end} - start;",
                f"const {self.mask_type} *const weights = &{self.masks}[start];",
                f"{self.sum} largest = *best;",
                f"const {self.number} low = {low};",
                f"{self.number} end = entry + {across};",
                "if (end > length) {",
                "    end = length;",
                "}",
                f"for (; entry <= low && entry < end; entry += {step}) {{",
                "    p++;",
                "    line++;",
                "}",
                f"for (; entry < end; entry += {step}) {{",
                *indented(weighed),
                "    p++;",
                "    line++;",
                "}",
                "*best = largest;",
            ],
        )

    def _response(self) -> str:
        """Return the function for the response of a template at a position, or 0 if it is less."""
        code, tables = self.code, self.tables.segment.tables
        size = self.size if _is_number(self.size) else "size"
        pixel, value, kept = code.rom.at(self.pixels, "v + dx"), "p[dx]", "r"
        # Integers are added up backwards, because chips compare with 0 for free.
        across = f"for (dx = {size} - 1; dx >= 0; dx--) {{"
        if code.inputs is None:
            across = f"for (dx = 0; dx < {size}; dx++) {{"
        else:
            zero, down = int(code.inputs.zero[0]), int(tables["down"][0])
            value = f"(p[dx] - ({zero}))" if zero else value
            kept = f"(int16_t)(r >> {down})"
            far = max(map(abs, pixel_range(code.inputs)))
            if far * int(np.abs(tables["pixel"]).max()) >= 2**15:  # int may have 16 bits
                pixel = f"(int32_t){pixel}"
        own = "" if _is_number(self.size) else f", {self.number} size"
        return code.helper(
            f"response{self.suffix}",
            "/* The response of a template at a position. It is 0 if it would be less. */\n"
            f"static {code.name.upper()}_APART {self.kept} {{}}"
            f"(const {code.code} *p, const {self.pixel_type} *v{own})",
            [
                f"{self.sum} r = 0;",
                f"{self.number} dy, dx;",
                f"for (dy = 0; dy < {size}; dy++) {{",
                f"    {across}",
                f"        r = r + {pixel} * {value};",
                "    }",
                f"    v += {size};",
                f"    p += {self.width};",
                "}",
                f"return r > 0 ? {kept} : 0;",
            ],
        )


def _is_number(value: str) -> bool:
    """Return whether a value is a number in C, and not an entry of a table."""
    return value.lstrip("-").isdigit()


def _number(tables: WindowTables) -> str:
    """Return the C type of positions in an image and of entries of sheets."""
    sheets, most = tables.sheets, [0]
    for axis, side in enumerate(tables.segment.tables["shape"].tolist()):
        step, turn = (own[sheets.sheet, axis] for own in (sheets.step, sheets.turn))
        ends = [step * end - sheets.first[:, axis] for end in (0, side)]
        most += [side + 1, *(int(np.abs(own).max()) for own in (*ends, turn - ends[0]))]
    bits = next(bits for bits in (8, 16, 32) if max(most) < 2 ** (bits - 1))
    return f"int_fast{bits}_t"

"""C headers and ONNX models of the commands: options, how they are made, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laconic.cli.files import need
from laconic.data.errors import UserError

# Listed here so that --help needs no heavy import. A test compares them with the library's own.
CHIPS = ("c99", "avr", "cortex-m0", "cortex-m4", "rv32")
INPUTS = ("float", "uint8", "int8", "int16")
BITS = (8, 16, 32)
# If 8 bits change more than this part of the labels, 16 are suggested.
MANY = 0.01
KINDS = (".h", ".hpp", ".hh", ".hxx", ".inc")
ONNX = ".onnx"


def add_number_arguments(parser: Any) -> None:
    """Add the options that say with which numbers the exported model computes."""
    parser.add_argument(
        "--bits", type=int, choices=BITS,
        help="bits of an exported weight: 8 or 16 for integers, 32 for float (default: 8, or 32 if "
        "fit writes ONNX; compact tries 8 and 16)",
    )  # fmt: skip
    parser.add_argument(
        "--inputs", choices=INPUTS,
        help="what the device hands over: float is scaled to integers, the others are taken as "
        "they are (default: float)",
    )  # fmt: skip


def add_name(parser: Any) -> None:
    """Add the option for the prefix of the names in C, or the name of a graph in ONNX."""
    parser.add_argument(
        "--name", help="prefix of all names in C, or name in ONNX (default: the name of the file)"
    )


def check_header(file: str, name: str | None) -> str:
    """Return the prefix of the names in C, and refuse a file name that is not one of a header."""
    from laconic.export.c_text import check_name

    if Path(file).suffix.lower() not in KINDS:
        raise UserError(f"{file}: a C header is a .h file. Rename it.")
    if name is not None:
        return check_name(name)
    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in Path(file).stem).strip("_")
    try:
        return check_name(made)
    except ValueError:
        raise UserError(f"{file} makes no name in C. Give one with --name.") from None


def is_onnx(file: str) -> bool:
    """Whether the name of a file is that of an ONNX model."""
    return Path(file).suffix.lower() == ONNX


def check_onnx(file: str, name: str | None) -> str:
    """Return the name of the graph, and refuse a file name that is not one of an ONNX model."""
    if not is_onnx(file):
        raise UserError(f"{file}: an ONNX model is a .onnx file. Rename it.")
    need("onnx", "onnx")
    if name == "":
        raise UserError("--name must not be empty.")
    return name or Path(file).stem


def check_export(file: str, name: str | None) -> str:
    """Check a C header or an ONNX model by the ending of its name, and return the name in it."""
    return check_onnx(file, name) if is_onnx(file) else check_header(file, name)


def with_numbers(predictor: Any, X: Any, y: Any, bits: int | None, inputs: str | None) -> Any:
    """Return a predictor with the numbers that the options ask for. Rows choose the scales."""
    if bits == 32:
        if inputs not in (None, "float"):
            raise UserError(f"--bits 32 computes with floats. Leave out --inputs {inputs}.")
        return predictor
    return predictor.quantise(X, bits=bits or 8, inputs=inputs or "float", y=y)


def changed(predictor: Any) -> str:
    """Say how many labels integers change, and what to do if these are many."""
    change, bits = predictor.change, predictor.integers.bits
    if change.labels <= MANY or bits > 8:
        return str(change)
    return f"{change} Weights of 16 bits may change fewer: give --bits 16."


def told(header: Any, chip: str | None) -> str:
    """Say what a header takes: its tables, and on a chip all that it adds to a program.

    Of an ONNX model, say its size and what it takes.
    """
    if not hasattr(header, "table_bytes"):
        return str(header)
    text = f"{header.table_bytes:,} bytes of tables"
    if chip is None:
        return text
    from laconic.export.chips import compiler_version, find_chip, is_installed, measure
    from laconic.export.footprint import measured_code

    found = find_chip(chip)
    if not is_installed(found):
        return f"{text}; install {' and '.join(found.packages)} to measure it on {chip}"
    flash = measure(str(header), found, header.name).flash
    version = compiler_version(found)
    where = f"{flash:,} bytes of flash on {chip} ({version}), {text}"
    known = measured_code()[chip]["compiler"]
    return where if version == known else f"{where}; promises are for {known}"

"""``laconic export``: write a saved model as a C header, as an ONNX model, or both."""

from __future__ import annotations

import argparse
from typing import Any

from laconic.cli.console import make_console, say
from laconic.cli.dates import add_dates
from laconic.cli.files import check_files, load_predictor
from laconic.cli.headers import (
    CHIPS,
    add_name,
    add_number_arguments,
    changed,
    check_header,
    check_onnx,
    told,
    with_numbers,
)
from laconic.cli.model_rows import rows_for
from laconic.cli.numbers import add_decimal
from laconic.data.errors import UserError

SUMMARY = "Write a saved model as a C header or an ONNX model."


def add_arguments(export: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    export.add_argument("model", metavar="MODEL", help="file from laconic fit or Predictor.save")
    export.add_argument("--c", metavar="FILE", help="C header to write, such as model.h")
    export.add_argument("--onnx", metavar="FILE", help="ONNX model to write, such as model.onnx")
    export.add_argument(
        "--rows", metavar="TABLE",
        help="training rows, to compute with integers: scales are chosen on them (without them, "
        "the exported model computes with floats)",
    )  # fmt: skip
    add_number_arguments(export)
    add_name(export)
    export.add_argument(
        "--chip", choices=CHIPS, help="chip on which to measure --c, if its compiler is here"
    )
    export.add_argument(
        "--probabilities", action="store_true", help="add probabilities to what is written"
    )
    export.add_argument(
        "--out", metavar="FILE", help="file for the model with integers (default: not saved)"
    )
    add_decimal(export)
    add_dates(export)


def run(args: argparse.Namespace) -> int:
    """Write the header or the ONNX model, and say what it takes."""
    inputs = {"the model": args.model, **({"the rows": args.rows} if args.rows else {})}
    if not args.c and not args.onnx:
        raise UserError("there is no file to write. Give --c FILE or --onnx FILE.")
    if args.chip and not args.c:
        raise UserError("--chip measures a C header. Give --c FILE, or leave out --chip.")
    check_files({"--c": args.c, "--onnx": args.onnx, "--out": args.out}, inputs)
    c_name = check_header(args.c, args.name) if args.c else ""
    graph_name = check_onnx(args.onnx, args.name) if args.onnx else ""
    predictor: Any = load_predictor(args.model)
    whole = hasattr(predictor, "integers")
    if whole and (args.rows or args.bits or args.inputs):
        raise UserError(f"{args.model} has integers. Leave out --rows, --bits and --inputs.")
    if args.rows:
        X = rows_for(predictor, args.rows, args.decimal, args.dates)
        predictor = with_numbers(predictor, X, None, args.bits, args.inputs)
    elif args.bits in (8, 16) or args.inputs not in (None, "float"):
        raise UserError("integers need training rows, which set their scales. Give --rows TABLE.")
    if args.out and not hasattr(predictor, "integers"):
        raise UserError("--out saves a model with integers. Give --rows TABLE, or leave out --out.")
    made = []
    if args.c:
        made.append((args.c, predictor.to_c(c_name, probabilities=args.probabilities)))
    if args.onnx:
        graph = predictor.to_onnx(graph_name, probabilities=args.probabilities)
        made.append((args.onnx, graph))
    for file, model in made:
        model.save(file)
    if args.out:
        predictor.save(args.out)
    console = make_console()
    if hasattr(predictor, "integers") and not whole:
        console.print(changed(predictor), markup=False)
    for file, model in made:
        say(console, f"saved  {file}", told(model, args.chip))
    if args.out:
        say(console, f"saved  {args.out}", "the model with integers")
    return 0

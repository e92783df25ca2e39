"""The ``laconic`` command: a demo, and models of tables without writing Python.

Only argparse is imported at the start. Every command imports what it needs itself.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from laconic import __version__
from laconic.cli import demo, describe, export, fit, holes, predict
from laconic.cli.output import INTERRUPTED, standard_output
from laconic.cli.output import NAME as STANDARD_OUTPUT
from laconic.data.errors import UserError

COMMANDS: dict[str, Any] = {
    "demo": demo, "fit": fit, "predict": predict, "export": export, "holes": holes,
    "describe": describe,
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """Parser that reports a wrong command line like every other user error."""

    def error(self, message: str) -> NoReturn:
        files = [word for word in message.split() if word.lower().endswith((".parquet", ".csv"))]
        if message.startswith("unrecognized arguments:") and files:
            message += "; to give several files, quote their pattern, as in 'rows/*.parquet'"
        self.exit(2, f"laconic: error: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        with standard_output():
            return _run(argv)
    except KeyboardInterrupt:
        _tell("laconic: interrupted")
        return INTERRUPTED
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename == STANDARD_OUTPUT:
            return 1  # the reader closed the pipe (``laconic predict … | head``)
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except (UserError, ValueError, ImportError) as error:
        return _fail(str(error))


def _run(argv: list[str] | None) -> int:
    parser = _build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    with _plain_warnings():
        return int(args.command(args))


def _fail(message: str) -> int:
    lines = message.strip().splitlines() or ["unknown error"]
    _tell(f"laconic: error: {lines[0]}")
    return 2


def _tell(line: str) -> None:
    """Print one line to standard error. Go on if that cannot be written to."""
    with suppress(OSError):
        print(line, file=sys.stderr)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show each warning as one line, without its place in the code."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        _tell(f"laconic: warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="laconic",
        description="Fit small classifiers from a few features or a few yes-or-no questions.",
    )
    parser.add_argument("--version", action="version", version=f"laconic {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, command: Any, text: str) -> argparse.ArgumentParser:
        new = commands.add_parser(name, help=text, description=text)
        new.set_defaults(command=command)
        return new

    for name, command in COMMANDS.items():
        command.add_arguments(add(name, command.run, command.SUMMARY))
    return parser

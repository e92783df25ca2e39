"""``laconic describe``: show the card of a saved model."""

from __future__ import annotations

import argparse

from laconic.cli.console import make_console
from laconic.cli.files import load_predictor

SUMMARY = "Show a saved model: every atom and its weights."


def add_arguments(describe: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    describe.add_argument("model", metavar="MODEL", help="file from laconic fit or Predictor.save")


def run(args: argparse.Namespace) -> int:
    """Print the card of a saved predictor."""
    from laconic.model.card import card
    from laconic.model.integer_predictor import IntegerPredictor

    predictor = load_predictor(args.model)
    console = make_console()
    console.out(card(predictor), highlight=False)
    if isinstance(predictor, IntegerPredictor):
        console.out("\n" + predictor.details(), highlight=False)
    return 0

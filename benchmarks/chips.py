"""How much flash, RAM, stack and time do exported models take on real chips?

Every model is exported as a C header, compiled for four chips, and run on simavr (AVR, cycles) or
QEMU (Cortex-M0, Cortex-M4 and RV32, instructions). Every label and every score is compared with
Python's; scores are equal if all their bits are. `make chips` installs compilers and emulators.

Run: python benchmarks/chips.py [--json FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from _chip_runs import DoesNotFit, can_run, emulator_version, run
from _common import arguments, load, progress, save, show, verdict
from rich.console import Console
from rich.table import Table

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    ShareBoostClassifier,
    TotalQBoostClassifier,
)
from laconic.export.chips import CHIPS, Chip, compiler_version, measure
from laconic.export.labels import label_values
from laconic.losses import decide
from laconic.model.program import program_of
from laconic.model.single import single, single_scores
from laconic.pools import Patches, Pieces, Stumps

# Test rows that every model answers.
ROWS = 200
# The column of adult that only weighs rows.
FNLWGT = 2
REAL = ("avr", "cortex-m0", "cortex-m4", "rv32")


class Exported(NamedTuple):
    """A model to run, and Python's answers.

    ``predictor.to_c("model")`` must return an object whose text is the header. ``labels`` are
    values of the header's ``enum model_label``. ``scores`` are what ``model_scores`` must write.
    """

    title: str
    predictor: Any
    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray


def models(args: argparse.Namespace) -> list[Exported]:
    """Return models of every kind, with 200 test rows of each."""
    pen, adult = load(args.data, "pendigits"), load(args.data, "adult")
    mnist, heart = load(args.data, "mnist"), load(args.data, "raetsch_heart")
    rng = np.random.default_rng(args.seed)
    some = rng.permutation(len(mnist["X_train"]))[:5000]
    images = mnist["X_train"][some].reshape(-1, 784), mnist["y_train"][some]
    digits = images, mnist["X_test"].reshape(-1, 784)
    halves = pen["X_train"], pen["y_train"]
    hearts = heart["X"][heart["train_idx"][0]], heart["y"][heart["train_idx"][0]]
    patients = heart["X"]
    people = np.where(adult["X_train"] < 0, np.nan, adult["X_train"].astype(float))
    others = np.where(adult["X_test"] < 0, np.nan, adult["X_test"].astype(float))
    census = np.delete(people, FNLWGT, axis=1), adult["y_train"]
    stumps = Stumps(categorical=[c - (c > FNLWGT) for c in np.flatnonzero(adult["categorical"])])
    patches = Patches(n_templates=300, mask_sigma=4.5)
    wanted = [
        ("pendigits, 60 products, 8 bits", ShareBoostClassifier(60, pool="products"), halves,
         pen["X_test"], {"inputs": "uint8"}),
        ("pendigits, 60 products, 16 bits", ShareBoostClassifier(60, pool="products"), halves,
         pen["X_test"], {"bits": 16, "inputs": "uint8"}),
        ("pendigits, 16 columns, float32", ShareBoostClassifier(16), halves, pen["X_test"], None),
        ("pendigits, 30 stumps of float inputs, 8 bits", ShareBoostClassifier(30, pool="stumps"),
         halves, pen["X_test"], {"inputs": "float"}),
        ("pendigits, 5 balls, 8 bits", ShareBoostClassifier(5, pool="pieces"), halves,
         pen["X_test"], {"inputs": "uint8"}),
        ("pendigits, 5 soft balls, 8 bits", ShareBoostClassifier(5, pool=Pieces(soft=True)),
         halves, pen["X_test"], {"inputs": "uint8"}),
        ("mnist, 40 patches, 8 bits", ShareBoostClassifier(40, pool=patches), digits[0],
         digits[1], {"inputs": "uint8"}),
        ("adult, 20 stumps with categories, 16 bits", ShareBoostClassifier(20, pool=stumps), census,
         np.delete(others, FNLWGT, axis=1), {"bits": 16, "inputs": "float"}),
        ("heart, TotalQBoost, 8 bits", TotalQBoostClassifier(price=0.01), hearts, patients, {}),
        ("heart, error clumping, 8 bits", ErrorClumpingClassifier(), hearts, patients, {}),
        ("heart, holes, 8 bits", HolePunchingClassifier(ShareBoostClassifier(3), min_rows=10),
         hearts, patients, {}),
    ]  # fmt: skip
    return [exported(title, model.fit(*rows), rows[0], test, how)
            for title, model, rows, test, how in wanted]  # fmt: skip


def exported(title: str, model: Any, X: Any, X_test: Any, how: dict[str, Any] | None) -> Exported:
    """Return a fitted model, quantised if ``how`` is given, and its answers on test rows."""
    predictor, test = model.predictor_, X_test[:ROWS]
    if how is not None:
        predictor = predictor.quantise(X, **how)
    rows = predictor.device_rows(test)
    scores = predictor.scores(test) if how is not None else (
        single_scores(single(program_of(predictor)), rows)
    )  # fmt: skip
    labels = label_values(predictor.classes)[decide(scores)]
    return Exported(title, predictor, rows, labels, scores)


def main() -> None:
    args = arguments(__doc__).parse_args()
    chips = [CHIPS[name] for name in REAL]
    missing = [chip.title for chip in chips if not can_run(chip)]
    if missing:
        raise SystemExit(f"no compiler or emulator for {', '.join(missing)}; try `make chips`")
    found = compare(models(args), chips)
    if not found:
        raise SystemExit("there is no model to run")
    print_table(found)
    ran = [case for case in found if "does_not_fit" not in case]
    wrong = sum(case["wrong_rows"] for case in ran)
    print(f"{len(ran)} of {len(found)} pairs of model and chip fit and ran")
    results = {
        "cases": found,
        "compilers": {chip.name: compiler_version(chip) for chip in chips},
        "emulators": {chip.name: emulator_version(chip) for chip in chips},
        "verdict": verdict("rows with an answer that is not Python's", wrong, 0, False),
    }
    save(args.json, args, [], results)


def compare(models: Iterable[Exported], chips: Sequence[Chip]) -> list[dict[str, Any]]:
    """Run every model on every chip. Return one record for each pair."""
    found = []
    for model in models:
        header = str(model.predictor.to_c("model"))
        for chip in chips:
            progress(f"{model.title} on {chip.title}")
            found.append({"model": model.title, "chip": chip.name, **on_chip(header, chip, model)})
    return found


def on_chip(header: str, chip: Chip, model: Exported) -> dict[str, Any]:
    """Measure a model on a chip, run it, and compare its answers with Python's."""
    size = measure(header, chip)
    facts: dict[str, Any] = {"flash": size.flash, "ram": size.ram, "rows": len(model.rows)}
    try:
        answers = run(header, chip, model.rows)
    except DoesNotFit as reason:
        return {**facts, "does_not_fit": str(reason)}
    expected = np.reshape(model.scores, answers.scores.shape)
    labels = answers.labels != model.labels
    scores = different(answers.scores, expected).any(axis=1)
    return {
        **facts,
        "stack": answers.stack,
        "unit": answers.unit,
        "mean": float(answers.counts.mean()),
        "largest": int(answers.counts.max()),
        "wrong_labels": int(labels.sum()),
        "wrong_scores": int(scores.sum()),
        "wrong_rows": int((labels | scores).sum()),
    }


def different(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where scores differ: by the bits of floats, except that any NaN equals any other."""
    if found.dtype.kind != "f":
        return found != expected
    expected = np.asarray(expected, found.dtype)
    bits = f"u{found.itemsize}"
    return (found.view(bits) != expected.view(bits)) & ~(np.isnan(found) & np.isnan(expected))


def print_table(found: Sequence[dict[str, Any]]) -> None:
    """Print one line for each model and chip."""
    table = Table(title="Models on chips: bytes, and cycles or instructions per row")
    table.add_column("model")
    table.add_column("chip")
    for head in ("flash", "RAM", "stack", "mean", "largest", "", "rows", "wrong"):
        table.add_column(head, justify="right")
    for case in found:
        if "does_not_fit" in case:
            cells = ["", "", "", "does not fit", case["rows"], ""]
        else:
            wrong = f"{case['wrong_labels']} labels, {case['wrong_scores']} scores"
            cells = [case[k] for k in ("stack", "mean", "largest", "unit", "rows")] + [wrong]
        line = [case[k] for k in ("model", "chip", "flash", "ram")] + cells
        table.add_row(*map(show, line))
    Console().print(table)


if __name__ == "__main__":
    main()

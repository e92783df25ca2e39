"""Do ONNX models decide as Python does, on every row of every data set?

The models are those of export_data_sets.py: for each data set, two to five pools. Data sets of few
features also get models of TotalQBoost, error clumping and hole punching. Each model becomes an
ONNX model of floats, and one of integers for 8 and 16 bits and for every kind of inputs that the
data fits. onnxruntime answers every row. Labels are compared with Python's. Scores of integers are
compared bit for bit.

Run: python benchmarks/onnx_data_sets.py [--sets NAME ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from _common import arguments, progress, save, table, verdict
from export_data_sets import (
    FEW,
    POOLS,
    UNSEEN,
    Data,
    blocks,
    data_sets,
    fits,
    fitted,
    numbers_read,
    read,
)

from laconic import ErrorClumpingClassifier, TotalQBoostClassifier
from laconic.model.input_codes import GIVEN

# Most training rows of error clumping, which takes longer than the others.
CLUMPED = 600
OTHERS = ("totalq", "error clumping", "holes")
"""Other methods, for data sets of few features."""


def model_of(data: Data, pool: str, seed: int) -> tuple[Any, Any]:
    """Return a predictor of a pool or of another method, and the rows it was fitted to."""
    if pool not in OTHERS[:2]:
        return fitted(data, pool, seed)
    rows = np.random.default_rng(seed).permutation(len(data.X_train))
    model: Any = TotalQBoostClassifier(max_rounds=20)
    if pool == "error clumping":
        model, rows = ErrorClumpingClassifier(), rows[:CLUMPED]
    X, y = data.X_train[rows], data.y_train[rows]
    return model.fit(X, y).predictor_, X


def answers(predictor: Any, data: Data, pool: str) -> dict[str, Any]:
    """Return how many rows ONNX answers differently, and the largest difference of a score."""
    made = predictor.to_onnx()
    whole = hasattr(predictor, "integers")
    rows = labels = scores = 0
    gap, top, close = 0.0, 0.0, []
    for X in blocks(data, pool):
        own, expected = predictor.scores(X), predictor.predict(X)
        found = made.scores(X)
        wrong = np.flatnonzero(made.predict(X) != expected)
        rows, labels = rows + len(own), labels + len(wrong)
        scores += int((found != own).any(axis=1).sum())
        seen = own > UNSEEN
        gap = max(gap, float(np.abs(np.where(seen, found - own, 0)).max()))
        top = max(top, float(np.abs(own[seen]).max()))
        for row in wrong:
            close.append({"python": own[row].tolist(), "onnx": found[row].tolist()})
    out = {"rows": rows, "different_labels": labels, "bytes": made.proto.ByteSize()}
    if whole:
        return out | {"different_scores": scores}
    return out | {"largest_difference": gap / top, "rows_that_differ": close}


def compare(name: str, data: Data, pool: str, seed: int) -> list[dict[str, Any]]:
    """Fit one pool to a data set. Return one record for each of its ONNX models."""
    predictor, X = model_of(data, pool, seed)
    about = {"data": name, "pool": pool}
    out = [about | {"numbers": "float"} | answers(predictor, data, pool)]
    for bits in (8, 16):
        for given in GIVEN:
            if fits(X, numbers_read(predictor), given):
                quantised = predictor.quantise(X, bits=bits, inputs=given)
                numbers = {"numbers": f"{bits} bits, {given}"}
                out.append(about | numbers | answers(quantised, data, pool))
    return out


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals over all models."""
    out: dict[str, Any] = {"models": len({(r["data"], r["pool"]) for r in records})}
    for kind in ("floats", "integers"):
        own = [r for r in records if (r["numbers"] == "float") == (kind == "floats")]
        out[kind] = {
            "onnx_models": len(own),
            "rows": sum(r["rows"] for r in own),
            "different_labels": sum(r["different_labels"] for r in own),
        }
        if kind == "integers":
            out[kind]["different_scores"] = sum(r["different_scores"] for r in own)
    floats = [r for r in records if r["numbers"] == "float"]
    for patches in (False, True):
        gaps = [r["largest_difference"] for r in floats if (r["pool"] == "patches") == patches]
        what = "patches" if patches else "other pools"
        out[f"largest difference of a float score, {what}"] = max(gaps, default=0.0)
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", help="data sets, by default all in the folder")
    args: argparse.Namespace = parser.parse_args()
    warnings.simplefilter("ignore")  # about columns that look like names, for example
    records = []
    for name in args.sets or data_sets(args.data):
        data = read(args.data, name, args.seed)
        pools = POOLS.get(name, FEW)
        others = [pool for pool in OTHERS if "pieces" in pools and pool not in pools]
        for pool in (*pools, *others):
            progress(f"{name}, {pool}")
            records += compare(name, data, pool, args.seed)
    lines = [
        (f"{r['data']}, {r['pool']}", r["numbers"], r["rows"], r["different_labels"],
         r.get("different_scores", r.get("largest_difference")), r["bytes"])
        for r in records
    ]  # fmt: skip
    header = ("model", "numbers", "rows", "different labels", "different scores", "bytes")
    table("Answers of onnxruntime and of Python, on every row", header, lines)
    found = summary(records)
    for key, value in found.items():
        print(f"{key}: {value}")
    different = [found[kind]["different_labels"] for kind in ("floats", "integers")]
    wrong = verdict("rows with a label that is not Python's", sum(different), 0, False)
    results = {"summary": found, "records": records, "verdict": wrong}
    save(args.json, args, ["onnx", "onnxruntime"], results)


if __name__ == "__main__":
    main()

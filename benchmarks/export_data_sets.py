"""Do exported models answer as Python does, on every row of every data set?

For each data set, models of two to four pools are fitted. Each becomes a C header of floats, and
headers of integers for 8 and 16 bits and for every kind of inputs that the data fits. All headers
are compiled, and their scores are compared with Python's on every row, bit for bit. Scores of
floats are also compared with the prediction by BLAS, and errors on test rows before and after
quantisation.

Run: python benchmarks/export_data_sets.py [--sets NAME ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import arguments, error, load, progress, save, table, verdict
from scipy import sparse

from laconic import HolePunchingClassifier, ShareBoostClassifier
from laconic.losses import decide
from laconic.model.input_codes import GIVEN
from laconic.model.program import program_of
from laconic.model.single import single, single_scores
from laconic.pools import Patches, Pieces, Stumps

# Most training rows of a fit. Scales are chosen on them, too. Scores are compared on all rows.
FITTED = 3000
# Rows that are compared at a time.
BLOCK = 4096
# Scores of classes that a region never answers are below this, and are not numbers to compare.
UNSEEN = -1e29
# A larger difference from BLAS, in parts of the largest score, is more than rounding: the row lies
# on the other side of a sphere.
ROUNDING = 1e-4
# Ending of the name of a data set without the columns that no 16-bit integer holds.
SMALL = ", small numbers"
IMAGES = ("mnist", "usps", "chars74k_fnt", "chars74k_hnd", "chars74k_img", "fonts36")
POOLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(IMAGES, ("columns", "stumps", "patches")),
    "isolet": ("columns", "stumps", "products"),
    "reuters_r8": ("columns", "stumps"),
    "adult": ("stumps", "columns"),
    "adult, small numbers": ("stumps",),
    "spambase": ("columns", "stumps", "products"),
    "raetsch_banana": ("columns", "stumps", "pieces", "holes"),
}
"""Pools that suit a data set. The others have few features, and get `FEW`."""
FEW = ("columns", "stumps", "products", "pieces", "soft pieces")
ATOMS = {"columns": 12, "stumps": 20, "products": 10, "pieces": 4, "soft pieces": 4, "patches": 8}


class Data(NamedTuple):
    """Rows and labels, of which some are for training. ``categorical`` are numbers of columns."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    categorical: list[int]


def read(folder: Path, name: str, seed: int) -> Data:
    """Return the rows of a data set, split as its source does, or at random."""
    stored = load(folder, name.removesuffix(SMALL))
    categorical: list[int] = []
    if "X_train_data" in stored:
        for part in ("train", "test"):
            parts = [stored[f"X_{part}_{what}"] for what in ("data", "indices", "indptr")]
            stored[f"X_{part}"] = sparse.csr_matrix(
                (parts[0].astype(float), *parts[1:]), shape=stored[f"X_{part}_shape"]
            )
    if "categorical" in stored:
        categorical = np.flatnonzero(stored["categorical"]).tolist()
        for part in ("X_train", "X_test"):
            stored[part] = np.where(stored[part] < 0, np.nan, stored[part].astype(float))
    if "X" in stored:
        stored |= split(stored, seed)
    train, test = (_flat(stored[part]) for part in ("X_train", "X_test"))
    if name.endswith(SMALL):
        small = np.flatnonzero(np.nanmax(np.vstack([train, test]), axis=0) < 2**15 - 1)
        train, test = train[:, small], test[:, small]
        categorical = np.flatnonzero(np.isin(small, categorical)).tolist()
    return Data(train, stored["y_train"], test, stored["y_test"], categorical)


def data_sets(folder: Path) -> list[str]:
    """Return the names of all data sets of a folder."""
    return sorted([*(file.stem for file in folder.glob("*.npz")), "adult" + SMALL])


def split(stored: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Return training and test rows: a stored partition, or 70 % of the rows at random."""
    n = len(stored["y"])
    order = np.random.default_rng(seed).permutation(n)
    train, test = order[: 7 * n // 10], order[7 * n // 10 :]
    if len(stored.get("train_idx", ())):
        train, test = stored["train_idx"][0], stored["test_idx"][0]
    rows = {"train": train, "test": test}
    return {f"{what}_{part}": stored[what][own] for part, own in rows.items() for what in "Xy"}


def _flat(X: Any) -> Any:
    return X if sparse.issparse(X) else X.reshape(len(X), -1)


def fitted(data: Data, pool: str, seed: int) -> tuple[Any, Any]:
    """Return a predictor, and the rows it was fitted to."""
    rows = np.random.default_rng(seed).permutation(data.X_train.shape[0])[:FITTED]
    X, y = data.X_train[rows], data.y_train[rows]
    filled = pool != "stumps" and not sparse.issparse(X) and np.isnan(X).any()
    X = np.nan_to_num(X, nan=-1.0) if filled else X
    pools: dict[str, Any] = {
        "stumps": Stumps(categorical=data.categorical or None),
        "soft pieces": Pieces(soft=True),
        "patches": Patches(n_templates=100, template_size=5, mask_grid=5, mask_sigma=3.0),
    }
    model: Any = ShareBoostClassifier(ATOMS.get(pool, 3), pool=pools.get(pool, pool))
    if pool == "holes":
        model = HolePunchingClassifier(ShareBoostClassifier(3), min_rows=10)
    return model.fit(X, y).predictor_, X


def blocks(data: Data, pool: str) -> Iterator[Any]:
    """Yield all rows of a data set, a few thousand at a time."""
    for X in (data.X_train, data.X_test):
        for start in range(0, X.shape[0], BLOCK):
            rows = X[start : start + BLOCK]
            missing = pool != "stumps" and not sparse.issparse(rows) and np.isnan(rows).any()
            yield np.nan_to_num(rows, nan=-1.0) if missing else rows


class Answers(NamedTuple):
    """Scores of all rows, of compiled code and of Python."""

    compiled: np.ndarray
    python: np.ndarray

    @property
    def different(self) -> int:
        """Rows with a score that differs in any bit."""
        same = self.compiled == self.python
        if self.compiled.dtype.kind == "f":
            same = self.compiled.view(np.uint32) == self.python.view(np.uint32)
        return int((~same.all(axis=1)).sum())


def answers(predictor: Any, data: Data, pool: str) -> Answers:
    """Compile a predictor, and return its scores and Python's."""
    compiled = predictor.to_c("model").compile()
    floats = None if hasattr(predictor, "integers") else single(program_of(predictor))
    found, python = [], []
    for X in blocks(data, pool):
        found.append(compiled.scores(X))
        own = predictor.scores(X) if floats is None else (
            single_scores(floats, predictor.device_rows(X))
        )  # fmt: skip
        python.append(own)
    return Answers(np.concatenate(found), np.concatenate(python))


def against_blas(single: np.ndarray, full: np.ndarray) -> dict[str, Any]:
    """Return the largest difference in parts of the largest score, and the rows beyond rounding."""
    full = np.diff(full, axis=1) if full.shape[1] > single.shape[1] else full
    seen = full > UNSEEN
    gap = np.where(seen, np.abs(single - full), 0.0) / np.abs(full[seen]).max()
    beyond = gap.max(axis=1) > ROUNDING
    return {
        "largest_difference_from_blas": float(gap[~beyond].max()),
        "rows_across_a_sphere": int(beyond.sum()),
    }


def fits(X: Any, features: np.ndarray, given: str) -> bool:
    """Whether the features that a model reads can be handed over as they are."""
    if given == "float":
        return True
    taken = X[:, features]
    rows = np.asarray(taken.toarray() if sparse.issparse(taken) else taken, dtype=np.float64)
    limits, known = np.iinfo(given), rows[~np.isnan(rows)]
    missing = not sparse.issparse(X) and bool(np.isnan(X).any())
    most = limits.max - missing  # the largest number stands for a missing value
    return bool(
        (known == np.rint(known)).all() and limits.min <= known.min() <= known.max() <= most
    )


def compare(name: str, data: Data, pool: str, seed: int) -> list[dict[str, Any]]:
    """Fit one pool to a data set. Return one record for each of its headers."""
    predictor, X = fitted(data, pool, seed)
    full = np.concatenate([predictor.scores(rows) for rows in blocks(data, pool)])
    test = slice(data.X_train.shape[0], None)
    before = error(predictor.classes[decide(full[test])], data.y_test)
    about = {"data": name, "pool": pool, "rows": len(full), "test_error": before}
    own = answers(predictor, data, pool)
    floats = {"bits": 32, "inputs": "float", "different_rows": own.different,
              **against_blas(own.python, full)}  # fmt: skip
    out = [about | floats | _after(predictor, own, data, test)]
    for bits in (8, 16):
        for given in GIVEN:
            if fits(X, numbers_read(predictor), given):
                quantised = predictor.quantise(X, bits=bits, inputs=given)
                own = answers(quantised, data, pool)
                record = {"bits": bits, "inputs": given, "different_rows": own.different}
                out.append(about | record | _after(predictor, own, data, test))
    return out


def numbers_read(predictor: Any) -> np.ndarray:
    """Return the features that are read, without those that hold categories."""
    asked = predictor.map.asked() if hasattr(predictor.map, "asked") else {}
    return np.setdiff1d(predictor.map.features(), list(asked))


def _after(predictor: Any, own: Answers, data: Data, test: slice) -> dict[str, Any]:
    after = error(predictor.classes[decide(own.compiled[test])], data.y_test)
    return {"test_error_in_c": after}


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the totals over all headers, and the changes in test error by bits and pool."""
    out: dict[str, Any] = {
        "models": len({(r["data"], r["pool"]) for r in records}),
        "headers": len(records),
        "rows_compared": sum(r["rows"] for r in records),
        "different_rows": sum(r["different_rows"] for r in records),
    }
    floats = [r for r in records if r["bits"] == 32]
    out["largest_difference_from_blas"] = max(r["largest_difference_from_blas"] for r in floats)
    out["rows_across_a_sphere"] = sum(r["rows_across_a_sphere"] for r in floats)
    for bits in (8, 16):
        changes = [(r["test_error_in_c"] - r["test_error"], f"{r['data']}, {r['pool']}, "
                    f"{r['inputs']}") for r in records if r["bits"] == bits]  # fmt: skip
        worst = max(changes)
        sizes = [change for change, _ in changes]
        out[f"{bits}_bits"] = {
            "mean_change": float(np.mean(sizes)),
            "mean_size_of_change": float(np.mean(np.abs(sizes))),
            "worst_change": worst[0],
            "worst": worst[1],
        }
    return out


def show_records(records: list[dict[str, Any]]) -> None:
    lines = [
        (f"{r['data']}, {r['pool']}", f"{r['bits']} {r['inputs']}", r["rows"], r["different_rows"],
         r.get("largest_difference_from_blas"), f"{r['test_error']:.2%}",
         f"{r['test_error_in_c'] - r['test_error']:+.2%}")
        for r in records
    ]  # fmt: skip
    header = ("model", "numbers", "rows", "different", "from BLAS", "test error", "change in C")
    table("Scores of compiled code and of Python, on every row", header, lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", help="data sets, by default all in the folder")
    args: argparse.Namespace = parser.parse_args()
    names = args.sets or data_sets(args.data)
    warnings.simplefilter("ignore")  # about columns that look like names, for example
    records = []
    for name in names:
        data = read(args.data, name, args.seed)
        for pool in POOLS.get(name, FEW):
            progress(f"{name}, {pool}")
            records += compare(name, data, pool, args.seed)
    show_records(records)
    found = summary(records)
    for key, value in found.items():
        print(f"{key}: {value}")
    wrong = verdict("rows with a score that is not Python's", found["different_rows"], 0, False)
    save(args.json, args, [], {"summary": found, "records": records, "verdict": wrong})


if __name__ == "__main__":
    main()

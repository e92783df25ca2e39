"""Which test error fits into how many bytes of flash: Laconic's models, or emlearn's?

The task is pendigits, with its official split. Every model is a C header. It is compiled for each
chip with the same flags. Its flash and RAM are what a small program grows by when it calls the
model. Inputs come in the type that the model wants. Errors are those of the C code, compiled on
this machine, on all test rows. Answers that are not Python's are counted. Time is not compared.

* Laconic: ShareBoost paths over several pools, with 8-bit weights.
* emlearn: a decision tree, random forests, extra trees and networks of scikit-learn; see
  ``_emlearn.py``. Many forests are fitted. Those that are not much larger than another one that is
  as good in cross-validation are measured, in each form that emlearn has for them. A model fits on
  a chip only if its tables fit into the RAM, because emlearn keeps tables in RAM on AVR.

For every budget of flash, both sides choose the model that has the lowest error in 3-fold
cross-validation on the training rows, among those that fit. The lowest test error of all models
that fit is listed as well. It is chosen on the test rows, so it is too low for both sides.

Run: python benchmarks/forest_vs_emlearn.py [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from _c_models import Model, answers, taken
from _common import arguments, error, load, progress, save, table
from _emlearn import Folds, emlearn_models, without_shift
from sklearn.model_selection import StratifiedKFold

from laconic import ShareBoostClassifier
from laconic.export.chips import CHIPS, Chip, compiler_version, is_installed
from laconic.pools import Pieces

BUDGETS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
LIBRARIES = ("Laconic", "emlearn")
SIZES = (3, 5, 8, 10, 15, 20, 30, 40, 60, 80, 100)
POOLS: dict[str, tuple[Any, int]] = {
    "columns": ("columns", 16),
    "products": ("products", 100),
    "stumps": ("stumps", 100),
    "balls": ("pieces", 20),
    "soft balls": (Pieces(soft=True), 20),
}


def main() -> None:
    args = arguments(__doc__).parse_args()
    chips = [CHIPS["cortex-m0"], CHIPS["avr"]]
    missing = [chip.title for chip in chips if not is_installed(chip)]
    if missing:
        raise SystemExit(f"no compiler for {', '.join(missing)}; try `make chips`")
    pen = load(args.data, "pendigits")
    X, y, X_test, y_test = (pen[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    split = StratifiedKFold(3, shuffle=True, random_state=args.seed)
    folds = list(split.split(X, y))
    found = []
    for models in (laconic_models(X, y, folds, X_test),
                   emlearn_models(X, y, folds, X_test, args.seed)):  # fmt: skip
        found += [measured(model, chips, X_test, y_test) for model in models]
    budgets = {chip.name: by_budget(found, chip) for chip in chips}
    wrong = {library: sum(m["not_pythons"] for m in found if m["library"] == library)
             for library in LIBRARIES}  # fmt: skip
    count = {library: sum(m["library"] == library for m in found) for library in LIBRARIES}
    print(f"\nmodels: {count}, with {len(y_test)} answers each; not Python's: {wrong}")
    failed = [m["model"] for m in found if None in m["flash"].values()]
    print(f"models that the linker refuses for a chip: {len(failed)}")
    results = {
        "models": found,
        "budgets": budgets,
        "not_pythons": wrong,
        "emlearn_without_shift": without_shift(X, y, X_test, y_test, args.seed),
        "compilers": {chip.name: compiler_version(chip) for chip in chips},
    }
    save(args.json, args, ["emlearn"], results)


def laconic_models(X: np.ndarray, y: np.ndarray, folds: Folds, X_test: np.ndarray
                   ) -> Iterator[Model]:  # fmt: skip
    """Return integer models of several sizes from each pool, fitted on all rows."""
    for name, (pool, most) in POOLS.items():
        progress(f"Laconic: {name}")
        sizes = [size for size in SIZES if size < most] + [most]
        wrong = np.zeros(len(sizes))
        for train, held in folds:
            path = ShareBoostClassifier(most, pool=pool).fit(X[train], y[train])
            wrong += [np.sum(small(path, size, X[train]).predict(X[held]) != y[held])
                      for size in sizes]  # fmt: skip
        path = ShareBoostClassifier(most, pool=pool).fit(X, y)
        for size, cv_error in zip(sizes, wrong / len(y), strict=True):
            model = small(path, size, X)
            yield Model("Laconic", f"{size} {name}", str(model.to_c("model")), "uint8",
                        float(cv_error), model.predict(X_test))  # fmt: skip


def small(path: ShareBoostClassifier, size: int, X: np.ndarray) -> Any:
    """Return the integer model of one size."""
    return path.at(size).predictor_.quantise(X, bits=8, inputs="uint8")


def measured(model: Model, chips: Sequence[Chip], X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return what a model takes on each chip, and the error of its C code."""
    labels = answers(model.header, np.ascontiguousarray(X, model.inputs))
    flash, ram = zip(*(taken(model.header, chip) for chip in chips), strict=True)
    names = [chip.name for chip in chips]
    return {
        "library": model.library,
        "model": model.title,
        "cv_error": model.cv_error,
        "test_error": error(labels, y),
        "not_pythons": int(np.sum(labels != model.expected)),
        "flash": dict(zip(names, flash, strict=True)),
        "ram": dict(zip(names, ram, strict=True)),
    }


def by_budget(found: list[dict[str, Any]], chip: Chip) -> list[dict[str, Any]]:
    """Print and return the chosen model and the lowest error of both sides, for each budget."""
    out, rows = [], []
    for budget in BUDGETS:
        line: dict[str, Any] = {"budget": budget}
        for library in LIBRARIES:
            fit = [m for m in found if m["library"] == library and fits(m, chip, budget)]
            if not fit:
                line[library] = None
                rows.append([budget, library, "none fits", None, None, None])
                continue
            best = min(fit, key=lambda m: (m["cv_error"], m["flash"][chip.name]))
            lowest = min(m["test_error"] for m in fit)
            line[library] = {"chosen": best["model"], "flash": best["flash"][chip.name],
                             "ram": best["ram"][chip.name], "test_error": best["test_error"],
                             "lowest_test_error": lowest}  # fmt: skip
            rows.append([budget, library, best["model"], best["flash"][chip.name],
                         100 * best["test_error"], 100 * lowest])  # fmt: skip
        out.append(line)
    title = f"pendigits on {chip.title}: chosen by cross-validation, and the lowest test error"
    table(title, ["budget", "library", "chosen", "flash", "test error, %", "lowest, %"], rows)
    return out


def fits(model: dict[str, Any], chip: Chip, budget: int) -> bool:
    """Return whether the flash is within the budget, and the RAM within that of the chip."""
    flash, ram = model["flash"][chip.name], model["ram"][chip.name]
    return flash is not None and flash <= budget and (chip.ram is None or ram <= chip.ram)


if __name__ == "__main__":
    main()

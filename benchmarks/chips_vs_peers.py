"""How small and quick are models on chips: Laconic's, emlearn's, m2cgen's, or an int8 network?

Six data sets, with their official splits. Digits has none: a stratified quarter is for testing.
Every model is a C header. It is compiled for a Cortex-M0 and an AVR with the same flags. Its flash
is what a small program grows by when it calls the model. The AVR is an ATmega328P, or an ATmega2560
where the first is too small. Models of more than 256 kB do not count.

All sides choose in the same way. Settings are fitted on 80 % of the training rows, and their errors
are measured on the other 20 %, the validation rows. The settings that are kept are fitted again on
all training rows. For each chip, the frontier of a library has the models that are better on
validation rows than all its smaller models. Only models of a frontier are compared: by their test
errors, measured with the compiled C code on all test rows. Answers that are not Python's are
counted. "The smallest model that reaches an error" is the smallest of the frontier whose test error
is at most that. So the size is read off the test rows, for all sides alike.

* Laconic: `CompactClassifier`, with up to 64 kB, and the pools of `OURS`, as they are chosen. The
  searches of `TUNED` tune their atoms. They are a library of their own in the file, and one with
  the others in the comparison.
* emlearn: a tree, random forests, extra trees, and networks (``_emlearn.py``).
* m2cgen: logistic regression, linear SVM, a tree, forests, and LightGBM (``_m2cgen.py``).
* An int8 network of 4 to 64 hidden units, exported by code of this benchmark (``_int8_mlp.py``). It
  is not a peer, and is compared apart.

All sides get the same rows, and all training rows are used. Isolet's features are rounded to
8 bits. Adult has no column of weights, and its numbers above 32,766 count as 32,766. Peers get its
categories as codes and as columns of 0 and 1, and missing values as a category. Laconic gets the
table.

Time is the mean over 50 test rows: instructions on the Cortex-M0 (QEMU), cycles on the AVR
(simavr). Models that take more than 100,000 are measured on 5 rows.

Results are kept in the file of --json after each set and library. A set and a library that it has
are not run again, unless --again is given with --sets. --libraries runs some libraries only.

Run: python benchmarks/chips_vs_peers.py [--sets NAME ...] [--libraries LIBRARY ...]
         [--again LIBRARY ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _c_models import Model, answers, taken
from _chip_runs import DoesNotFit, can_run, emulator_version, run
from _common import arguments, error, load, progress, provenance, save, table, verdict
from _emlearn import emlearn_models
from _forests import Forests, Rows
from _int8_mlp import int8_models
from _m2cgen import m2cgen_models
from _networks import Networks
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from laconic import CompactClassifier
from laconic.export.chips import CHIPS, Chip, compiler_version
from laconic.pools import Bumps, Hinges, Patches, Pieces, Rules, Stumps
from laconic.tune import Tuning

SETS = ("digits", "pendigits", "satellite", "adult", "isolet", "mnist")
PEERS = ("emlearn", "m2cgen")
CHOSEN, TUNES = "Laconic", "Laconic, tuned"
LIBRARIES = (CHOSEN, TUNES, *PEERS, "int8 network")
MOST_BYTES = 256 * 1024
MOST_OF_OURS = 64 * 1024
# The column of adult that only weighs rows, and the largest number that is not missing in int16.
FNLWGT, LARGEST = 2, 32_766
# Points of error above the lowest of any peer.
ABOVE = (0, 1, 3)
# A peer of fewer bytes is too small to ask for a third of it.
LEAST = 1024
# A header of more characters does not fit an ATmega328, and takes long to compile.
TOO_LONG = 500_000
TIMED, TIMED_IF_SLOW, SLOW = 50, 5, 100_000

M0, AVR = CHIPS["cortex-m0"], CHIPS["avr"]
_WHOLE = "-Wl,--defsym=__TEXT_REGION_LENGTH__=1048576,--defsym=__DATA_REGION_LENGTH__=65536"
AVR_2560 = replace(AVR, name="atmega2560", title="AVR ATmega2560", flash=MOST_BYTES, ram=8 * 1024,
                   flags=("-mmcu=atmega2560", _WHOLE))  # fmt: skip
PLACES = {"cortex-m0": (M0,), "avr": (AVR, AVR_2560)}
"""The chips that a model is tried on, smallest first."""


class Data(NamedTuple):
    """A data set. Categories and missing values are NaN and whole numbers in ``X``."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    fit: np.ndarray
    held: np.ndarray
    categorical: list[int]


def read(folder: Path, name: str, seed: int) -> Data:
    """Return a data set, with labels from 0 on."""
    categorical: list[int] = []
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(
            X.astype(np.uint8), y, test_size=0.25, stratify=y, random_state=seed
        )
    else:
        stored = load(folder, name)
        X, y, X_test, y_test = (stored[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    if name == "isolet":
        X, X_test = (np.rint((part + 1) * 127.5).astype(np.uint8) for part in (X, X_test))
    if name == "adult":
        kept = np.delete(np.arange(X.shape[1]), FNLWGT)
        categorical = np.flatnonzero(stored["categorical"][kept]).tolist()
        X, X_test = (
            np.where(part < 0, np.nan, np.minimum(part, LARGEST))[:, kept] for part in (X, X_test)
        )
    classes = np.unique(y)
    y, y_test = np.searchsorted(classes, y), np.searchsorted(classes, y_test)
    fit, held = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    return Data(X, y, X_test, y_test, np.sort(fit), np.sort(held), categorical)


def for_peers(name: str, data: Data) -> list[Rows]:
    """Return the rows that peers get. Categories come in two codings."""
    if not data.categorical:
        return [Rows(name, data.X, data.y, data.X_test, data.fit, data.held)]
    n = len(data.X)
    both = np.nan_to_num(np.vstack([data.X, data.X_test]), nan=-1).astype(np.int32)
    numbers = np.delete(both, data.categorical, axis=1)
    ones = [(both[:, [c]] == np.unique(both[:n, c])).astype(np.int32) for c in data.categorical]
    codings = {"codes": both, "one-hot": np.hstack([numbers, *ones])}
    return [
        Rows(f"{name}, {title}", coded[:n].astype(np.int16), data.y, coded[n:].astype(np.int16),
             data.fit, data.held)
        for title, coded in codings.items()
    ]  # fmt: skip


# -- the models of each library ----------------------------------------------------------------

NUMBERS = ["columns", "products", "stumps", ["columns", "products"]]
SMALL_BUMPS = {"pools": [Bumps(1500, 10)], "alphas": [1e-4], "refine": True}
SMALL_STUMPS = {"pools": ["stumps"], "alphas": [1e-3], "refine": True}
BUMPS = {"pools": [Bumps(1500, 10)], "alphas": [1e-4, 3e-5]}
SOFT_BALLS = {"pools": [Pieces(soft=True)], "alphas": [1e-3]}
PATCHES = Patches(n_templates=120, template_size=(5, 7), mask_sigma=6.0)
OURS: dict[str, list[dict[str, Any]]] = {
    "digits": [{"max_atoms": 150, "pools": [*NUMBERS, "patches"]}, {"max_atoms": 100, **BUMPS}],
    "pendigits": [{"max_atoms": 150, "pools": NUMBERS}, {"max_atoms": 100, **BUMPS},
                  {"max_atoms": 40, **SOFT_BALLS}],
    "satellite": [{"max_atoms": 150, "pools": NUMBERS}, {"max_atoms": 100, **SMALL_STUMPS},
                  {"max_atoms": 30, **SMALL_BUMPS},
                  {"max_atoms": 150, **BUMPS}, {"max_atoms": 60, **SOFT_BALLS}],
    "adult": [{"max_atoms": 200, "pools": ["stumps"], "inputs": "int16"},
              {"max_atoms": 300, "pools": ["stumps", ["stumps", "rules"]], "inputs": "int16",
               "loss": "log", "alphas": [1e-4]},
              {"max_atoms": 200, "pools": [["stumps", "rules"]], "inputs": "int16",
               "loss": "log", "alphas": [1e-4], "averages": 10}],
    "isolet": [{"max_atoms": 400, "pools": ["columns"], "alphas": [1e-3, 3e-4], "bits": (8,)}],
    "mnist": [{"max_atoms": 150, "pools": ["columns"], "alphas": [1e-3], "bits": (8,)},
              {"max_atoms": 150, "pools": [PATCHES], "alphas": [1e-5], "bits": (8,),
               "costs": "operations"}],
}  # fmt: skip
"""Settings of `CompactClassifier`. Pools that take long have a search with fewer atoms."""
SMALL_PATCHES = Patches((8, 8), 60, 3, mask_grid=4, mask_sigma=1.5)
TUNED: dict[str, list[dict[str, Any]]] = {
    "digits": [{"max_atoms": 48, "pools": [SMALL_PATCHES], "alphas": [1e-4], "bits": (8,),
                "tune": Tuning(sizes=[8, 12, 16, 18, 20, 22, 24, 28, 32, 40], epochs=60)}],
    "satellite": [{"max_atoms": 75, "pools": [Hinges(n_inputs=3), Hinges(n_inputs=6)],
                   "alphas": [1e-4, 3e-4], "bits": (8,),
                   "tune": Tuning(sizes=[10, 20, 30, 40, 50, 66], epochs=60, rate=0.03)}],
}  # fmt: skip
"""Settings of searches that tune. They were chosen on parts of the training rows."""


def laconic_models(searches: list[dict[str, Any]], data: Data, seed: int) -> Iterator[Model]:
    """Return the frontiers of `CompactClassifier`, fitted on all training rows."""
    for settings in searches:
        settings = settings | {"pools": [_pool(pool, data) for pool in settings["pools"]]}
        search = CompactClassifier(MOST_OF_OURS, cv=[(data.fit, data.held)], random_state=seed,
                                   **settings).fit(data.X, data.y)  # fmt: skip
        lines = search.pareto_
        lines = lines.to_dict("records") if hasattr(lines, "to_dict") else lines
        for point, line in zip(search._models, lines, strict=True):
            model = point.predictor
            rows = model.device_rows(data.X_test)
            title = f"{line['atoms']} {line['pool']}, alpha={line['alpha']}, {line['bits']} bits"
            yield Model(CHOSEN, title, str(model.to_c("model")), rows.dtype.name,
                        1 - point.score, rows, model.predict(data.X_test))  # fmt: skip


def _pool(pool: Any, data: Data) -> Any:
    """Return a pool that knows which features are categories."""
    if isinstance(pool, list):
        return [_pool(part, data) for part in pool]
    kinds = {"stumps": Stumps, "rules": Rules}
    return kinds[pool](categorical=data.categorical) if data.categorical else pool


class Sides:
    """The models of every library on a data set. Forests and networks are fitted once."""

    def __init__(self, name: str, data: Data, seed: int) -> None:
        self.name, self.data, self.seed = name, data, seed
        self.rows = for_peers(name, data)
        self._forests: list[Forests] = []
        self._networks: list[Networks] = []

    def models(self, library: str) -> Iterator[Model]:
        """Return the models of one library."""
        if library == CHOSEN:
            plain = [{"tune": False} | settings for settings in OURS[self.name]]
            yield from laconic_models(plain, self.data, self.seed)
        elif library == TUNES:
            yield from laconic_models(TUNED.get(self.name, []), self.data, self.seed)
        elif library == "emlearn":
            for forests, networks in zip(self.forests(), self.networks(), strict=True):
                yield from emlearn_models(forests, networks)
        elif library == "m2cgen":
            for forests in self.forests():
                yield from m2cgen_models(forests, self.seed)
        else:
            for networks in self.networks():
                yield from int8_models(networks)

    def forests(self) -> list[Forests]:
        """Return the forests that are tried."""
        if not self._forests:
            progress(f"{self.name}: forests of scikit-learn")
            self._forests = [Forests(rows, self.seed) for rows in self.rows]
        return self._forests

    def networks(self) -> list[Networks]:
        """Return the networks that are tried."""
        self._networks = self._networks or [Networks(rows, self.seed) for rows in self.rows]
        return self._networks


# -- measuring ---------------------------------------------------------------------------------


def measured(models: Iterable[Model], y: np.ndarray) -> list[dict[str, Any]]:
    """Return what the models of a library take, their errors, and the times of the frontier."""
    found, kept = [], []
    for model in models:
        labels = answers(model.header, _rows(model, len(y)))
        record: dict[str, Any] = {
            "model": model.title,
            "validation_error": model.validation,
            "test_error": error(labels, y),
            "not_pythons": int(np.sum(labels != model.expected)),
            "chips": {place: _on_chip(model, chips) for place, chips in PLACES.items()},
        }
        found.append(record)
        kept.append(model)
    for place, chips in PLACES.items():
        # A model that has no room for its stack drops out, and others may take its place.
        while untimed := [r for r in frontier(found, place) if "time" not in r["chips"][place]]:
            for record in untimed:
                own = record["chips"][place]
                left = chips[[chip.name for chip in chips].index(own["chip"]) :]
                record["chips"][place] = _timed(kept[found.index(record)], left)
    return found


def _rows(model: Model, n: int) -> np.ndarray:
    return np.ascontiguousarray(model.rows[:n], model.inputs)


def _on_chip(model: Model, chips: tuple[Chip, ...]) -> dict[str, Any] | None:
    """Return what a model takes on the first chip that has room for it and a row."""
    row = model.rows.shape[1] * np.dtype(model.inputs).itemsize
    for chip in chips:
        if len(model.header) > TOO_LONG and chip is AVR:
            continue
        flash, ram = taken(model.header, chip)
        if flash is None or ram is None or chip.flash is None or chip.ram is None:
            continue
        if flash <= chip.flash and ram + row <= chip.ram:
            return {"chip": chip.name, "flash": flash, "ram": ram}
    return None


def _timed(model: Model, chips: tuple[Chip, ...]) -> dict[str, Any] | None:
    """Run a model on the first chip with room for its stack. Add the mean time of test rows."""
    for place, chip in enumerate(chips):
        progress(f"{model.library}: {model.title} on {chip.title}")
        try:
            few = run(model.header, chip, _rows(model, TIMED_IF_SLOW))
            if few.counts is not None and few.counts.mean() <= SLOW:
                few = run(model.header, chip, _rows(model, TIMED))
        except (DoesNotFit, RuntimeError):
            continue
        own = _on_chip(model, chips[place:])
        if own is None or own["chip"] != chip.name or few.counts is None:
            continue
        wrong = int(np.sum(few.labels != model.expected[: len(few.labels)]))
        return {**own, "time": float(few.counts.mean()), "timed_rows": len(few.labels),
                "unlike_python": wrong}  # fmt: skip
    return None


def frontier(found: list[dict[str, Any]], place: str) -> list[dict[str, Any]]:
    """Return the models that are better on validation rows than all smaller ones."""
    fitting = [record for record in found if record["chips"][place] is not None]
    fitting.sort(key=lambda r: (r["chips"][place]["flash"], r["validation_error"]))
    best: list[dict[str, Any]] = []
    for record in fitting:
        if not best or record["validation_error"] < best[-1]["validation_error"]:
            best.append(record)
    return best


# -- comparing ---------------------------------------------------------------------------------


def smallest(models: list[dict[str, Any]], place: str, limit: float) -> dict[str, Any] | None:
    """Return the smallest model whose test error is at most a limit."""
    reach = [r for r in models if r["test_error"] <= limit + 1e-12]
    if not reach:
        return None
    best = min(reach, key=lambda r: r["chips"][place]["flash"])
    return {"library": best.get("library"), "model": best["model"],
            "test_error": best["test_error"], **best["chips"][place]}  # fmt: skip


def compared(models: dict[str, list[dict[str, Any]]], place: str) -> dict[str, Any]:
    """Compare the frontiers of all libraries on one kind of chip."""
    fronts = {library: frontier(models[library], place) for library in (*PEERS, "int8 network")}
    fronts[CHOSEN] = frontier(models[CHOSEN] + models.get(TUNES, []), place)
    peers = [r | {"library": library} for library in PEERS for r in fronts[library]]
    ours, network = fronts[CHOSEN], fronts["int8 network"]
    lowest = min(r["test_error"] for r in peers)
    levels = []
    for points in ABOVE:
        limit = lowest + points / 100
        peer, own = smallest(peers, place, limit), smallest(ours, place, limit)
        assert peer is not None
        levels.append({
            "above": points, "limit": limit, "peer": peer, "own": own,
            "ratio": own["flash"] / peer["flash"] if own else None,
            "counts": peer["flash"] >= LEAST,
            "time_ratio": own["time"] / peer["time"] if own else None,
        })  # fmt: skip
    least = min(r["test_error"] for r in network)
    theirs, own = smallest(network, place, least), smallest(ours, place, least)
    assert theirs is not None
    beside = {"error": least, "network": theirs, "own": own,
              "ratio": own["flash"] / theirs["flash"] if own else None}  # fmt: skip
    return {
        "lowest": lowest, "lowest_own": min(r["test_error"] for r in ours),
        "levels": levels, "network": beside,
        "flash_met": all(_at_most(level["ratio"], 1 / 3) for level in levels if level["counts"]),
        "time_met": _at_most(levels[0]["time_ratio"], 1 / 2),
        "network_met": beside["ratio"] is not None and beside["ratio"] < 1,
    }  # fmt: skip


def _at_most(ratio: float | None, limit: float) -> bool:
    return ratio is not None and ratio <= limit


def show_set(name: str, place: str, found: dict[str, Any]) -> None:
    """Print the comparison on a data set and a chip. It says where a peer is ahead."""
    lines = []
    for level in found["levels"]:
        peer, own = level["peer"], level["own"] or {}
        lines.append([f"+{level['above']}", 100 * level["limit"], own.get("flash"), peer["flash"],
                      level["ratio"], _ahead(level["ratio"]), own.get("time"), peer.get("time"),
                      level["time_ratio"], own.get("model"),
                      f"{peer['library']}: {peer['model']}"])  # fmt: skip
    head = ("points", "error, %", "our bytes", "peer's", "ratio", "ahead", "our time", "peer's",
            "ratio", "our model", "smallest peer")  # fmt: skip
    table(f"{name} on {place}; our lowest error is {100 * found['lowest_own']:.2f} %", head, lines)
    beside = found["network"]
    own, theirs = beside["own"], beside["network"]
    ahead = "Laconic" if found["network_met"] else "the network"
    print(f"int8 network: {100 * beside['error']:.2f} % in {theirs['flash']:,} bytes "
          f"({theirs['model']}); Laconic reaches it in {own['flash'] if own else 'no'} bytes; "
          f"ahead: {ahead}")  # fmt: skip


def _ahead(ratio: float | None) -> str:
    return "Laconic" if ratio is not None and ratio < 1 else "peer"


def verdicts(found: dict[str, dict[str, Any]], n_sets: int) -> list[dict[str, Any]]:
    """Print in how many sets the requirements are met."""
    out = []
    for place in PLACES:
        own = [results[place] for results in found.values()]
        both = sum(r["flash_met"] and r["time_met"] for r in own)
        on = f"on {place}, of {len(own)} sets"
        out += [
            verdict(f"sets with a third of the flash at all errors {on}",
                    sum(r["flash_met"] for r in own), n_sets - 1, True),
            verdict(f"sets with half of the time at the lowest error {on}",
                    sum(r["time_met"] for r in own), n_sets - 1, True),
            verdict(f"sets with both {on}", both, n_sets - 1, True),
            verdict(f"sets ahead of the int8 network {on}", sum(r["network_met"] for r in own),
                    n_sets // 2, True),
        ]  # fmt: skip
    return out


# -- running -----------------------------------------------------------------------------------


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[], help="sets to run")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES,
                        help="libraries to run")  # fmt: skip
    parser.add_argument("--again", nargs="+", choices=LIBRARIES, default=[],
                        help="libraries to run again")  # fmt: skip
    args = parser.parse_args()
    chips = [chip for own in PLACES.values() for chip in own]
    missing = [chip.title for chip in chips if not can_run(chip)]
    if missing:
        raise SystemExit(f"no compiler or emulator for {', '.join(missing)}; try `make chips`")
    stored = _stored(args.json)
    for name in args.sets or SETS:
        run_set(name, stored, args, chips)
    found = {}
    whole = {
        name: own
        for name, own in stored["sets"].items()
        if set(own["models"]) >= set(LIBRARIES) - {TUNES}
    }
    for name in [name for name in SETS if name in whole]:
        found[name] = {place: compared(stored["sets"][name]["models"], place) for place in PLACES}
        for place in PLACES:
            show_set(name, place, found[name][place])
    wrong = {}
    for library in LIBRARIES:
        records = [r for own in whole.values() for r in own["models"].get(library, [])]
        wrong[library] = sum(r["not_pythons"] for r in records)
    print(f"\nanswers of C code that are not Python's: {wrong}\n")
    stored |= {"compared": found, "not_pythons": wrong, "verdicts": verdicts(found, len(SETS))}
    _keep(args, stored)


def run_set(name: str, stored: dict[str, Any], args: argparse.Namespace, chips: list[Chip]) -> None:
    """Run libraries on a set, except those whose results are stored."""
    data = read(args.data, name, args.seed)
    sides = Sides(name, data, args.seed)
    own = stored["sets"].setdefault(name, {"models": {}, "seconds": {}, "provenance": {}})
    for library in [library for library in LIBRARIES if library in args.libraries]:
        if library in own["models"] and not (library in args.again and name in args.sets):
            continue
        began = time.perf_counter()
        own["models"][library] = measured(sides.models(library), data.y_test)
        own["seconds"][library] = time.perf_counter() - began
        own["provenance"][library] = provenance(args, ["emlearn", "m2cgen", "lightgbm"])
        progress(f"{name}, {library}: {len(own['models'][library])} models in "
                 f"{own['seconds'][library]:.0f} s")  # fmt: skip
        stored["compilers"] = {chip.name: compiler_version(chip) for chip in chips}
        stored["emulators"] = {chip.name: emulator_version(chip) for chip in chips}
        _keep(args, stored)


def _stored(file: Path | None) -> dict[str, Any]:
    if file is None or not file.exists():
        return {"sets": {}}
    results: dict[str, Any] = json.loads(file.read_text())["results"]
    return results


def _keep(args: argparse.Namespace, stored: dict[str, Any]) -> None:
    save(args.json, args, ["emlearn", "m2cgen", "lightgbm"], stored)


if __name__ == "__main__":
    main()

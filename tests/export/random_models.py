"""Random models of every kind, and a C program that runs many of them at once.

    python tests/export/random_models.py --models 1000

writes 1,000 random models as C headers, compiles them with gcc and clang with address and
undefined-behaviour sanitizers, and compares every score with Python's, bit for bit.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from laconic import Predictor
from laconic.losses import decide
from laconic.model.balls import Balls, Heights
from laconic.model.hinges import Hinge
from laconic.model.lowering import LoweredMap
from laconic.model.primitives import Compare, Filled, Gather, LookUp, Multiply
from laconic.model.program import program_of
from laconic.model.route import Route
from laconic.model.rules import Both
from laconic.model.single import single, single_scores
from laconic.model.windows import WindowMaximum

KINDS = (
    "gather", "filled", "multiply", "compare", "categories", "stumps", "hinge", "look_up", "rules",
    "balls", "soft", "bumps", "windows", "mixed", "regions", "nested", "nothing",
)  # fmt: skip
# Kinds that a mixed model may have.
MIXED = (*KINDS[:9], "bumps")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def _works(compiler):
    """Whether a compiler and its sanitizers are here."""
    if not shutil.which(compiler):
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler, *SANITIZERS, "-x", "c", "-", "-o", f"{folder}/empty"]
        program = "int main(void) { return 0; }"
        return subprocess.run(
            command, input=program, capture_output=True, text=True, check=False
        ).returncode == 0  # fmt: skip


COMPILERS = [name for name in ("gcc", "clang") if _works(name)]


class ListMap(LoweredMap):
    """A map of any primitives."""

    allows_missing = True

    def __init__(self, primitives):
        self._list = primitives

    def lower(self):
        return self._list

    def names(self, feature_names=None, categories=None):
        return [f"c{i}" for i in range(self.n_columns)]


class Problem(NamedTuple):
    predictor: Predictor
    rows: np.ndarray


# Atoms of a model are fewer than this.
MOST_ATOMS = {"tiny": 3, "small": 8, "large": 400}
# Smallest numbers of random rows of integers, and those beyond the largest. Squared distances of
# int16 fit 32 bits if the numbers are small.
RANGES = {
    "uint8": (0, 255), "int8": (-100, 100), "int16": (-3000, 3000), "wide int16": (-32767, 32767),
    "few": (0, 12),
}  # fmt: skip


def random_problem(rng, kind, size="small", given=None, n_classes=None, tests=()):
    """Return a random model of a kind, and rows like those that it was fitted to.

    A ``"large"`` model has hundreds of features and atoms, a ``"tiny"`` one at most two atoms.
    ``given`` is the type of the rows. ``tests`` are those that stumps must have.
    """
    large, most = size == "large", MOST_ATOMS[size]
    n_features = 300 if large else int(rng.integers(1, 12))
    if kind == "windows":
        low, high = (16, 20) if large else (3, 8)
        side = int(rng.integers(low, high)), int(rng.integers(low, high))
        n_features = side[0] * side[1]
    whole = given != "float" and (given is not None or rng.random() < 0.5)
    scale = 10.0 ** rng.integers(-3, 4, n_features) if not whole else 1.0
    rows = rng.standard_normal((60, n_features)) * scale
    if whole:
        numbers = given or rng.choice(["uint8", "int8", "few"])
        if numbers == "int16" and rng.random() < 0.5:
            numbers = "wide int16"
        rows = rng.integers(*RANGES[numbers], rows.shape)
    rows = rows.astype(np.float64)
    make = {
        "windows": lambda: [some_windows(rng, side)],
        "mixed": lambda: [one_primitive(rng, k, rows, most) for k in rng.permutation(MIXED)[:3]],
        "regions": lambda: [_route(rng, rows, 1, most)],
        "nested": lambda: [_route(rng, rows, 2, most)],
        "nothing": list,
    }.get(kind, lambda: [one_primitive(rng, kind, rows, most, tests)])
    map = ListMap(make())
    if kind in ("filled", "compare", "categories", "stumps", "rules"):
        rows[rng.random(rows.shape) < 0.1] = np.nan
    n_classes = n_classes or int(rng.integers(2, 12 if large else 6))
    loss = str(rng.choice(["margin", "log", "scores"]))
    if n_classes == 2 and rng.random() < 0.3:
        loss = "exponential"
    n_outputs = 1 if loss == "exponential" else n_classes
    weights = rng.standard_normal((map.n_columns, n_outputs))
    weights *= 10.0 ** rng.uniform(-2, 2, (map.n_columns, 1)) * 10.0 ** rng.uniform(-3, 3)
    intercept = rng.standard_normal(n_outputs) * 10.0 ** rng.uniform(-2, 2)
    labels = rng.permutation(max(20, n_classes))[:n_classes] - 3
    classes = np.sort(labels) if rng.random() < 0.5 else np.array([f"é{i}*/" for i in labels])
    predictor = Predictor(map, weights, intercept, classes, loss, [1] * map.n_columns, n_features)
    return Problem(predictor, rows)


def one_primitive(rng, kind, rows, most=8, tests=()):
    of = rng.integers(0, rows.shape[1], max(len(tests), int(rng.integers(1, most))))
    middle = np.array([rng.choice(rows[:, f]) for f in of]) + rng.choice([0.0, 0.25], len(of))
    if kind == "gather":
        return Gather(of)
    if kind == "filled":
        return Filled(of, middle * rng.choice([1.0, 1.0, 100.0], len(of)))
    if kind == "multiply":
        return Multiply(of, rng.integers(0, rows.shape[1], len(of)))
    if kind == "compare":
        return Compare(of, middle, rng.choice([0, 0, 0, 2], len(of)))
    if kind == "stumps":
        test = rng.choice(tests or (0, 1, 2), len(of))
        test[: len(tests)] = tests
        return Compare(of, np.rint(np.clip(middle, 0, 9)), test)
    if kind == "categories":
        rows[:, np.unique(of)] = rng.integers(0, 9, (len(rows), len(np.unique(of))))
        return Compare(of, rng.integers(0, 9, len(of)), rng.choice([1, 1, 2], len(of)))
    if kind == "rules":
        return _rules(rng, rows, of)
    if kind == "hinge":
        return _hinges(rng, rows, of, middle)
    if kind == "look_up":
        rows[:, np.unique(of)] = rng.integers(0, 9, (len(rows), len(np.unique(of))))
        return LookUp(of, rng.standard_normal((len(of), int(rng.integers(1, 9)))))
    if kind == "bumps":
        return _bumps(rng, rows, most)
    return _balls(rng, rows, kind == "soft")


def _rules(rng, rows, of):
    """Rules of all tests. Some features only have thresholds, and some only categories."""
    also = rng.permutation(rows.shape[1])[rng.integers(0, rows.shape[1], len(of))]
    named, sides = rng.random(rows.shape[1]) < 0.5, []
    rows[:, named] = rng.integers(0, 9, (len(rows), named.sum()))
    for feature in (of, also):
        near = np.array([rng.choice(rows[:, f]) for f in feature]) + rng.choice([0, 0.25], len(of))
        test = np.where(named[feature], rng.choice([1, 1, 2], len(of)),
                        rng.choice([0, 3, 3, 2], len(of)))  # fmt: skip
        sides += [feature, np.where(named[feature], np.floor(near), near), test]
    return Both(*sides)


def _balls(rng, rows, soft):
    n = int(rng.integers(1, 5))
    centre = rows[rng.integers(0, len(rows), n)]
    far = np.sqrt(np.square(rows[:, None] - centre).sum(axis=2))
    origin = centre if rng.random() < 0.5 else rows.mean(axis=0)[None]
    return Balls(centre, np.quantile(far, rng.uniform(0.1, 0.9, n)), origin, soft)


def _hinges(rng, rows, of, middle):
    """Hinges of one input each, of a few, or of all. Knots are near the projections of rows."""
    n, d = len(of), rows.shape[1]
    turn = rng.integers(3)
    if turn == 0:
        sign = rng.choice([-1.0, 1.0], n)
        return Hinge(np.ones(n), of, sign, sign * middle)
    length = rng.integers(0, min(d, 4) + 1, n) if turn == 1 else np.full(n, d)
    feature = [rng.choice(d, size, replace=False) if turn == 1 else np.arange(d) for size in length]
    value = [rng.standard_normal(size) * 10.0 ** rng.uniform(-1, 1) for size in length]
    pairs = zip(feature, value, strict=True)
    knot = [float(np.median(rows[:, f] @ v)) if len(f) else rng.normal() for f, v in pairs]
    return Hinge(length, np.concatenate(feature), np.concatenate(value), knot)


def _bumps(rng, rows, most):
    known = rows[~np.isnan(rows).any(axis=1)]
    rows = known if len(known) else np.nan_to_num(rows)
    centre = rows[rng.integers(0, len(rows), int(rng.integers(1, most)))]
    far = np.sqrt(np.square(rows[:, None] - centre).sum(axis=2))
    radius = [np.quantile(own, rng.uniform(0.1, 0.9)) for own in far.T]
    return Heights(centre, radius)


def some_windows(rng, shape):
    """Patches anywhere, on a grid as those of a pool (then masks share their weights), or both."""
    way, most = rng.choice(["anywhere", "grid", "both"], p=[0.3, 0.4, 0.3]), min(*shape, 7)
    sizes = rng.integers(1, most + 1, 3)
    if way != "both" and rng.random() < 0.5:
        sizes[:] = sizes[0]
    n = int(rng.integers(1, 6)) if way == "anywhere" else int(rng.integers(1, 30))
    template = rng.integers(0, 3, n)
    centre = np.column_stack([rng.uniform(0, side - 1, n) for side in shape])
    sigma = rng.uniform(3, 9, n)
    on_grid = rng.random(n) < {"anywhere": 0.0, "grid": 1.0, "both": 0.7}[way]
    positions = np.array(shape) - sizes[template, None] + 1
    grid = np.minimum(rng.integers(1, 5, 2), positions)
    cell = (rng.integers(0, grid) + 0.5) * positions / grid
    centre[on_grid] = (cell - 0.5 + (sizes[template, None] - 1) / 2)[on_grid]
    widths = [3.0, 4.5, np.inf] if way == "both" else [rng.choice([3.0, 4.5, np.inf])]
    sigma[on_grid] = rng.choice(widths, n)[on_grid]
    values = rng.standard_normal(int(np.square(sizes).sum()))
    return WindowMaximum(shape, sizes, values, template, centre, sigma)


def _route(rng, rows, depth, most):
    n = int(rng.integers(1, 4))
    centre = rows[rng.integers(0, len(rows), n)]
    far = np.sqrt(np.square(rows[:, None] - centre).sum(axis=2))
    # Rounding decides whether a row on a sphere is inside, so no row lies there.
    radius = np.quantile(far, rng.uniform(0.1, 0.7, n)) * (1.0 + 1e-4)
    if rng.random() < 0.2:
        radius[0] = np.inf
    parts = []
    for _ in range(n + 1):
        if depth > 1 and rng.random() < 0.5:
            parts.append([_route(rng, rows, depth - 1, most)])
        else:
            kinds = ("gather", "multiply", "hinge", "compare", "rules", "balls")
            parts.append([one_primitive(rng, str(rng.choice(kinds)), rows.copy(), most)])
    return Route(centre, radius, parts)


def fitting_inputs(rows):
    """Return the settings ``inputs`` of `Predictor.quantise` that fit the rows."""
    rows = rows[~np.isnan(rows)]
    if (rows != np.rint(rows)).any():
        return ["float"]
    unsigned = ["uint8"] * bool(rows.min() >= 0 and rows.max() < 255)
    return ["float", "int16", *unsigned, *["int8"] * bool(rows.min() >= -128 and rows.max() < 127)]


def integer_settings(rng, problem):
    """Return random settings of `Predictor.quantise` that fit the rows."""
    inputs = rng.choice(fitting_inputs(problem.rows))
    return {"bits": int(rng.choice([8, 16])), "inputs": str(inputs)}


def all_settings(problem):
    """Return all settings of `Predictor.quantise` that fit the rows."""
    return [{"bits": b, "inputs": i} for b in (8, 16) for i in fitting_inputs(problem.rows)]


class Case(NamedTuple):
    header: object
    rows: np.ndarray
    """What the device hands over, (n_rows, n_features)."""
    scores: np.ndarray


def float_case(problem, name, rng):
    header = problem.predictor.to_c(name)
    rows = problem.predictor.device_rows(problem.rows)
    extreme = rng.choice([0.0, -0.0, 1e-42, -1e-30, 1e30, 3.4e38, -3.4e38, 1.0], rows.shape)
    rows = np.vstack([rows, extreme.astype(np.float32)])
    if problem.predictor.map.allows_missing and rng.random() < 0.2:
        rows[rng.random(rows.shape) < 0.05] = np.nan
    program = single(program_of(problem.predictor))
    return Case(header, rows, single_scores(program, rows))


def integer_case(problem, name, rng):
    quantised = problem.predictor.quantise(problem.rows, **integer_settings(rng, problem))
    inputs, n = quantised.integers.inputs, quantised.n_features
    rows = quantised.device_rows(problem.rows)
    if inputs.given == "float":
        values = np.array([0.0, -0.0, 1e-42, 1e30, np.inf, -np.inf, np.nan, 3.0, -1.0], np.float32)
        wild = rng.choice(values, (60, n))
        wild = np.vstack([wild, rng.standard_normal((60, n)).astype(np.float32) * 1e3])
    else:
        limits = np.iinfo(rows.dtype)
        wild = rng.integers(limits.min, limits.max + 1, (60, n)).astype(rows.dtype)
        ends = rng.choice([limits.min, limits.max], (60, n)).astype(rows.dtype)
        wild = np.vstack([wild, ends, np.full((1, n), limits.min), np.full((1, n), limits.max)])
    rows = np.vstack([rows, wild]).astype(rows.dtype)
    codes = inputs.codes_of(rows[:, inputs.features])
    return Case(quantised.to_c(name), rows, quantised.integers.code_scores(codes))


def cases(seed, n_models, first=0, large=0.0):
    """Yield random models of all kinds, from number ``first`` on: float and integer in turn.

    ``large`` is the part of large models.
    """
    for number in range(first, first + n_models):
        rng = np.random.default_rng([seed, number])
        kind = KINDS[number // 2 % len(KINDS)]
        problem = random_problem(rng, kind, "large" if rng.random() < large else "small")
        make = integer_case if number % 2 else float_case
        yield make(problem, f"m{number}", rng)


_RUN = """
static void run_{name}(void)
{{
    static {name}_input x[{NAME}_N_FEATURES];
    {name}_score scores[{NAME}_N_SCORES];
    long i, n;
    int32_t label;
    if (fread(&n, sizeof n, 1, stdin) != 1) exit(2);
    for (i = 0; i < n; i++) {{
        if (fread(x, sizeof x, 1, stdin) != 1) exit(3);
        {name}_scores(x, scores);
        label = {name}_predict(x);
        fwrite(scores, sizeof scores, 1, stdout);
        fwrite(&label, sizeof label, 1, stdout);
    }}
}}
"""


def run_all(found, compiler, flags=(*WARNINGS, *SANITIZERS)):
    """Compile all headers into one program, and return the scores and labels of every case."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "all.c"
        names = [case.header.name for case in found]
        for case in found:
            case.header.save(Path(folder) / f"{case.header.name}.h")
        source.write_text("\n".join([
            "#include <stdio.h>", "#include <stdlib.h>",
            *(f'#include "{name}.h"' for name in names),
            *(_RUN.format(name=name, NAME=name.upper()) for name in names),
            "int main(void)", "{", *(f"    run_{name}();" for name in names),
            "    return 0;", "}\n",
        ]))  # fmt: skip
        program = Path(folder) / "all"
        command = [compiler, *flags, str(source), "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        given = b"".join(
            np.int64(len(case.rows)).tobytes() + np.ascontiguousarray(case.rows).tobytes()
            for case in found
        )
        done = subprocess.run([str(program)], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[:4000]
    out, at = [], 0
    for case in found:
        integers = case.header.integers
        kind = np.float32 if integers is None else f"int{integers.accumulator}"
        record = np.dtype([("scores", kind, (case.scores.shape[1],)), ("label", np.int32)])
        size = record.itemsize * len(case.rows)
        rows = np.frombuffer(done.stdout[at : at + size], dtype=record)
        out.append((rows["scores"].copy(), rows["label"].copy()))
        at += size
    assert at == len(done.stdout)
    return out


def differences(found, answers):
    """Return a line for every case whose scores or labels differ from Python's."""
    from laconic.export.labels import label_values

    out = []
    for case, (scores, labels) in zip(found, answers, strict=True):
        same = scores == case.scores
        if scores.dtype.kind == "f":
            same &= np.signbit(scores) == np.signbit(case.scores)
            same |= np.isnan(scores) & np.isnan(case.scores)
        known = ~np.isnan(case.scores.astype(np.float64)).any(axis=1)
        values = label_values(case.header.predictor.classes)
        agree = values[decide(case.scores[known])] == labels[known]
        if not same.all() or not agree.all():
            kinds = [s.kind for s in case.header.program.segments]
            out.append(
                f"{case.header.name} {kinds}: {(~same).sum()} scores, {(~agree).sum()} labels"
            )
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong, batch, n_scores = [], 50, 0
    for first in range(0, args.models, batch):
        found = list(cases(args.seed, min(batch, args.models - first), first))
        for compiler in COMPILERS:
            wrong += [f"{compiler} {line}" for line in differences(found, run_all(found, compiler))]
        n_scores += len(COMPILERS) * sum(case.scores.size for case in found)
        print(f"{first + len(found)} models, {n_scores:,} scores, {len(wrong)} differ", flush=True)
    for line in wrong:
        print(line)
    return 1 if wrong or not COMPILERS else 0


if __name__ == "__main__":
    sys.exit(main())

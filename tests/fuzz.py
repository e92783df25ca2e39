"""Make files with a valid digest and wrong contents, as a stranger might write them.

``mutants`` changes a header and its arrays at random and gives them a valid digest again. Loading
such a file must give a `ValueError` or a model that works, and take little memory. The tests try
some mutants. Try more by hand, for every kind of file or for one:

    python tests/fuzz.py --mutants 5000 [--kind regions]
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import tracemalloc
import warnings
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from laconic import (
    ErrorClumpingClassifier,
    HolePunchingClassifier,
    Predictor,
    ShareBoostClassifier,
    TotalQBoostClassifier,
    convert,
)
from laconic.files import journal
from laconic.files.store import digest
from laconic.model.atoms import Column
from laconic.pools import Patches, Pieces
from model.naive_integers import Naive
from problems import random_problem, saving_always

# Most memory in bytes that a file of a few kilobytes may take while it is read and used.
MOST_MEMORY = 100e6

ODD = [
    None, True, False, 0, -1, 1, 7, 255, 10**9, 2**31, 2**63, 10**400, 0.5, -0.0, 1e300,
    float("nan"), float("inf"), "", "x", "all", "regions", "\ud800", "0" * 500, [], {}, [None],
    [[]], [-1], [10**9], {"0": 1}, {"x": "y"}, [1.5], ["x"] * 9,
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 255, 1e9, -1e9, 1e300, 1e-300, np.nan, np.inf, -np.inf, 0.5]
TYPES = ["<f8", ">f8", "<f4", "<f2", "<c16", "<i8", ">i4", "<u8", "|u1", "|i1", "|b1", "<U1", "<U3"]


def sealed(header, arrays):
    """Return the bytes of an archive with a valid digest, whatever it holds."""
    seal = digest(header, arrays)
    stream = BytesIO()
    text = json.dumps({"header": header, "sha256": seal})
    np.savez(stream, **{"header": np.array(text), **arrays})
    return stream.getvalue(), seal


def mutants(header, arrays, n, seed=0):
    """Yield copies of a header and its arrays, each changed in one to three places."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        new_header, new_arrays = copy.deepcopy(header), dict(arrays)
        for _ in range(rng.integers(1, 4)):
            if new_arrays and rng.random() < 0.6:
                _change_arrays(new_arrays, rng)
            else:
                _change_header(new_header, rng)
        yield new_header, new_arrays


def _change_header(header, rng):
    """Change, remove or add one item, at any depth."""
    place = header
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        deeper = isinstance(place[key], dict | list) and len(place[key]) > 0
        if not deeper or rng.random() < 0.3:
            break
        place = place[key]
    how = rng.integers(4)
    if how == 0:
        del place[key]
    elif how == 1 and isinstance(place, list):
        place.insert(key, copy.deepcopy(place[key]))
    elif how == 1:
        place[str(rng.integers(99))] = copy.deepcopy(place[key])
    else:
        place[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])


def _change_arrays(arrays, rng):
    """Change the type, shape or values of an array, remove it, or copy it to another name."""
    names = list(arrays)
    name, other = (names[i] for i in rng.integers(len(names), size=2))
    array = arrays[name]
    how = rng.integers(8)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[f"{other}{rng.integers(3)}"] = array
    elif how == 2:
        arrays[name] = arrays[other]
    elif how == 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                arrays[name] = array.astype(TYPES[rng.integers(len(TYPES))])
            except (ValueError, TypeError):
                arrays[name] = np.zeros(array.shape, dtype="<f8")
    elif how == 4:
        shapes = [
            array[None],
            array[..., None],
            array.reshape(-1),
            array.T,
            np.asfortranarray(array),
        ]
        arrays[name] = shapes[rng.integers(len(shapes))]
    elif how == 5 and array.ndim:
        pieces = [array[:0], array[1:], array[:-1], array[::-1], np.concatenate([array, array])]
        pieces += [np.zeros((10**9, 0)), np.zeros((0, 10**9)), array[..., :0]]
        arrays[name] = pieces[rng.integers(len(pieces))]
    else:
        arrays[name] = _changed_values(array, rng)


def _changed_values(array, rng):
    changed = array.copy()
    if not changed.size:
        return changed
    value = NUMBERS[rng.integers(len(NUMBERS))]
    if array.dtype.kind == "U":
        value = ["", "x", "all", "regions", "columns", "mixed"][rng.integers(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if rng.random() < 0.3:
                changed[...] = value
            else:
                changed.reshape(-1)[rng.integers(changed.size)] = value
        except (ValueError, OverflowError):
            changed[...] = np.iinfo(changed.dtype).max
    return changed


def outcome(attempt):
    """Return the outcome of an attempt, which may only succeed or raise a `ValueError`."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt()
        result = "sound"
    except ValueError:
        result = "refused"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_MEMORY, f"it took {peak / 1e6:.0f} MB"
    return result


# -- predictors ------------------------------------------------------------------------------------


def data():
    rng = np.random.default_rng(0)
    X, y = random_problem(m=80, d=4)
    images = rng.random((60, 36))
    return X, y, images, (images[:, 0] > images[:, 35]).astype(int)


def frame_of(X):
    """Return the rows of `data` as a frame with a column of categories."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd")).round(1)
    frame["e"] = np.where(X[:, 0] > 0.3, "high", np.where(X[:, 1] > 0.5, None, "low"))
    return frame


def predictors():
    """Return a small predictor of every kind."""
    X, y, images, seen = data()
    frame = frame_of(X)
    holes = {"max_holes": 2, "min_rows": 4}
    patches = Patches(n_templates=10, template_size=3, mask_grid=2, mask_sigma=1.5)
    two = (y > 0).astype(int)
    inner = HolePunchingClassifier(ShareBoostClassifier(1, pool="stumps"), **holes)
    models = {
        "columns": ShareBoostClassifier(2).fit(X, y),
        "groups": ShareBoostClassifier(1, groups=[0, 0, 1, 1]).fit(X, y),
        "stumps": ShareBoostClassifier(3, pool="stumps").fit(frame, np.array(list("xyz"))[y]),
        "products": ShareBoostClassifier(2, pool="products", loss="log").fit(X, y),
        "rules": ShareBoostClassifier(3, pool="rules").fit(frame, y),
        "pieces": ShareBoostClassifier(2, pool="pieces").fit(X, y),
        "bumps": ShareBoostClassifier(2, pool="bumps").fit(X, y),
        "hinges": ShareBoostClassifier(2, pool="hinges").fit(X, y),
        "patches": ShareBoostClassifier(2, pool=patches).fit(images, seen),
        "clumping": ErrorClumpingClassifier().fit(X, y),
        "regions": HolePunchingClassifier(LogisticRegression(), **holes).fit(X, two),
        "nested": HolePunchingClassifier(inner, **holes).fit(X, two),
        "mixed": ShareBoostClassifier(4, pool=["columns", Pieces(4, 2)], include=[Column(0)]).fit(
            X, y
        ),
        "ensemble": TotalQBoostClassifier(4, price=0.0).fit(X, two),
    }
    filled = make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression())
    gaps = np.where(np.abs(X) < 0.2, np.nan, X)
    return {
        **{name: model.predictor_ for name, model in models.items()},
        "filled": convert(filled.set_params(simpleimputer__add_indicator=False).fit(gaps, y)),
        "converted": convert(filled.set_params(simpleimputer__add_indicator=True).fit(gaps, y)),
    }


def integer_predictors():
    """Return a small integer predictor of every kind, some of float inputs and some of raw ones."""
    X, y, images, _ = data()
    frame = frame_of(X)
    of_rows = {"stumps": frame, "rules": frame, "patches": images, "categories": frame}
    raw = {"groups": "int16", "products": "int8", "pieces": "uint8", "regions": "int16"}
    found = predictors()
    asked = ShareBoostClassifier(3, pool="stumps").fit(frame, frame["e"].fillna("none"))
    found["categories"] = asked.predictor_
    found["soft pieces"] = ShareBoostClassifier(2, pool=Pieces(soft=True)).fit(X, y).predictor_
    out = {}
    for number, (name, plain) in enumerate(found.items()):
        rows, given = of_rows.get(name, X), raw.get(name, "float")
        rows = rows if given == "float" else np.rint(np.abs(100 * rows))
        out[f"integer {name}"] = plain.quantise(rows, bits=(8, 16)[number % 2], inputs=given)
    return out


def parts_of(predictor, folder):
    """Return header and arrays of a predictor's file."""
    predictor.save(Path(folder) / "whole")
    with np.load(Path(folder) / "whole") as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header")))["header"], arrays


def try_predictors(predictor, n, seed=0):
    """Return the outcomes of ``n`` mutants of a predictor's file."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant"
        for header, arrays in mutants(*parts_of(predictor, folder), n, seed):
            try:
                path.write_bytes(sealed(header, arrays)[0])
            except (ValueError, TypeError):  # cannot be written at all
                continue
            counted[outcome(lambda: use(path))] += 1
    return counted


def use(path):
    """Load a file, and use the predictor as people do."""
    predictor = Predictor.load(path)
    rows = np.random.default_rng(1).random((3, min(predictor.n_features, 100)))
    if predictor.n_features <= 100:
        if hasattr(predictor, "integers"):
            rows = use_integers(predictor)
        assert np.isfinite(predictor.scores(rows)).all()
        assert predictor.predict(rows).shape == (3,)
    predictor.names()
    predictor.cost()
    predictor.describe(file=open(path.with_name("card"), "w"))  # noqa: SIM115
    predictor.save(path.with_name("again"))
    Predictor.load(path.with_name("again"))


def use_integers(predictor):
    """Check an integer predictor against loops that check every number. Return three rows for it.

    No row of the device's numbers may go beyond a proven bound.
    """
    inputs, d = predictor.integers.inputs, predictor.n_features
    numbers = np.array([-np.inf, -1.5, 0.0, 0.25, 90.0, np.inf], np.float32)
    if inputs.given != "float":
        limits = np.iinfo(inputs.dtype)
        numbers = np.array([limits.min, 0, 1, 90, limits.max], inputs.dtype)
    rng = np.random.default_rng(2)
    given = np.array([*(np.full(d, n) for n in numbers[[0, -1]]), *rng.choice(numbers, (4, d))])
    found = Naive(predictor.integers).scores(given)
    codes = inputs.codes_of(given[:, inputs.features])
    assert np.array_equal(predictor.integers.code_scores(codes), found)
    str(predictor.to_c())
    return np.rint(90.0 * rng.random((3, d)))


# -- checkpoints -----------------------------------------------------------------------------------


def fits():
    """Return a small fit for every kind of checkpoint, by the name of the kind in the file.

    Every round is written.
    """
    X, y, *_ = data()
    two = (y > 0).astype(int)
    holes = {"max_holes": 2, "min_rows": 4, "pickle_models": True}
    return {
        "checkpoint": lambda path: saving_always(
            ShareBoostClassifier(3, pool="stumps", refine=True, checkpoint=path)
        ).fit(X, y),
        "priced checkpoint": lambda path: saving_always(
            TotalQBoostClassifier(4, price=0.01, hot_start=2, checkpoint=path)
        ).fit(X, two),
        "holes checkpoint": lambda path: saving_always(
            HolePunchingClassifier(LogisticRegression(), checkpoint=path, **holes)
        ).fit(X, two),
        "clumping checkpoint": lambda path: saving_always(
            ErrorClumpingClassifier(checkpoint=path)
        ).fit(X, y),
    }


def read_records(path):
    """Return the first line of a journal, and the header and arrays of its records."""
    raw = path.read_bytes()
    at = raw.index(b"\n") + 1
    line, out = raw[:at], []
    while at < len(raw):
        end = at + len(journal.prefix(0)) + int.from_bytes(raw[at : at + 8], "little")
        with np.load(BytesIO(raw[at + len(journal.prefix(0)) : end])) as file:
            arrays = dict(file)
        out.append((json.loads(str(arrays.pop("header")))["header"], arrays))
        at = end
    return line, out


def write_records(path, line, records):
    """Write a journal of any records, each after the one before."""
    out, last = [line], ""
    for header, arrays in records:
        record, last = sealed({**header, "after": last}, arrays)
        out.append(journal.prefix(len(record)) + record)
    path.write_bytes(b"".join(out))


def try_checkpoints(fit, n, seed=0):
    """Return the outcomes of ``n`` mutants of a fit's checkpoint.

    Pickles in it are not changed, because a user who allows them trusts them.
    """
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit"
        fit(path)
        archive = path.read_bytes().startswith(b"PK")
        line, records = (b"", [_archive(path)]) if archive else read_records(path)
        rng = np.random.default_rng(seed)
        for _ in range(n):
            changed, at = list(records), int(rng.integers(len(records)))
            header, arrays = records[at]
            kept = {k: a for k, a in arrays.items() if k.startswith(("base", "model"))}
            kept = kept if line.startswith(b"laconic holes") else {}
            others = {k: a for k, a in arrays.items() if k not in kept}
            [(header, arrays)] = mutants(header, others, 1, rng.integers(2**31))
            changed[at] = (header, {**arrays, **kept})
            try:
                if archive:
                    path.write_bytes(sealed(*changed[0])[0])
                else:
                    write_records(path, line, changed)
            except (ValueError, TypeError):  # cannot be written at all
                continue
            counted[outcome(lambda: fit(path))] += 1
    return counted


def _archive(path):
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header")))["header"], arrays


def main():
    """Try many mutants of every kind, or of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mutants", type=int, default=1000, help="mutants of each kind (%(default)s)"
    )
    parser.add_argument("--kind", help="try only this kind of file")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    attempts = {name: (try_predictors, p) for name, p in predictors().items()}
    attempts |= {name: (try_predictors, p) for name, p in integer_predictors().items()}
    attempts |= {name: (try_checkpoints, f) for name, f in fits().items()}
    for name, (attempt, what) in attempts.items():
        if args.kind in (None, name):
            print(f"{name}: {dict(attempt(what, args.mutants, args.seed))}", flush=True)


if __name__ == "__main__":
    main()

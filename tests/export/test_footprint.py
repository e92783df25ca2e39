"""Promised bytes: never fewer than the linked program takes, and known before any weight is."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from export.random_models import KINDS, all_settings, cases, random_problem
from laconic import Predictor, ShareBoostClassifier, TotalQBoostClassifier
from laconic.export.chips import CHIPS, find_chip, is_installed, measure
from laconic.export.footprint import (
    CHIP_NAMES,
    Target,
    code_bytes,
    find_target,
    footprint,
    measured_code,
    part_bytes,
    program_bytes,
)
from laconic.export.table_bytes import Layout, table_bytes
from laconic.model.atoms import ColumnsMap, ProductsMap, StumpsMap
from laconic.model.program import program_of
from laconic.pools import Patches

REAL = ("avr", "cortex-m0", "rv32")


def needs(chip):
    if not is_installed(find_chip(chip)):
        pytest.skip(f"needs the compiler of {chip}")


def target_of(header, chip="c99"):
    integers = header.integers
    if integers is None:
        return Target(chip, None, "float")
    return Target(chip, integers.bits, integers.inputs.given)


def test_tables_are_never_larger_than_counted():
    for case in cases(3, 120, large=0.1):
        header, target = case.header, target_of(case.header)
        classes = len(header.predictor.classes)
        counted = table_bytes(header.program, target.bits, target.inputs, classes)
        assert header.table_bytes <= counted
        before = program_of(header.predictor)  # what budgets count, before any weight is known
        assert header.table_bytes <= table_bytes(before, target.bits, target.inputs, classes)
        layout = Layout(header.program, target.bits, target.inputs)
        if header.integers is not None:
            assert header.integers.accumulator <= 8 * layout.score
            assert header.integers.distance <= 8 * layout.distance


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_never_wider_than_counted_even_with_extreme_constants(kind):
    for seed in range(12):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        problem = random_problem(rng, kind)
        p = problem.predictor
        far = p.intercept * 10.0 ** rng.uniform(-6, 6)
        p = Predictor(p.map, p.weights, far, p.classes, p.loss, p.widths, p.n_features)
        for settings in all_settings(problem):
            quantised = p.quantise(problem.rows, **settings)
            given = settings["bits"], quantised.integers.inputs.given
            layout = Layout(program_of(p), *given)
            assert quantised.integers.accumulator <= 8 * layout.score
            header = quantised.to_c()
            assert header.table_bytes <= table_bytes(program_of(p), *given, len(p.classes))


@pytest.mark.chips
@pytest.mark.parametrize("chip", REAL)
def test_the_linked_program_is_never_larger_than_promised(chip):
    needs(chip)
    for case in cases(4, 40):
        header = case.header
        program = program_of(header.predictor)
        promised = program_bytes(program, target_of(header, chip), len(header.predictor.classes))
        assert measure(str(header), chip, header.name).flash <= promised, header.name


@pytest.mark.chips
@pytest.mark.parametrize("chip", REAL)
@pytest.mark.parametrize("kind", ["balls", "soft", "bumps", "regions"])
def test_distances_of_64_bits_keep_the_promise(chip, kind):
    """Numbers of int16 need them, if they use the whole range of the type."""
    needs(chip)
    wide = 0
    for seed in range(20):
        problem = random_problem(np.random.default_rng(seed), kind, "small", "int16")
        p = problem.predictor.quantise(problem.rows, bits=(8, 16)[seed % 2], inputs="int16")
        if p.integers.distance == 64 and wide < 4:
            wide += 1
            promised = program_bytes(p.integers.program, target_of(p.to_c(), chip), len(p.classes))
            assert measure(str(p.to_c()), chip).flash <= promised, seed
    assert wide == 4


def tables_of_letters():
    """Return rows of few features with 26 classes."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 8)), np.arange(400) % 26
    X[:, 0] += y
    X[:, 3] -= y % 5
    return np.clip(4 * X, -127, 120).astype(np.int8), y


@pytest.mark.chips
@pytest.mark.parametrize("chip", [*REAL, "cortex-m4"])
def test_tiny_models_and_many_classes_keep_the_promise(chip):
    """A compiler may choose other routines for them: a subtraction of floats, or memcpy."""
    needs(chip)
    floats, whole = Target(chip, None, "float"), Target(chip, 8, "int8")
    X, y = load_iris(return_X_y=True)
    Z, letters = tables_of_letters()
    fits = [(n, "columns", floats, X, y) for n in (1, 2)]
    fits += [(3, pool, floats, Z, letters) for pool in ("columns", "stumps", "products")]
    fits += [(3, pool, whole, Z, letters) for pool in ("columns", "stumps", "products")]
    for n_atoms, pool, target, rows, labels in fits:
        model = ShareBoostClassifier(n_atoms, pool=pool, max_bytes=9000, chip=target)
        predictor = model.fit(rows, labels).predictor_
        if target.bits is not None:
            predictor = predictor.quantise(rows)
        promised = model.path_[n_atoms].footprint
        assert measure(str(predictor.to_c()), chip).flash <= promised, (n_atoms, pool, target)
    for number, tests in enumerate(((1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)) * 2):
        rng = np.random.default_rng(number)
        p = random_problem(rng, "stumps", "tiny", "float", 2 + number % 3, tests).predictor
        promised = program_bytes(program_of(p), floats, len(p.classes))
        assert measure(str(p.to_c()), chip).flash <= promised, tests


@pytest.mark.chips
@pytest.mark.parametrize("chip", REAL)
@pytest.mark.parametrize("inputs", ["uint8", "float"])
def test_models_within_a_budget_stay_within_it_on_the_chip(chip, inputs):
    needs(chip)
    X, y = load_digits(return_X_y=True)
    X, y = X[:200].astype(np.uint8), y[:200]
    pools = ["columns", "stumps", "products", "pieces", Patches(None, 30, 3, 3, 1.5)]
    target = Target(chip, 8, inputs)
    for pool in pools:
        budget = 6000 if pool == "pieces" else 2600
        model = ShareBoostClassifier(40, pool=pool, max_bytes=budget, chip=target).fit(X, y)
        assert model.n_atoms_ > 0
        header = model.predictor_.quantise(X, inputs=inputs).to_c()
        promised = model.path_[model.n_atoms_].footprint
        assert measure(str(header), chip).flash <= promised <= budget
    two = TotalQBoostClassifier(max_bytes=1200, chip=target, price=1e-4).fit(X, y > 4)
    header = two.predictor_.quantise(X, inputs=inputs).to_c()
    assert measure(str(header), chip).flash <= two.path_[two.n_atoms_].footprint <= 1200


@pytest.mark.parametrize("bits", [8, 16, None])
@pytest.mark.parametrize("inputs", ["float", "uint8", "int16"])
def test_another_atom_never_makes_a_model_smaller(bits, inputs):
    rng = np.random.default_rng(0)
    target = Target("avr", bits, inputs if bits else "float")
    first, second = rng.integers(0, 300, (2, 40))
    makes = [
        lambda n: ColumnsMap(np.arange(n)),
        lambda n: ProductsMap(first[:n], second[:n]),
        lambda n: StumpsMap(first[:n], second[:n] / 7, first[:n] % 2),
    ]
    for make in makes:
        sizes = [footprint(make(n), 3, target, 300) for n in range(40)]
        assert (np.diff(sizes) >= 0).all()


def test_every_chip_was_measured():
    assert set(measured_code()) == set(CHIPS) == set(CHIP_NAMES)
    parts = [set(chip["bytes"]) for chip in measured_code().values()]
    assert all(names == parts[0] for names in parts)
    assert all(chip["compiler"] for chip in measured_code().values())


def test_wrong_targets_are_refused():
    with pytest.raises(ValueError, match="Did you mean 'cortex-m4'"):
        find_target("cortex-m3")
    with pytest.raises(ValueError, match="bits must be one of 8, 16, None"):
        find_target(Target("avr", 4))
    with pytest.raises(TypeError, match="or a Target, not 8"):
        find_target(8)
    assert find_target(Target("avr", 16, "int8")) == Target("avr", 16, "int8")
    assert find_target(Target("avr", 32)) == Target("avr", None, "float")


@pytest.mark.parametrize("chip", CHIP_NAMES)
@pytest.mark.parametrize("given", ["float", "uint8", "int8", "int16"])
def test_two_kinds_take_less_than_apart_and_no_less_than_either(chip, given):
    measured = measured_code()[chip]["bytes"]
    for number in ("int32", "int64"):
        kinds = [f"{number} {kind} of {given}" for kind in ("gather", "rules", "multiply")]
        apart = [code_bytes(measured, [kind]) for kind in kinds]
        assert max(apart[:2]) <= code_bytes(measured, kinds[:2]) < sum(apart[:2])
        assert code_bytes(measured, kinds[:2]) <= code_bytes(measured, kinds) < sum(apart)
        full = [*kinds[:2], f"{number} many_scores of {given}"]
        more = code_bytes(measured, full) - code_bytes(measured, kinds[:2])
        assert more == part_bytes(measured, full[-1])

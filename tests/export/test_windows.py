"""C code of patches: sheets of weights that masks share, and answers of groups of atoms."""

import numpy as np
import pytest

from export.random_models import (
    COMPILERS,
    Case,
    ListMap,
    differences,
    random_problem,
    run_all,
    some_windows,
)
from laconic import Predictor
from laconic.export.mask_sheets import PlacedMask, make_sheets
from laconic.export.table_bytes import table_bytes
from laconic.export.window_tables import TOGETHER, window_tables
from laconic.model.integers import MASK
from laconic.model.masks import mask_weights
from laconic.model.program import program_of
from laconic.model.route import Route
from laconic.model.segments import by_template
from laconic.model.single import single, single_scores
from laconic.model.windows import WindowMaximum
from laconic.pools.templates import mask_centres

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="needs a C compiler")


def place_of(shape, size, row, column, sigma, whole=True):
    weights = mask_weights(shape, size, row, column, sigma).astype(np.float64)
    weights = np.rint(MASK * weights) if whole else weights
    half = (size - 1) / 2
    return PlacedMask(weights.shape, (row - half, column - half), sigma, weights.tobytes())


def grid_of(shape, size, grid, sigma, whole=True):
    centres = mask_centres(shape, size, grid).tolist()
    return [place_of(shape, size, *centre, sigma, whole) for centre in centres]


def assert_all_masks(places, sheets):
    for number, place in enumerate(places):
        assert np.array_equal(sheets.mask(number, place.shape), place.mask())


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("grid", [(1, 1), (2, 3), (3, 3), (4, 4), (5, 4), (6, 7), (7, 7)])
@pytest.mark.parametrize("size", [1, 4, 5, 7])
def test_masks_of_a_grid_are_read_from_their_sheets(size, grid, whole):
    places = grid_of((28, 24), size, grid, 3.5, whole) + grid_of((28, 24), size, grid, 6.0, whole)
    assert_all_masks(places, make_sheets(places, 1))


def test_masks_anywhere_are_read_from_their_sheets():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shape, size = tuple(rng.integers(5, 14, 2).tolist()), int(rng.integers(1, 5))
        sigma = rng.choice([0.6, 3.0, 4.2, np.inf], 5)
        centre = np.column_stack([rng.uniform(1, side - 2, 5) for side in shape])
        places = [
            place_of(shape, size, *at, width)
            for at, width in zip(centre.tolist(), sigma.tolist(), strict=True)
            if mask_weights(shape, size, *at, width).any()
        ]
        if places:
            assert_all_masks(places, make_sheets(places, 1))


def test_a_mask_that_is_not_symmetric_is_read_plainly():
    weights = np.arange(1.0, 26.0).reshape(5, 5)
    other = np.where(weights > 7, weights, 0)
    other[4, 4] = 0
    places = [PlacedMask((5, 5), (2.0, 2.0), 1.0, own.tobytes()) for own in (weights, other)]
    sheets = make_sheets(places, 1)
    assert_all_masks(places, sheets)
    assert len(sheets.rows) == 2  # they differ in weights that both read
    nothing = PlacedMask((3, 4), (1.0, 1.5), 1.0, np.zeros((3, 4)).tobytes())
    assert_all_masks([nothing], make_sheets([nothing], 1))


def test_sixteen_masks_of_digits_are_one_quarter_of_a_gaussian():
    """Middles lie halfway between positions, so a quarter has 12 x 12 distances in a circle."""
    places = grid_of((28, 28), 5, (4, 4), 6.0)
    sheets = make_sheets(places, 1)
    assert len(sheets.rows) == 1
    squares = (np.arange(12) + 0.5) ** 2
    assert len(sheets.weight) == np.count_nonzero(np.add.outer(squares, squares) <= 144)
    assert sheets.bytes(1) < sum(np.count_nonzero(place.mask()) for place in places) / 20


def test_a_group_is_a_run_of_atoms_of_a_leaf_with_one_template():
    rng = np.random.default_rng(0)
    n = 300
    patches = WindowMaximum(
        (9, 9), [2, 3], rng.standard_normal(13), rng.integers(0, 2, n),
        rng.uniform(2, 6, (n, 2)), np.full(n, 3.0),
    )  # fmt: skip
    p = Predictor(ListMap([patches]), rng.standard_normal((n, 3)), np.zeros(3), np.arange(3),
                  "log", [1] * n, 81)  # fmt: skip
    (segment,) = program_of(p).segments
    tables = window_tables(segment, 4)
    template = tables.segment.tables["template"]
    assert np.array_equal(np.sort(segment.tables["template"]), template)
    for a, b, size in zip(tables.first[:-1], tables.first[1:], tables.size, strict=True):
        assert 0 < b - a <= TOGETHER
        assert set(template[a:b].tolist()) == {size - 2}
    assert tables.first[[0, -1]].tolist() == [0, n]
    again = by_template(tables.segment)
    assert all(np.array_equal(again.tables[k], v) for k, v in tables.segment.tables.items())


def test_middles_far_from_the_image_take_no_memory():
    """Masks of ones may be centred anywhere, and so may those that are nearly ones."""
    centre = [[1e8, -1e8], [-1e8, 3.0], [2.0, 1e6]]
    sigma = [np.inf, 1e9, 1e9]
    patches = WindowMaximum((6, 7), [2, 3, 3], np.ones(22), [0, 1, 2], centre, sigma)
    rows = np.random.default_rng(0).integers(0, 256, (30, 42))
    p = Predictor(ListMap([patches]), np.eye(3), np.zeros(3), np.arange(3), "log", [1] * 3, 42)
    p = p.quantise(rows, inputs="uint8")
    (segment,) = p.integers.program.segments
    sheets = window_tables(segment, 1).sheets
    assert len(sheets.weight) <= 30 + 20 + 20
    for compiler in COMPILERS:
        found = [Case(p.to_c("far"), p.device_rows(rows), p.encoded_scores(rows))]
        assert differences(found, run_all(found, compiler)) == []


def routed(rng):
    """Return a model with patches in and outside holes, on images of two shapes, and rows."""
    shape = int(rng.integers(3, 9)), int(rng.integers(3, 9))
    n = shape[0] * shape[1]
    rows = rng.integers(0, 256, (40, n)).astype(np.float64)
    parts = [[some_windows(rng, shape)], [some_windows(rng, shape), some_windows(rng, shape[::-1])]]
    far = np.sqrt(np.square(rows - rows[0]).sum(axis=1))
    map = ListMap([Route(rows[:1], [np.quantile(far, 0.5) * 1.0001], parts)])
    weights = rng.standard_normal((map.n_columns, 3))
    widths = [1] * map.n_columns
    return Predictor(map, weights, np.zeros(3), np.arange(3), "log", widths, n), rows


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
def test_patches_give_the_same_bits_in_every_form(compiler):
    """Each compiler has its own half of the models. Kinds repeat after 24 of them."""
    found, half = [], list(COMPILERS).index(compiler)
    for number in range(24 * half, 24 * half + 24):
        rng = np.random.default_rng(number)
        if number % 4 == 3:
            predictor, rows = routed(rng)
        else:
            size = "large" if number % 8 == 0 else "small"
            predictor, rows = random_problem(rng, "windows", size, "uint8")
        if number % 3 == 0:
            given = predictor.device_rows(rows)
            scores = single_scores(single(program_of(predictor)), given)
            target = None, "float"
        else:
            inputs = ("uint8", "int8", "int16", "float")[number // 3 % 4]
            rows = np.clip(rows, -128, 127) if inputs == "int8" else rows
            predictor = predictor.quantise(rows, bits=(8, 16)[number // 2 % 2], inputs=inputs)
            given, scores = predictor.device_rows(rows), predictor.encoded_scores(rows)
            target = predictor.integers.bits, inputs
        found.append(Case(predictor.to_c(f"m{number}"), given, scores))
        counted = table_bytes(program_of(predictor), *target, len(predictor.classes))
        assert found[-1].header.table_bytes <= counted
    assert differences(found, run_all(found, compiler)) == []

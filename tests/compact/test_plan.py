"""The plan of a search: rungs of rows, sizes, and settings that go on."""

from itertools import pairwise

import numpy as np
import pytest

from laconic.compact.frontier import Tried, best_of, best_scores, pareto, tried_models
from laconic.compact.plan import rows_of_rungs, rung_sizes, survivors, tried_sizes
from laconic.compact.settings import find_settings, looks_like_images


@pytest.mark.parametrize("n_rows", [2, 999, 4000, 70_000])
def test_rungs_grow_to_all_rows(n_rows):
    sizes = rung_sizes(n_rows)
    assert sizes[-1] == n_rows
    assert all(4 * a <= b for a, b in pairwise(sizes))
    assert all(size >= 1000 for size in sizes[:-1])


def test_a_rung_contains_the_one_before_and_classes_keep_their_shares():
    codes = np.repeat([0, 1, 2], [9000, 900, 100])
    rungs = rows_of_rungs(codes, 3, np.random.RandomState(0))
    for small, large in pairwise(rungs):
        assert set(small) <= set(large)
    share = np.bincount(codes[rungs[0]]) / len(rungs[0])
    assert np.allclose(share, [0.9, 0.09, 0.01], atol=0.001)
    assert np.array_equal(rungs[-1], np.arange(len(codes)))


def test_tried_sizes_grow_by_a_quarter():
    sizes = tried_sizes(200)
    assert sizes[0] == 0
    assert sizes[-1] == 200
    assert all(b <= max(a + 1, 1.34 * a) for a, b in pairwise(sizes))


def test_the_best_third_goes_on_and_the_best_of_every_part():
    best = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    small = np.array([0.9, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert survivors(best, [small]) == [5, 4, 0]
    assert survivors(best, [np.full(6, -np.inf)]) == [5, 4]


def random_models(rng, n):
    def tried(number):
        score, bytes = np.round(rng.random(2), 1)
        return Tried(0, 9, number % 3, 8, 1, 1.0, 1.0, score, 0.05, bytes, 0.0, 0.0, 0.0)

    return [tried(number) for number in range(n)]


@pytest.mark.parametrize("seed", range(8))
def test_the_frontier_is_what_nothing_beats(seed):
    models = random_models(np.random.default_rng(seed), 40)
    frontier = {(m.bytes, m.score) for m in pareto(models)}
    naive = {
        (m.bytes, m.score)
        for m in models
        if not any(
            (o.bytes <= m.bytes and o.score > m.score) or (o.bytes < m.bytes and o.score >= m.score)
            for o in models
        )
    }
    assert frontier == naive


@pytest.mark.parametrize("seed", range(8))
def test_the_best_model_that_fits(seed):
    models = random_models(np.random.default_rng(seed), 40)
    best = best_of(models, 0.6, one_standard_error=False)
    assert best.bytes <= 0.6
    assert best.score == max(m.score for m in models if m.bytes <= 0.6)
    small = best_of(models, 0.6, one_standard_error=True)
    enough = [m.bytes for m in models if m.bytes <= 0.6 and m.score >= best.score - 0.05]
    assert small.bytes == min(enough)
    for setting, score in zip((2, 0), best_scores(models, (2, 0), 0.5), strict=True):
        own = [m.score for m in models if m.setting == setting and m.bytes <= 0.5]
        assert score == max(own, default=-np.inf)


def test_models_that_some_fold_cannot_make_are_left_out():
    tables = np.ones((2, 1, 3, 7))
    tables[:, 0, :, 0] = [0, 1, 1]  # sizes of the path: the last one is not reached
    tables[1, 0, 0] = np.nan
    found = tried_models(0, 9, 4, [8], [0, 1, 2], tables)
    assert [(m.size, m.setting, m.standard_error) for m in found] == [(1, 4, 0.0)]


def test_images_are_told_from_other_rows():
    rng = np.random.default_rng(0)
    x, y = np.meshgrid(np.arange(10), np.arange(10))
    blobs = np.exp(-((x - rng.uniform(0, 9, (60, 1, 1))) ** 2 + (y - 4) ** 2) / 8)
    assert looks_like_images(blobs.reshape(60, -1))
    assert not looks_like_images(rng.permuted(blobs.reshape(60, -1), axis=1))
    assert not looks_like_images(rng.standard_normal((60, 100)))
    assert not looks_like_images(blobs.reshape(60, -1)[:, :99])
    assert not looks_like_images(np.zeros((5, 64)))


def test_pools_depend_on_the_rows():
    X = np.random.default_rng(0).standard_normal((50, 5))
    titles = [s.title for s in find_settings("auto", ["auto"], X, [], "auto")]
    assert titles[:5] == ["columns", "products", "stumps", "bumps", "hinges"]
    assert {"columns + products", "Hinges(n_inputs=4)"} <= set(titles)
    narrow = [s.title for s in find_settings("auto", ["auto"], X[:, :4], [], "auto")]
    assert set(titles) - set(narrow) == {"Hinges(n_inputs=4)"}
    X[0, 0] = np.nan
    tables = find_settings("auto", ["auto"], X, [], "auto")
    assert [s.title for s in tables] == ["stumps", "rules", "stumps + rules"]
    assert [s.title for s in find_settings("auto", ["auto"], X[:, :1], [], "auto")] == ["stumps"]
    assert len(find_settings(["stumps"], ["auto", 0.1], X, [], None)) == 2


@pytest.mark.parametrize(
    ("pools", "alphas", "message"),
    [
        ("columns", ["auto"], 'pools must be "auto" or a list'),
        ([], ["auto"], "at least one entry"),
        (["colums"], ["auto"], "pool must be one of"),
        (["columns"], [-1.0], "alphas must hold"),
        (["columns"], [True], "alphas must hold"),
        (["patches"], ["auto"], "give image_shape"),
    ],
)
def test_wrong_settings_are_refused(pools, alphas, message):
    with pytest.raises((TypeError, ValueError), match=message):
        find_settings(pools, alphas, np.zeros((5, 3)), [], "auto")


@pytest.mark.parametrize(("n_features", "tried"), [(1, 1), (2, 3), (100, 3), (101, 1)])
def test_tables_get_rules_unless_they_are_wide(n_features, tried):
    X = np.zeros((4, n_features))
    X[0, 0] = np.nan
    settings = find_settings("auto", [1e-3], X, [], "auto")
    assert [setting.title for setting in settings] == ["stumps", "rules", "stumps + rules"][:tried]

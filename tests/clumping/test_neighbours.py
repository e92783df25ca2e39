"""Neighbour graphs: exact, symmetric, and the same however they are stored or computed."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from laconic.clumping.graph import BitStore, GraphLimits, ListStore, NeighbourGraph
from laconic.clumping.neighbours import auto_radius, given_graph, nearest_graph, radius_graph
from laconic.clumping.symmetric import Edges
from laconic.numeric.threads import Threads


def brute_force(X, radius):
    """‖x_i − x_j‖ ≤ ρ by differences in float64, i ≠ j."""
    X = np.asarray(X, dtype=np.float64)
    gaps = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    near = gaps <= radius
    np.fill_diagonal(near, False)
    return near


def dense(graph):
    return graph.to_sparse().toarray().astype(bool)


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((203, 5))


@pytest.fixture(params=[ListStore, BitStore])
def storage(request):
    """Every graph of the test is stored this way, by these limits; work is cut into small parts."""
    lists_below = 2.0 if request.param is ListStore else 0.0
    return request.param, GraphLimits(rows=64, lists_below=lists_below, side=64, panel=3)


@pytest.mark.parametrize("radius", [0.0, 0.8, 2.0, 100.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_is_the_brute_force_graph(rows, radius, dtype, storage):
    kind, limits = storage
    rows = rows.astype(dtype)
    found = radius_graph(rows, radius, limits=limits)
    assert isinstance(found._store, kind)
    assert np.array_equal(dense(found), brute_force(rows, radius))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
def test_sparse_rows_give_the_same_graph(rows, make):
    rows[rows < 0.5] = 0.0
    assert np.array_equal(dense(radius_graph(make(rows), 1.5)), brute_force(rows, 1.5))


def test_pairs_at_the_very_radius_are_decided_in_double_precision():
    grid = np.stack(np.meshgrid(*[np.arange(7) * 0.1] * 3), axis=-1).reshape(-1, 3) + 1000.0
    for radius in (0.1, 0.1 * np.sqrt(2), 0.2, np.nextafter(0.2, 0), 0.3):
        assert np.array_equal(dense(radius_graph(grid, radius)), brute_force(grid, radius))


def test_clusters_far_apart_need_double_precision_throughout():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 4)) * 1e-4 + rng.choice([-1e3, 1e3], (90, 1))
    assert np.array_equal(dense(radius_graph(X, 2e-4)), brute_force(X, 2e-4))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e150])
def test_units_do_not_matter(rows, scale):
    assert np.array_equal(dense(radius_graph(rows * scale, 2.0 * scale)), brute_force(rows, 2.0))


def test_duplicates_are_neighbours_at_any_radius(rows):
    twice = np.vstack([rows, rows])
    found = dense(radius_graph(twice, 0.0))
    assert np.array_equal(found, np.kron([[0, 1], [1, 0]], np.eye(len(rows), dtype=int)) > 0)


def test_the_number_of_threads_does_not_change_it(rows, storage):
    limits = storage[1]._replace(panel=1)
    one, three = (dense(radius_graph(rows, 2.0, n_jobs=n, limits=limits)) for n in (1, 3))
    assert np.array_equal(one, three)


def test_sums_degrees_and_lists_agree_with_the_matrix(rows, storage):
    near = brute_force(rows, 2.0)
    found = radius_graph(rows, 2.0, limits=storage[1])
    values = np.random.default_rng(2).standard_normal((3, len(rows)))
    with Threads(2) as threads:
        assert np.array_equal(found.sums(values), found.sums(values, threads))
    assert found.sums(values) == pytest.approx(values @ near)
    assert found.sums(values[0]) == pytest.approx(near @ values[0])
    assert np.array_equal(found.degrees, near.sum(axis=1))
    assert found.share == pytest.approx(near.sum() / (len(rows) * (len(rows) - 1)))
    for i in (0, 63, 64, 202):
        assert np.array_equal(found.neighbours(i), np.flatnonzero(near[i]))
    for some in (np.array([5, 3, 200, 77]), np.random.default_rng(3).permutation(203)[:150]):
        assert np.array_equal(dense(found.subset(some)), near[np.ix_(some, some)])
    with pytest.raises(ValueError, match="203 entries"):
        found.sums(values[:, :5])


def test_lists_where_neighbours_are_few_and_bits_where_many(rows):
    few, many = radius_graph(rows, 0.6), radius_graph(rows, 3.0)
    assert isinstance(few._store, ListStore)
    assert isinstance(many._store, BitStore)
    assert many.nbytes <= len(rows) * (len(rows) / 8 + 1)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", lambda a, b: np.abs(a - b).max()])
def test_any_metric(rows, metric):
    from sklearn.metrics import pairwise_distances

    rows = rows[:40]
    near = pairwise_distances(rows, metric=metric) <= 1.0
    np.fill_diagonal(near, False)
    assert np.array_equal(dense(radius_graph(rows, 1.0, metric=metric)), near)


def test_nearest_neighbours_are_made_symmetric(rows):
    gaps = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    near = np.zeros(gaps.shape, dtype=bool)
    np.put_along_axis(near, np.argsort(gaps, axis=1)[:, :3], True, axis=1)
    assert not np.array_equal(near, near.T)
    assert np.array_equal(dense(nearest_graph(rows, 3)), near | near.T)
    assert nearest_graph(rows[:4], 10).share == 1.0
    assert nearest_graph(rows[:1], 10).share == 0.0


def peak_bytes(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", ["nearest", "metric", "given", "subset"])
def test_many_neighbours_take_little_memory_on_the_way(kind):
    """Graphs of a tenth of all pairs, which are kept as m²/8 bytes."""
    X = np.random.default_rng(6).standard_normal((2000, 3))
    graph = radius_graph(X, auto_radius(X, share=0.1))
    near = graph.to_sparse()
    limits = GraphLimits(listed=1 << 13, held=1 << 13)
    make = {
        "nearest": lambda: nearest_graph(X, 200, n_jobs=1, limits=limits),
        "metric": lambda: radius_graph(X, 1.0, metric="manhattan", n_jobs=1, limits=limits),
        "given": lambda: given_graph(near, len(X), limits),
        "subset": lambda: graph.subset(np.arange(10, len(X))),
    }[kind]
    make()
    assert peak_bytes(make) < len(X) ** 2


@pytest.mark.parametrize("kind", ["radius", "metric", "nearest"])
def test_the_work_says_how_far_it_is(rows, kind):
    """The share that is done rises to 1, and being told changes nothing."""
    limits = GraphLimits(side=16, listed=400, held=4000)
    make = {
        "radius": lambda **how: radius_graph(rows, 1.0, limits=limits, **how),
        "metric": lambda **how: radius_graph(rows, 1.0, metric="manhattan", limits=limits, **how),
        "nearest": lambda **how: nearest_graph(rows, 9, limits=limits, **how),
    }[kind]
    said = []
    found = make(watch=said.append)
    assert len(said) > 3
    assert 0 < said[0] < 1 == said[-1]
    assert (np.diff(said) >= 0).all()
    assert np.array_equal(dense(found), dense(make()))


@pytest.mark.parametrize("pairs", [3, 400])
def test_pairs_that_come_a_few_at_a_time(pairs):
    rng = np.random.default_rng(7)
    edges, near = Edges(100, GraphLimits()), np.zeros((100, 100), dtype=bool)
    for _ in range(4):
        i, j = rng.integers(0, 100, (2, pairs))
        edges.add(i, j)
        near[i, j] = near[j, i] = True
    np.fill_diagonal(near, False)
    assert (edges._store is None) == (pairs == 3)
    assert np.array_equal(dense(edges.graph()), near)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.coo_matrix])
def test_a_given_graph_is_made_symmetric_and_loses_its_diagonal(make):
    edges = np.array([[1, 1, 0], [0, 0, 0], [0, 2, 0]])
    found = given_graph(make(edges), 3)
    assert np.array_equal(dense(found), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert given_graph(found, 3) is found


def test_wrong_graphs_and_radii_are_refused(rows):
    with pytest.raises(ValueError, match=r"shape \(3, 3\)"):
        given_graph(np.eye(2), 3)
    with pytest.raises(ValueError, match="graph has 203 rows, but X has 3"):
        given_graph(radius_graph(rows, 1.0), 3)
    for radius in (-1.0, np.nan):
        with pytest.raises(ValueError, match="radius must be"):
            radius_graph(rows, radius)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        nearest_graph(rows, 0)


def test_equal_rows_are_neighbours_by_any_metric():
    X = np.vstack([np.zeros((4, 2)), np.eye(2)])  # by cosines, zeros are far from themselves
    graph = dense(nearest_graph(X, 3, metric="cosine"))
    assert np.array_equal(graph[:4, :4], ~np.eye(4, dtype=bool))
    weighted = dense(nearest_graph(X[3:], 3, np.array([4.0, 1.0, 1.0]), metric="cosine"))
    assert np.array_equal(weighted, graph[3:, 3:])


@pytest.mark.parametrize("sparsely", [False, True])
def test_equal_rows_do_not_lengthen_the_lists_of_the_nearest(sparsely, monkeypatch):
    rng = np.random.default_rng(6)
    values = rng.standard_normal((16, 3))
    which = rng.integers(16, size=300)
    X = sparse.csr_matrix(values[which]) if sparsely else values[which]
    asked, plain = [], NearestNeighbors.kneighbors

    def kneighbors(self, X, n_neighbors):
        asked.append(X.shape[0] * n_neighbors)
        return plain(self, X, n_neighbors)

    monkeypatch.setattr(NearestNeighbors, "kneighbors", kneighbors)
    graph = nearest_graph(X, 40)
    assert sum(asked) <= 2 * 16**2
    far = cdist(values, values)[which][:, which]
    near = far <= np.sort(far, axis=1)[:, [40]]  # the row itself comes first
    assert np.array_equal(dense(graph), (near | near.T) & ~np.eye(300, dtype=bool))


def test_the_automatic_radius_has_the_share_that_was_asked_for(rows):
    for share in (0.01, 0.05, 0.3):
        found = radius_graph(rows, auto_radius(rows, share=share))
        assert found.share == pytest.approx(share, abs=2e-4)
    many = np.random.default_rng(3).standard_normal((3000, 3))
    assert radius_graph(many, auto_radius(many)).share == pytest.approx(0.05, rel=0.1)


def test_the_automatic_radius_takes_weights_for_repeated_rows(rows):
    rows = rows[:40]
    weight = np.random.default_rng(4).integers(1, 4, len(rows))
    repeated = auto_radius(np.repeat(rows, weight, axis=0))
    assert auto_radius(rows, weight) == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("m", [300, 700, 1300])
def test_the_same_where_only_some_copies_are_looked_at(m):
    rng = np.random.default_rng(5)
    rows, weight = rng.standard_normal((m, 2)), rng.integers(0, 6, m)
    repeated = auto_radius(np.repeat(rows, weight, axis=0))
    assert auto_radius(rows, weight) == pytest.approx(repeated, rel=1e-12)
    small = auto_radius(rows, np.full(m, 1e-6)), auto_radius(rows)
    assert small[0] == pytest.approx(small[1], rel=1e-12 if m > 1000 else 0.01)


@pytest.mark.parametrize("size", [1e-200, 1e160])
def test_the_size_of_the_weights_does_not_take_the_automatic_radius_away(rows, size):
    found = auto_radius(rows, np.full(len(rows), size))
    assert found == pytest.approx(auto_radius(rows), rel=0.1)


def test_a_graph_says_what_it_is(rows):
    assert (
        repr(radius_graph(rows, np.inf)) == "NeighbourGraph(203 rows, 100 % of pairs, 0.00528 MB)"
    )
    assert isinstance(radius_graph(rows[:1], 1.0), NeighbourGraph)


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 0.6])
def test_the_same_small_weight_for_many_rows_leaves_the_radius(weight):
    X = np.random.default_rng(0).standard_normal((1500, 2))
    assert auto_radius(X, np.full(1500, weight)) == auto_radius(X)


def test_the_order_of_many_rows_does_not_change_the_automatic_radius():
    rng = np.random.default_rng(6)
    X, weight = rng.standard_normal((700, 3)), rng.integers(0, 5, 700)
    rows = rng.permutation(np.repeat(np.arange(700), weight))
    assert len(rows) > 1000
    some = weight > 0
    weighted = auto_radius(X[some], weight[some])
    assert auto_radius(X[rows]) == pytest.approx(weighted, rel=1e-12)
    assert weighted == pytest.approx(auto_radius(X[rows[:1000]]), rel=0.05)

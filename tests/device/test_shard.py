"""A shard on a device answers every question as the shard in memory does.

All tests run on torch's processor device, and again on a GPU if there is one.
"""

import numpy as np
import pytest
import torch
from stand_in import bind

from laconic.correct import Newton
from laconic.device.hessians import even_steps
from laconic.device.shard import DeviceShard, on_device
from laconic.device.signs import as_device_signs
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.numeric.threads import Threads
from laconic.penalties import find_penalty
from laconic.pools import Columns, Products, Stumps, bind_parts
from laconic.pools.signs import as_signs
from laconic.rows import curvature
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows
from laconic.rows.shard import Shard, in_memory
from laconic.rows.together import Together

POOLS = {
    "columns": Columns(),
    "groups": Columns("std", groups=[[0, 1], [2, 5], [3, 4]]),
    "products": Products(),
    "stumps": Stumps(5),
    "signs": Stumps(5),
}
ATOMS = {"groups": [0, 2]}


def problem(dtype=np.float64, n_rows=2500, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 6)).astype(dtype)
    y = np.argmax(X[:, :classes] + 0.3 * rng.gumbel(size=(n_rows, classes)), axis=1)
    weight = rng.random(n_rows) + 0.5
    return X, y, weight / weight.sum()


def two(name, loss, dtype, device, limits=None, **settings):
    """The shard in memory and the one on a device, for the same rows."""
    binary = loss in BINARY_LOSSES
    X, y, weight = problem(dtype, classes=2 if binary else 3, **settings)
    made = (BINARY_LOSSES if binary else LOSSES)[loss]()
    k, threads = made.n_outputs(2 if binary else 3), Threads(1)
    [bound] = bind_parts(POOLS[name], [(X, weight)], threads)
    own = bind(POOLS[name], *(torch.from_numpy(a).to(device) for a in (X, weight)), threads)
    if name == "signs":
        bound, own = as_signs(bound), as_device_signs(own)
    codes, weights = (torch.from_numpy(a).to(device) for a in (y, weight))
    return (
        in_memory(bound, made, y, weight, k, threads, limits),
        on_device(own, made, codes, weights, k, limits),
    )


def evaluated(name, loss, dtype, device, limits=None, **settings):
    """Both shards with a constant and some atoms, at the same weights."""
    shards = two(name, loss, dtype, device, limits, **settings)
    for shard in shards:
        shard.put_constant()
        shard.take(shard.offer(ATOMS.get(name, [3, 1, 4])))
    rng = np.random.default_rng(1)
    W = 0.5 * rng.standard_normal((shards[0].n_columns, shards[0].n_outputs))
    values = [shard.evaluate(W) for shard in shards]
    return *shards, rng, values


def close(found, known, dtype):
    assert type(found) is type(known)
    size = np.abs(known).max() if np.size(known) else 0.0
    np.testing.assert_allclose(found, known, rtol=0, atol=size * 4e3 * np.finfo(dtype).eps)


both = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["single", "double"])
names = pytest.mark.parametrize("name", POOLS)
losses = pytest.mark.parametrize("loss", [*LOSSES, *BINARY_LOSSES])


@names
@both
def test_columns_class_sums_and_gram(name, dtype, device):
    shard, own = two(name, "log", dtype, device)
    close(own.class_shares(), shard.class_shares(), np.float32)
    for answer in (lambda s: s.put_constant(), lambda s: s.take(s.offer(ATOMS.get(name, [2])))):
        for found, known in zip(answer(own), answer(shard), strict=True):
            close(found, known, dtype)
    assert own.n_columns == shard.n_columns
    for each in (shard, own):
        each.cut(1, 0)
        each.offer(ATOMS.get(name, [1, 0, 4]))
    n_new = own._coming.shape[0]
    for found, known in zip(own.take(np.full(n_new, 0.1)), shard.take(np.full(n_new, 0.1)),
                            strict=True):  # fmt: skip
        close(found, known, dtype)
    assert own.unlike()[0] == 0
    with pytest.raises(TypeError, match="local"):
        own.put_local(0)


@names
@both
@losses
def test_answers_at_weights(name, loss, dtype, device):
    every_row = Limits(preconditioner_rows=1000)
    shard, own, rng, values = evaluated(name, loss, dtype, device, every_row)
    assert values[1][0] == pytest.approx(values[0][0], rel=64 * float(np.finfo(dtype).eps))
    close(values[1][1], values[0][1], dtype)
    V = rng.standard_normal((shard.n_columns, shard.n_outputs))
    close(own.curve(V), shard.curve(V), dtype)
    t = rng.standard_normal(shard.n_columns)
    close(own.gram_product(t), shard.gram_product(t), dtype)
    close(own.residual_of_all_rows(), shard.residual_of_all_rows(), dtype)
    face = rng.random((shard.n_columns, shard.n_outputs)) < 0.7
    close(own.hessian(face), shard.hessian(face), dtype)
    for found, known in zip(own.hessian_blocks(), shard.hessian_blocks(), strict=True):
        close(found, known, dtype)
    for question in (lambda s: s.gradients(), lambda s: s.along(t)):
        for (at, found), (first, known) in zip(question(own), question(shard), strict=True):
            assert at == first
            close(found, known, dtype)
    close(own.squares(), shard.squares(), dtype)
    for costs in (None, np.linspace(1, 2, shard.pool.n_atoms)):
        found = own.best(np.array([1]), None, costs)
        known = shard.best(np.array([1]), None, costs)
        assert found.index == known.index
        assert found.score == pytest.approx(known.score, rel=1e-4)
        assert found.steepest == pytest.approx(known.steepest, rel=1e-4)
    length = 1.0 + rng.random(shard.pool.n_columns)
    none = np.empty(0, dtype=int)
    assert own.best(none, length, None).index == shard.best(none, length, None).index
    np.testing.assert_array_equal(own.labels_of_all_rows()[0], shard.labels_of_all_rows()[0])
    close(own.labels_of_all_rows()[1], shard.labels_of_all_rows()[1], dtype)
    close(own.columns_of_all_rows([0]), np.asarray(shard.columns_of_all_rows([0])), dtype)


@pytest.mark.parametrize("keep", [False, True])
@both
def test_trials_leave_the_shard_as_it_is(keep, dtype, device):
    shard, own, rng, _ = evaluated("columns", "margin", dtype, device)
    before = own.residual_of_all_rows()
    trials = [s.trial(keep) for s in (shard, own)]
    for trial in trials:
        trial.take(np.zeros_like(trial.offer([5])))
    W = rng.standard_normal((trials[0].n_columns, 3))
    known, found = (trial.evaluate(W) for trial in trials)
    assert found[0] == pytest.approx(known[0], rel=1e-5)
    close(found[1], known[1], dtype)
    np.testing.assert_array_equal(own.residual_of_all_rows(), before)
    assert own.n_columns == shard.n_columns


def test_two_runs_give_the_same_bits(device):
    def bits():
        _, own, rng, values = evaluated("products", "log", np.float32, device)
        V = rng.standard_normal((own.n_columns, 3))
        answers = [values[1][1], own.curve(V), *own.hessian_blocks(), own.squares()]
        return [answer.tobytes() for answer in answers]

    assert bits() == bits()


def test_columns_are_summed_alike_alone_and_together(device):
    """A resumed fit adds many columns at once that were added one by one."""
    _, own = two("products", "log", np.float32, device)
    together = own.offer([0, 5, 9])
    assert together.tolist() == [own.offer([atom])[0] for atom in (0, 5, 9)]


@pytest.mark.parametrize("loss", ["log", "logistic"])
def test_preconditioner_of_some_rows_is_near_that_of_all(loss, device):
    some, whole = (
        evaluated("columns", loss, np.float32, device, Limits(preconditioner_rows=rows),
                  n_rows=20_000)[1].hessian_blocks()[0]
        for rows in (100, 10_000)
    )  # fmt: skip
    size = np.sqrt(np.einsum("cii->ci", whole))
    assert np.abs((some - whole) / (size[:, :, None] * size[:, None])).max() < 0.1


def test_even_steps_are_those_of_arrays(device):
    bends = np.random.default_rng(0).random((3, 5000)) ** 8
    given = torch.from_numpy(bends).to(device)
    found = even_steps(given, given.sum(1), 40)
    known = [curvature.even_steps(bend, 0.0, bend.sum() / 40) for bend in bends]
    np.testing.assert_array_equal(found.cpu(), known)


def test_rows_without_curvature_have_no_hessian(device):
    limits = Limits(preconditioner_rows=8)
    _, own, _, _ = evaluated("columns", "squared_hinge", np.float64, device, limits, n_rows=5000)
    own._state.zero_()
    assert not own.hessian_blocks()[0].any()


def test_hessian_of_a_large_face_is_left_to_products(device):
    _, own, _, _ = evaluated("columns", "log", np.float64, device, Limits(face=3))
    assert own.hessian(np.ones((4, 3), dtype=bool)) is None


@both
@losses
def test_a_solve_ends_at_the_optimum_of_the_processor(loss, dtype, device):
    penalty = find_penalty("l2", 1e-4, 20.0)
    found = []
    for shard in two("products", loss, dtype, device):
        rows = Rows(Together([shard]) if isinstance(shard, Shard) else shard)
        for atom in (0, 7, 3, 12):
            rows.append(atom)
        found.append(Newton(1e-8).solve(rows, penalty, rows.padded(None)))
    gaps = found[0].certificate.gap + found[1].certificate.gap
    rounding = 1e-6 if dtype == np.float32 else 1e-14
    assert abs(found[0].value - found[1].value) <= gaps + rounding
    assert found[1].certificate.converged


def test_rows_know_every_method_of_a_shard(device):
    _, own = two("columns", "log", np.float64, device)
    assert isinstance(own, DeviceShard)
    rows = Rows(own)
    rows.reset([3, 1])
    rows.evaluate(np.zeros((3, 3)))
    assert rows.adds_nothing(1) is False
    spans = [list(blocks) for blocks in rows.span_sums(0)]
    assert len(spans) == 3

"""Budgets: features paid once, sensors, and caps on features, operations and bytes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from laconic import ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost import measures
from laconic.export.footprint import CHIP_NAMES, Target, footprint
from laconic.model.atoms import Column
from laconic.model.cost import model_cost
from laconic.numeric.threads import Threads
from laconic.pools import Bumps, Columns, Hinges, Patches, Pieces, Products, Rules, Stumps
from problems import random_problem, saving_always, seeds

D = 9
POOLS = {
    "columns": Columns(),
    "groups": Columns(groups=[0, 0, 1, 1, 1, 2, 3, 4, 4]),
    "stumps": Stumps(bins=4),
    "products": Products(),
    "rules": Rules(cuts=2),
    "pieces": Pieces(n_centres=5, n_radii=3),
    "bumps": Bumps(n_centres=5, n_radii=3),
    "hinges": Hinges(n_directions=D, n_knots=2, n_inputs=3),
    "patches": Patches((3, 3), 4, 2, 2, (0.6, 1.0), random_state=0),
}
SINGLE = ("columns", "stumps", "products", "rules")  # pools without groups of columns


@pytest.fixture(scope="module")
def data():
    X, y = random_problem(seed=5, m=150, d=D, k=3)
    return X - X.min(axis=0), y


def bound(pool, X):
    return POOLS[pool].bind(X, np.full(len(X), 1 / len(X)), Threads(1))


def used(bound, numbers, k, sensors=None):
    """What a model of these atoms uses of every cap."""
    return used_by(bound.extract(numbers), [bound.atom(n) for n in numbers], k, sensors)


def used_by(map, atoms, k, sensors=None):
    """What a model uses of every cap, from its feature map and the records of its atoms."""
    columns = sum(atom.width for atom in atoms)
    cost = model_cost(map, len(atoms), np.ones((columns, k)), np.ones(k))
    paid = len(atoms)
    if sensors is not None:
        read = {feature for atom in atoms for feature in atom.reads}
        paid = sum(price for features, price in sensors.items() if read & set(features))
    return {
        "max_cost": paid,
        "max_features": cost.features,
        "max_operations": cost.operations,
        "max_bytes": footprint(map, k, Target("c99", 8, "float"), D),
    }


def within(have, caps):
    return all(have[name] <= most * (1 + 1e-12) for name, most in caps.items())


def random_caps(rng, alone, whole):
    """One to three caps between what one atom takes and what many take."""
    names = rng.choice(list(alone), rng.integers(1, 4), replace=False)
    share = {name: rng.uniform(0.1, 0.8) for name in names}
    return {n: int(alone[n] + part * (whole[n] - alone[n])) + 1 for n, part in share.items()}


# -- the loop against a naive one ------------------------------------------------------------------


def naive_path(bound, X, y, model, caps, sensors):
    """Choose every next atom by the gradient at the path's own models and by the cost of sets."""
    k, every = 3, np.arange(bound.n_atoms)
    columns = bound.columns(every.tolist())
    found = []
    for entry in model.path_:
        scores = entry.scores(X)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        residual = (np.arange(k) == y[:, None]) - p / p.sum(axis=1, keepdims=True)
        score = np.abs((columns - columns.mean(axis=0)).T @ residual).sum(axis=1) / len(y)
        if sensors is not None:
            spent = used(bound, entry.numbers, k, sensors)["max_cost"]
            more = [used(bound, [*entry.numbers, n], k, sensors)["max_cost"] for n in every]
            score = (score / 2) ** 2 / np.maximum(np.array(more) - spent, min(sensors.values()))
        fits = [within(used(bound, [*entry.numbers, n], k, sensors), caps) for n in every]
        score[list(entry.numbers)] = -1.0
        score[~np.array(fits)] = -1.0
        found.append(int(np.argmax(score)) if score.max() > 0 else None)
    return found


@pytest.mark.parametrize("seed", seeds(2, 6))
@pytest.mark.parametrize("pool", SINGLE)
def test_the_loop_chooses_as_a_naive_loop_does(data, pool, seed):
    X, y = data
    rng, own = np.random.default_rng(seed), bound(pool, X)
    sensors = None
    if seed % 2:
        sensors = {(0, 4): 3.0, (1,): 0.5, (2, 5, 8): 2.0, (3,): 1.0, (6,): 1.0, (7,): 1.0}
    alone, whole = used(own, [0], 3, sensors), used(own, range(9), 3, sensors)
    caps = random_caps(rng, alone, whole)
    model = ShareBoostClassifier(8, pool=POOLS[pool], loss="log", costs=sensors, tol=1e-9, **caps)
    path = model.fit(X, y).path_
    *expected, last = naive_path(own, X, y, model, caps, sensors)
    assert list(path.entries[-1].numbers) == expected
    if len(expected) < 8:
        assert last is None
        assert model.status_ == "no admissible atom is left that helps within the caps"


@pytest.mark.parametrize("pool", SINGLE)
def test_permuted_features_give_the_permuted_answer(data, pool):
    X, y = data
    order = np.random.default_rng(0).permutation(D)
    place = {int(feature): number for number, feature in enumerate(order)}
    sensors = {(0, 4): 3.0, (1,): 0.7, (2, 5, 8): 2.1}
    moved = {tuple(place[f] for f in features): price for features, price in sensors.items()}
    settings = {"pool": POOLS[pool], "max_cost": 5.2, "max_operations": 40}
    one = ShareBoostClassifier(9, costs=sensors, **settings).fit(X, y)
    two = ShareBoostClassifier(9, costs=moved, **settings).fit(X[:, order], y)
    read = [{place[f] for f in atom.reads} for atom in one.atoms_]
    assert read == [set(atom.reads) for atom in two.atoms_]
    assert one.path_.costs.tolist() == two.path_.costs.tolist()


# -- caps that are never exceeded ------------------------------------------------------------------


def check_path(model, caps, sensors=None):
    """Every entry keeps the caps, and knows what its predictor costs."""
    k = len(model.intercept_)
    for entry in model.path_:
        have = used_by(entry.map, entry.atoms, k, sensors)
        assert within(have, caps), (have, caps)
        assert entry.cost == pytest.approx(have["max_cost"], rel=1e-12)
        assert entry.predictor_cost == model.at(entry.size).predictor_.cost()
        expected = have["max_bytes"] if "max_bytes" in caps else None
        assert entry.footprint == expected
    costs = [entry.predictor_cost for entry in model.path_]
    assert model.path_.features.tolist() == [cost.features for cost in costs]
    assert model.path_.operations.tolist() == [cost.operations for cost in costs]
    assert model.path_.bytes.tolist() == [cost.bytes for cost in costs]


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("pool", POOLS)
def test_shareboost_keeps_every_cap(data, pool, seed):
    X, y = data
    rng, own = np.random.default_rng(seed), bound(pool, X)
    sensors = {(n,): 1.0 for n in range(2, D)} | {(0, 1): 2.5} if rng.random() < 0.5 else None
    many = range(min(6, own.n_atoms))
    caps = random_caps(rng, used(own, [0], 3, sensors), used(own, many, 3, sensors))
    settings = {"refine": bool(seed % 2), "costs": sensors}
    if rng.random() < 0.3:
        settings |= {"early_stopping": True, "random_state": 0}
    elif rng.random() < 0.3:
        settings |= {"cv": 3}
    elif rng.random() < 0.5:
        settings["include"] = [own.atom(0)]
    model = ShareBoostClassifier(6, pool=POOLS[pool], **settings, **caps).fit(X, y)
    check_path(model, caps, sensors)


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("pool", POOLS)
def test_totalqboost_keeps_every_cap(data, pool, seed):
    X, y = data
    rng, own = np.random.default_rng(seed), bound(pool, X)
    two = seed % 2
    y, k = (np.minimum(y, 1), 1) if two else (y, 3)
    sensors = {(n,): 1.0 for n in range(2, D)} | {(0, 1): 2.5} if rng.random() < 0.4 else None
    many = range(min(6, own.n_atoms))
    caps = random_caps(rng, used(own, [0], k, sensors), used(own, many, k, sensors))
    settings = {
        "price": float(rng.choice([0.0, 1e-3, 0.02])),
        "l1": 1e-3,
        "search": None if rng.random() < 0.2 else "local",
        "hot_start": int(rng.choice([0, 0, 4, 20])),
        "costs": sensors,
    }
    rounds = 8
    if pool == "pieces":  # its atoms have many weights
        rounds, settings["hot_start"] = 4, min(settings["hot_start"], 4)
    if rng.random() < 0.3:
        settings["include"] = [own.atom(0)]
    if pool == "stumps" and two and rng.random() < 0.5:
        settings |= {"search": "exact", "costs": None, "include": None}
        sensors = None
        caps = {name: most for name, most in caps.items() if name != "max_cost"}
    model = TotalQBoostClassifier(rounds, pool=POOLS[pool], **settings, **caps).fit(X, y)
    check_path(model, caps, sensors)
    if not settings["hot_start"]:
        assert all(within(used(own, e.numbers, k, sensors), caps) for e in model.rounds_)
    others = TotalQBoostClassifier(rounds, pool=POOLS[pool], **settings, **caps)
    for other in others.fit_path(X, y, price=[0.01, 1e-3]):
        check_path(other, caps, sensors)


@pytest.mark.parametrize("search", ["exact", "tabu", "anneal"])
@pytest.mark.parametrize("caps", [{"max_features": 2}, {"max_bytes": 900, "max_cost": 3}], ids=str)
def test_every_search_keeps_the_caps(data, search, caps):
    if search != "exact":
        pytest.importorskip("dwave.samplers")
    X, y = data
    settings = {"price": 1e-3, "hot_start": 6, "l1": 1e-3}
    model = TotalQBoostClassifier(9, search=search, **settings, **caps).fit(X, (y > 0).astype(int))
    assert model.n_atoms_ > 0
    for entry in model.path_:
        cost = entry.predictor_cost
        assert cost.features <= caps.get("max_features", 99)
        assert cost.atoms <= caps.get("max_cost", 99)
        assert (entry.footprint or 0) <= caps.get("max_bytes", 0)


def test_a_fit_that_is_stopped_in_its_hot_start_keeps_the_caps(data):
    X, y = data
    stop = [lambda state: len(state.own.generated) >= 5]
    model = TotalQBoostClassifier(9, hot_start=8, max_features=2, callbacks=stop).fit(X, y)
    assert model.rounds_[-1].predictor_cost.features > 2
    assert model.predictor_.cost().features <= 2
    assert model.path_.features.max() <= 2


def test_atoms_of_weight_zero_count_if_nothing_is_dropped(data):
    """They may get a weight in a later round."""
    X, y = data
    model = TotalQBoostClassifier(
        9, search=None, l1=0.02, price=0.0, max_features=3, pool="columns"
    ).fit(X, y)
    assert len(model.generated_) == 3
    assert all(entry.predictor_cost.features <= 3 for entry in model.rounds_)


# -- what a cap means ------------------------------------------------------------------------------


def test_a_cap_on_features_lets_more_atoms_read_the_same_features(data):
    X, y = data
    free = ShareBoostClassifier(12, pool="stumps").fit(X, y)
    capped = ShareBoostClassifier(12, pool="stumps", max_features=2).fit(X, y)
    assert free.predictor_.cost().features > 2
    assert capped.predictor_.cost().features == 2
    assert capped.n_atoms_ == 12
    same = next(k for k, entry in enumerate(free.path_) if entry.predictor_cost.features > 2)
    assert capped.path_.entries[same - 1].atoms == free.path_.entries[same - 1].atoms


@pytest.mark.parametrize("price", [0.0, 1e-3])
def test_candidates_without_room_do_not_keep_others_out(data, price):
    """Most of the steepest stumps read a third feature. The model may not, and still grows."""
    X, y = data
    model = TotalQBoostClassifier(20, price=price, max_atoms=6, max_features=2).fit(X, y)
    assert (model.n_atoms_, model.predictor_.cost().features) == (6, 2)


def test_caps_that_are_wide_enough_change_nothing(data, assert_identical):
    X, y = data
    wide = {"max_features": 99, "max_operations": 1e9, "max_bytes": 10**9, "max_cost": 1e9}
    for pool in ("columns", "stumps", "products"):
        one, two = (ShareBoostClassifier(5, pool=pool, **caps).fit(X, y) for caps in ({}, wide))
        assert_identical(one, two)
    one, two = (TotalQBoostClassifier(5, price=0.01, **caps).fit(X, y > 0) for caps in ({}, wide))
    assert_identical(one, two)


def test_a_second_atom_of_a_feature_costs_nothing(data):
    X, y = data
    costs = np.arange(1.0, D + 1)
    model = ShareBoostClassifier(15, pool="stumps", costs=costs).fit(X, y)
    for entry in model.path_:
        assert entry.cost == sum(costs[f] for f in {atom.feature for atom in entry.atoms})
    assert len(set(np.diff(model.path_.costs).tolist()) & {0.0}) == 1


def test_a_sensor_is_bought_once(data):
    """Features 0 to 3 come for 4 together; alone, each would be dearer than the cap."""
    X, y = data
    model = ShareBoostClassifier(9, costs={(0, 1, 2, 3): 4.0}, max_cost=4.0).fit(X, y)
    read = {atom.feature for atom in model.atoms_}
    assert read == {0, 1, 2, 3} or (len(read) == 4 and not read & {0, 1, 2, 3})
    assert model.path_.costs[-1] == 4.0
    alone = ShareBoostClassifier(9, costs={(0, 1, 2, 3): 4.0}, exclude=[*range(4, D)]).fit(X, y)
    assert alone.path_.costs.tolist() == [0, 4, 4, 4, 4]


def test_equal_prices_rank_stumps_as_no_prices(data):
    X, y = data
    plain, equal = (
        ShareBoostClassifier(12, pool="stumps", costs=costs).fit(X, y)
        for costs in (None, np.full(D, 7.0))
    )
    assert plain.atoms_ == equal.atoms_


def test_price_is_for_the_features_that_a_model_reads(data):
    X, y = data
    costs = np.linspace(1.0, 2.0, D)
    model = TotalQBoostClassifier(12, pool="stumps", price=0.01, costs=costs).fit(X, y)
    entry = model.path_[model.n_atoms_]
    read = {atom.feature for atom in model.atoms_}
    assert len(read) < model.n_atoms_
    paid = 0.01 * sum(costs[f] for f in read)
    assert model.objective_ == pytest.approx(entry.objective + paid)
    assert model.bound_ <= model.objective_


def test_features_of_atoms_that_are_always_in_are_paid(data):
    X, y = data
    model = ShareBoostClassifier(
        9, include=[Column(0), Column(3)], costs={(0, 1): 2.0}, max_cost=4.0
    ).fit(X, y)
    assert model.path_.costs[0] == 3.0
    assert {atom.feature for atom in model.atoms_} > {0, 1, 3}
    assert model.path_.costs[-1] <= 4.0


# -- chips -----------------------------------------------------------------------------------------


@pytest.fixture
def targets(monkeypatch):
    """All targets that bytes are counted for."""
    seen = set()

    def remembered(map, n_outputs, target, *shape):
        seen.add(target)
        return footprint(map, n_outputs, target, *shape)

    monkeypatch.setattr(measures, "footprint", remembered)
    return seen


@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "uint16", "float32", "float64", "bool"])
@pytest.mark.parametrize("frame", [False, True])
def test_inputs_have_the_type_of_the_training_rows(data, targets, kind, frame):
    X, y = data
    X = (60 * X).astype(kind)
    X = pd.DataFrame(X, columns=[f"a{n}" for n in range(D)]) if frame else X
    ShareBoostClassifier(3, max_bytes=10_000, chip="avr", cv=3).fit(X, y)
    raw = kind if kind in ("uint8", "int8", "int16") else "float"
    assert targets == {Target("avr", 8, raw)}


def test_a_target_is_used_as_it_is(data, targets):
    X, y = data
    target = Target("rv32", 16, "int8")
    TotalQBoostClassifier(3, max_bytes=10_000, chip=target).fit(X, y)
    assert targets == {target}
    assert clone(TotalQBoostClassifier(chip=target)).chip == target
    mixed = pd.DataFrame({"a": X[:, 0], "b": np.arange(len(y), dtype=np.uint8) % 7})
    targets.clear()
    ShareBoostClassifier(2, max_bytes=10_000).fit(mixed, y)
    ShareBoostClassifier(2, max_bytes=10_000).fit(mixed[["b"]].to_numpy().tolist(), y)
    assert targets == {Target("c99", 8, "float")}


def test_bytes_are_not_counted_without_a_cap(data, targets):
    model = ShareBoostClassifier(3, chip="avr").fit(*data)
    assert targets == set()
    with pytest.raises(AttributeError, match="set max_bytes and chip"):
        model.path_.footprints  # noqa: B018
    capped = ShareBoostClassifier(3, max_bytes=1500).fit(*data)
    assert 300 < capped.path_.footprints.max() <= 1500


# -- resumed fits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
def test_a_resumed_fit_keeps_the_caps(data, tmp_path, booster, assert_identical):
    X, y = data
    caps = {"max_features": 3, "max_bytes": 900, "max_operations": 60, "max_cost": 5.0}
    settings = {"pool": "stumps", "costs": {(0, 1): 2.0}, **caps}
    path = tmp_path / "state"
    stop = [lambda state: len(state.entries) > 3]
    saving_always(booster(9, checkpoint=path, callbacks=stop, **settings)).fit(X, y)
    resumed = booster(9, checkpoint=path, **settings).fit(X, y)
    whole = booster(9, **settings).fit(X, y)
    assert whole.n_atoms_ > 1
    assert_identical(resumed, whole)
    assert resumed.path_.footprints.tolist() == whole.path_.footprints.tolist()
    for name in caps:
        with pytest.raises(ValueError, match="other data or settings"):
            booster(9, checkpoint=path, **{**settings, name: 999}).fit(X, y)
    with pytest.raises(ValueError, match="other data or settings"):
        booster(9, checkpoint=path, chip="avr", **settings).fit(X, y)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_features": 0}, "max_features"),
        ({"max_features": 1.5}, "max_features"),
        ({"max_operations": 0}, "max_operations"),
        ({"max_bytes": -1}, "max_bytes"),
        ({"max_bytes": "1k"}, "max_bytes"),
        ({"chip": "avrr"}, r"chip must be one of 'c99', 'avr'.*Did you mean 'avr'\?"),
        ({"chip": Target("c99", 8, "int32")}, "inputs must be one of 'auto', 'float'"),
        ({"max_bytes": 9}, r"without any atom would take \d+ bytes, \d+ more than max_bytes=9"),
        ({"costs": {(): 1.0}}, "sensor without features"),
        ({"costs": {(0, 1): 1.0, 1: 2.0}}, "costs names 1 more than once"),
        ({"costs": {(0, 1): 1.0, (1, 2): 2.0}}, "costs names 1 more than once"),
        ({"costs": {(0, 1): 1.0, (1, 0): 2.0}}, "costs names 0 more than once"),
        ({"costs": {(0, 0): 1.0}}, "costs names 0 more than once"),
        ({"costs": {(0, 99): 1.0}}, "costs names 99, which is not a feature"),
        ({"costs": {(0, 1): 0.0}}, "costs must be positive"),
        ({"costs": {("a", "b"): 1.0}}, "costs have names"),
    ],
)
def test_wrong_budgets_are_refused(data, booster, settings, words):
    with pytest.raises(ValueError, match=words):
        booster(3, **settings).fit(*data)


def test_a_chip_is_a_name_or_a_target(data):
    for chip in (None, 8, ("avr",)):
        with pytest.raises(TypeError, match=r"chip must be one of 'c99'.*or a Target, not"):
            ShareBoostClassifier(3, chip=chip).fit(*data)
    for chip in CHIP_NAMES:
        ShareBoostClassifier(1, chip=chip, max_bytes=5000).fit(*data)


@pytest.mark.parametrize("booster", [ShareBoostClassifier, TotalQBoostClassifier])
@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ({"max_cost": 2}, "cost 3, 1 more than max_cost=2"),
        ({"max_features": 1}, "read 3 features, 2 more than max_features=1"),
        ({"max_operations": 8.5}, "take 9 operations, 0.5 more than max_operations=8.5"),
        ({"max_bytes": 60}, r"take \d+ bytes, \d+ more than max_bytes=60"),
    ],
)
def test_atoms_that_are_always_in_must_fit(data, booster, cap, words):
    with pytest.raises(ValueError, match=f"the atoms of include {words}"):
        booster(9, pool="columns", include=[0, 3, 5], **cap).fit(*data)


@pytest.mark.parametrize("name", ["max_features", "max_operations", "max_bytes"])
def test_a_classifier_as_pool_has_no_caps(data, name):
    X, y = data
    tree = DecisionTreeClassifier(max_depth=1)
    with pytest.raises(ValueError, match=f"{name} needs atoms with numbers"):
        TotalQBoostClassifier(pool=tree, **{name: 5}).fit(X, y > 0)


@pytest.mark.parametrize("cap", [{"max_operations": 50}, {"max_bytes": 5000}])
def test_a_budget_of_a_pool_without_atoms(cap):
    with pytest.warns(UserWarning, match="no atom helps"):
        model = ShareBoostClassifier(3, pool="stumps", **cap).fit(np.ones((20, 3)), [0, 1] * 10)
    assert model.n_atoms_ == 0


def test_caps_into_which_no_atom_fits_are_named(data):
    X, y = data
    tight = r"A model of one atom would read 2 features, more than max_features=1\. Raise max_feat"
    with pytest.warns(UserWarning, match=tight):
        ShareBoostClassifier(3, pool="products", max_features=1).fit(X, y)
    with pytest.warns(UserWarning, match=tight) as told:
        TotalQBoostClassifier(3, pool="products", max_features=1, max_bytes=9000).fit(X, y)
    assert "max_bytes" not in str(told[0].message)
    full = r"one atom would take \d+ bytes, more than max_bytes=600.*give X in that type"
    with pytest.warns(UserWarning, match=full):
        ShareBoostClassifier(3, pool="products", max_bytes=600, chip="avr").fit(X, y)


def test_sensors_by_name(data, assert_identical):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    named = {("a", "c"): 3.0, "b": 2.0}
    numbered = {(0, 2): 3.0, 1: 2.0}
    settings = {"max_cost": 5.0, "cv": 3}
    one = ShareBoostClassifier(6, costs=named, **settings).fit(frame, y)
    # Numbers of frames are in the order of columns. BLAS may round other orders otherwise.
    by_columns = np.asfortranarray(X)
    assert_identical(one, ShareBoostClassifier(6, costs=numbered, **settings).fit(by_columns, y))
    with pytest.raises(ValueError, match="costs names 'b' more than once"):
        ShareBoostClassifier(2, costs={("a", "b"): 1.0, "b": 2.0}).fit(frame, y)
    with pytest.raises(ValueError, match=r"'alpha', which is not a feature of X"):
        ShareBoostClassifier(2, costs={("a", "alpha"): 1.0}).fit(frame, y)

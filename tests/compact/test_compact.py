"""CompactClassifier: budgets are kept, scores are those of what ships, searches can be repeated."""

import pickle
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from laconic import CompactClassifier, Predictor, ShareBoostClassifier
from laconic.compact import search as search_module
from laconic.compact.checked import random_rows
from laconic.compact.trials import Form, promised_bytes
from laconic.export.chips import find_chip, is_installed, measure
from laconic.export.footprint import Target
from laconic.model.choose_codes import TooWide

FEW = {"pools": ["columns", "stumps"], "alphas": ["auto"], "max_atoms": 12, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500].astype(np.uint8), y[:500]


@pytest.fixture(scope="module")
def model(digits):
    return CompactClassifier(700, **FEW).fit(*digits)


def table(frame):
    return frame.to_dict("records")


def test_the_budget_is_kept_by_every_model_of_the_frontier(model):
    assert model.bytes_ <= 700
    for point in model._models:
        integers = point.predictor.integers
        target = Target("cortex-m0", integers.bits, integers.inputs.given)
        assert promised_bytes(point.predictor, target) == point.bytes <= 700


@pytest.mark.chips
@pytest.mark.parametrize("chip", ["avr", "cortex-m0", "rv32"])
def test_the_linked_program_is_within_the_budget(digits, chip):
    if not is_installed(find_chip(chip)):
        pytest.skip(f"needs the compiler of {chip}")
    model = CompactClassifier(700, chip=chip, **FEW).fit(*digits)
    flash = measure(str(model.predictor_.to_c()), chip).flash
    assert flash == model.checked_.flash <= model.bytes_ <= 700


def test_the_frontier_rises_and_at_returns_its_models(model, digits):
    X, _ = digits
    bytes, scores = model.pareto_["bytes"], model.pareto_["score"]
    assert (np.diff(bytes) > 0).all()
    assert (np.diff(scores) > 0).all()
    assert model.score_ == scores.max()
    half = model.at(500)
    assert half.bytes_ == max(b for b in bytes if b <= 500)
    assert np.array_equal(half.predict(X), half.predictor_.predict(X))
    assert half.checked_.rows == (500 if shutil.which("cc") else None)
    with pytest.raises(ValueError, match="the smallest takes"):
        model.at(3)


def test_scores_are_those_of_the_form_that_ships(digits):
    """A naive search: fit every fold, quantise, and count errors."""
    X, y = digits
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    model = CompactClassifier(900, **{**FEW, "pools": ["columns"]}, cv=folds, bits=8).fit(X, y)
    lines = {line["atoms"]: line for line in table(model.trials_)}
    for atoms in (1, 5, 12):
        right, took = [], []
        for fit, test in folds.split(X, y):
            path = ShareBoostClassifier(12).fit(X[fit], y[fit]).at(atoms)
            small = path.predictor_.quantise(X[fit], 8, "uint8")
            right.append(np.mean(small.predict(X[test]) == y[test]))
            took.append(promised_bytes(path.predictor_, Target("cortex-m0", 8, "uint8")))
        assert lines[atoms]["score"] == pytest.approx(np.mean(right), abs=1e-12)
        error = np.std(right, ddof=1) / np.sqrt(3)
        assert lines[atoms]["standard_error"] == pytest.approx(error, abs=1e-12)
        assert lines[atoms]["bytes"] == np.mean(took)


def test_the_model_is_the_path_of_all_rows_in_integers(model, digits):
    X, y = digits
    best = table(model.pareto_)[-1]
    path = ShareBoostClassifier(best["atoms"], pool=best["pool"]).fit(X, y)
    small = path.predictor_.quantise(X, best["bits"], "uint8")
    assert np.array_equal(small.scores(X), model.predictor_.scores(X))
    assert np.array_equal(model.predict(X), small.predict(X))


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_what_it_returns_was_compiled_and_compared(model, digits):
    assert model.checked_.rows == 500
    assert "gives the same scores as Python on 500 rows" in str(model.checked_)
    header = model.predictor_.to_c("digits").compile()
    assert np.array_equal(header.predict(digits[0]), model.predict(digits[0]))


def test_compiled_code_that_disagrees_is_a_fault(digits, monkeypatch):
    from laconic.export.compiled import CompiledModel

    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    monkeypatch.setattr(CompiledModel, "device_scores", lambda self, rows: np.zeros((len(rows), 1)))
    with pytest.raises(RuntimeError, match="disagree"):
        CompactClassifier(700, **FEW).fit(*digits)


def test_without_a_compiler_it_says_so(digits, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    model = CompactClassifier(700, **FEW).fit(*digits)
    assert model.checked_.rows is None
    assert "The C code was not run: there is no C compiler" in str(model.checked_)


CAPS = {
    "max_features": lambda line: line["features"],
    "max_operations": lambda line: line["operations"],
    "max_cost": lambda line: line["cost"],
    "max_bytes": lambda line: line["bytes"],
}


@pytest.mark.parametrize(
    "caps",
    [
        {"max_features": 3, "max_bytes": None},
        {"max_operations": 60, "max_bytes": None},
        {"costs": {(0, 1): 2.0, 3: 4.0}, "max_cost": 5, "max_bytes": None},
        {"max_features": 4, "max_operations": 90, "max_cost": 9, "max_bytes": 650},
    ],
)
def test_caps_alone_and_together(caps):
    X, y = load_breast_cancer(return_X_y=True)
    model = CompactClassifier(**caps, **FEW).fit(X, y)
    for line in table(model.pareto_):
        for name, amount in CAPS.items():
            if caps.get(name) is not None:
                assert amount(line) <= caps[name]
    assert model.n_atoms_ > 0


# -- searches that can be repeated -----------------------------------------------------------------


def same(a, b, X):
    assert table(a.trials_) == table(b.trials_)
    assert table(a.pareto_) == table(b.pareto_)
    assert np.array_equal(a.predictor_.scores(X), b.predictor_.scores(X))
    assert a.why_ == b.why_


def test_a_seed_repeats_a_search_on_any_number_of_processes(model, digits):
    same(model, CompactClassifier(700, **FEW, n_jobs=2).fit(*digits), digits[0])


def test_processes_do_not_change_searches_of_several_rungs(digits, several_rungs):
    settings = {**FEW, "max_atoms": 4, "alphas": ["auto", 1e-2]}
    one = CompactClassifier(700, **settings).fit(*digits)
    same(one, CompactClassifier(700, **settings, n_jobs=2).fit(*digits), digits[0])


@pytest.fixture
def several_rungs(monkeypatch):
    monkeypatch.setattr("laconic.compact.plan.FEWEST_ROWS", 100)


def test_a_search_killed_after_every_fit_ends_alike(digits, several_rungs, monkeypatch, tmp_path):
    X, y = digits
    settings = {**FEW, "max_atoms": 4, "alphas": ["auto", 1e-2]}
    whole = CompactClassifier(700, **settings).fit(X, y)
    assert whole.trials_["rung"].max() == 2
    n_fits = int(whole.why_.split("models in ")[1].split()[0])
    real, calls = search_module.fold_table, []

    def counted(*args):
        if len(calls) == 1:
            raise MemoryError
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(search_module, "fold_table", counted)
    path = tmp_path / "state"
    resumed = CompactClassifier(700, **settings, checkpoint=path)
    for _ in range(n_fits - 1):
        with pytest.raises(MemoryError):
            resumed.fit(X, y)
        assert calls == [1]
        calls.clear()
    same(resumed.fit(X, y), whole, X)
    assert calls == [1]
    with pytest.raises(ValueError, match="other data or settings"):
        CompactClassifier(800, **settings, checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="integer random_state"):
        CompactClassifier(checkpoint=path).fit(X, y)


@pytest.mark.long
def test_a_time_limit_gives_the_first_part_of_the_plan(digits, several_rungs, monkeypatch):
    X, y = digits
    whole = CompactClassifier(700, **FEW).fit(X, y)
    for trials_in_time in (0, 1, 2):
        clock = iter([0.0] * (1 + trials_in_time) + [100.0] * 99)
        monkeypatch.setattr(search_module, "monotonic", lambda clock=clock: next(clock))
        untried = ", before stumps could be tried" * (trials_in_time == 0)
        with pytest.warns(UserWarning, match=f"the time limit of 50 s ended .*{untried}"):
            part = CompactClassifier(700, **FEW, time_limit=50).fit(X, y)
        monkeypatch.undo()
        monkeypatch.setattr("laconic.compact.plan.FEWEST_ROWS", 100)
        lines = table(part.trials_)
        assert lines == table(whole.trials_)[: len(lines)]
        assert "time limit" in part.status_
        assert "time limit" in part.why_


def test_ctrl_c_keeps_what_was_found(digits, several_rungs, monkeypatch):
    real, calls = search_module.fold_table, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) > 8:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(search_module, "fold_table", interrupted)
    with pytest.warns(UserWarning, match="interrupted; the model keeps the best of"):
        model = CompactClassifier(700, **FEW).fit(*digits)
    assert model.status_ == "interrupted"
    whole = CompactClassifier(700, **FEW)
    monkeypatch.setattr(search_module, "fold_table", real)
    lines = table(model.trials_)
    assert lines == table(whole.fit(*digits).trials_)[: len(lines)]


def test_ctrl_c_while_the_frontier_is_fitted_keeps_the_chosen_model(digits, monkeypatch):
    settings = {**FEW, "alphas": [1e-4, 3e-3], "pools": ["columns"], "max_atoms": 24}
    whole = CompactClassifier(700, **settings).fit(*digits)
    assert whole.pareto_["alpha"].nunique() == 2
    real, calls = ShareBoostClassifier.fit, []

    def interrupted(self, X, *args):
        if len(X) == len(digits[0]):  # not a fold
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
        return real(self, X, *args)

    monkeypatch.setattr(ShareBoostClassifier, "fit", interrupted)
    with pytest.warns(UserWarning, match="the frontier lacks models"):
        model = CompactClassifier(700, **settings).fit(*digits)
    assert model.status_ == "interrupted"
    assert np.array_equal(model.predictor_.scores(digits[0]), whole.predictor_.scores(digits[0]))


# -- all kinds of rows -----------------------------------------------------------------------------


def test_tables_with_text_and_missing_values():
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({
        "colour": rng.choice(["red", "green", "blue"], n),
        "size": np.where(rng.random(n) < 0.1, np.nan, rng.standard_normal(n)),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
    })  # fmt: skip
    y = np.where((frame["colour"] == "red") | (frame["size"] > 0), "yes", "no")
    model = CompactClassifier(900, max_atoms=10, random_state=0, alphas=["auto"]).fit(frame, y)
    assert set(model.trials_["pool"]) == {"stumps", "rules", "stumps + rules"}
    assert model.score(frame, y) > 0.7
    assert list(model.feature_names_in_) == ["colour", "size", "day"]
    assert "IS_RED" in str(model.predictor_.to_c()).upper()
    assert model.predictor_.feature_names == ["colour", "size", "day"]


def test_features_that_matter_together_get_rules():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "colour": rng.choice(["red", "green", "blue"], 400),
        "size": np.where(rng.random(400) < 0.1, np.nan, rng.standard_normal(400)),
    })  # fmt: skip
    y = np.where((frame["colour"] == "red") == (frame["size"] > 0), "yes", "no")
    model = CompactClassifier(900, max_atoms=6, random_state=0, alphas=["auto"]).fit(frame, y)
    assert "rules" in model.why_
    assert model.score(frame, y) > 0.9


@pytest.mark.long
def test_dates_are_read_once():
    """Rows of dates are encoded before the search. What ships must not encode them again."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 600, 240)
    frame = pd.DataFrame({
        "day": pd.Timestamp("2022-03-01") + pd.to_timedelta(days, "D"),
        "other": rng.standard_normal(240),
    })  # fmt: skip
    y = np.where(days > 300, "late", "early")
    model = CompactClassifier(900, max_atoms=4, alphas=["auto"], random_state=0).fit(frame, y)
    assert model.score_ > 0.95
    assert model.score(frame, y) > 0.95
    assert (model.predictor_.predict(frame) == y).mean() > 0.95
    assert model.predictor_.change.labels < 0.05


def test_every_model_of_the_frontier_knows_the_categories_that_it_asks_about():
    rng = np.random.default_rng(1)
    words = np.array(list("abcdefgh"))
    frame = pd.DataFrame({"first": rng.choice(words, 400), "second": rng.choice(words, 400)})
    y = frame["first"].isin(list("abc")) ^ (frame["second"] == "h")
    settings = {"max_atoms": 12, "alphas": ["auto"], "random_state": 0}
    model = CompactClassifier(1500, **settings, one_standard_error=True).fit(frame, y)
    assert len(model._models) > 3
    for own, line in zip(model.frontier(), table(model.pareto_), strict=True):
        assert own.bytes_ == line["bytes"]
        assert np.array_equal(own.predict(frame), own.predictor_.predict(frame))
        assert own.checked_.rows is own.checked_.flash is None
        assert "frontier() compiles nothing" in str(own.checked_)


def test_numbers_that_the_device_cannot_hand_over_are_refused_at_once(digits):
    X, y = digits
    for wrong, said in ((0.5, "has 0.5 in column '3'"), (300.0, "has 300 in column '3'")):
        rows = X.astype(float)
        rows[7, 3] = wrong
        with pytest.raises(ValueError, match=f"from 0 to 255, but row 7 {said}"):
            CompactClassifier(inputs="uint8").fit(rows, y)
    with pytest.raises(ValueError, match=r"5 x 5|has 25 pixels, but X has 64 columns"):
        CompactClassifier(image_shape=(5, 5)).fit(X, y)
    rows[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"only stumps and rules take; give pools=.auto"):
        CompactClassifier(pools=["columns"]).fit(rows, y)


def test_a_bar_shows_the_fits(digits, capsys):
    X, y = digits
    search = CompactClassifier(700, **{**FEW, "pools": ["columns"]}, verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert re.search(r"searching .* (\d+)/\1 fits +rung 1 +columns", said)
    quiet = CompactClassifier(700, **{**FEW, "pools": ["columns"]}).fit(X, y)
    assert capsys.readouterr().out == ""
    assert np.array_equal(search.predict(X), quiet.predict(X))


def test_sparse_rows_and_rows_of_weight_zero(digits):
    X, y = digits
    settings = {**FEW, "pools": ["columns"]}
    dense = CompactClassifier(700, inputs="float", **settings).fit(X.astype(float), y)
    thin = CompactClassifier(700, inputs="float", **settings)
    thin.fit(sparse.csr_matrix(X, dtype=float), y)
    assert np.array_equal(thin.predict(X), dense.predict(X))
    weight = np.ones(len(y))
    weight[::7] = 0.0
    weighted = CompactClassifier(700, **FEW).fit(X, y, weight)
    removed = CompactClassifier(700, **FEW).fit(X[weight > 0], y[weight > 0])
    assert np.array_equal(weighted.predictor_.scores(X), removed.predictor_.scores(X))


def test_weights_scoring_groups_and_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    groups = np.arange(len(y)) % 7
    settings = {**FEW, "cv": GroupKFold(3), "scoring": "roc_auc", "loss": "log"}
    model = CompactClassifier(900, class_weight="balanced", **settings)
    model.fit(X, y, np.where(y == 1, 2.0, 1.0), groups=groups)
    assert model.score_ > 0.95
    assert "error" not in model.pareto_
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert "roc_auc" in model.why_


@pytest.mark.long
def test_one_standard_error_gives_a_smaller_model(digits):
    settings = {**FEW, "max_atoms": 60, "pools": ["columns"]}
    best = CompactClassifier(2000, **settings).fit(*digits)
    small = CompactClassifier(2000, **settings, one_standard_error=True).fit(*digits)
    assert small.bytes_ < best.bytes_
    assert small.score_ <= best.score_
    line = next(line for line in table(best.pareto_) if line["bytes"] == best.bytes_)
    assert small.score_ >= best.score_ - line["standard_error"]
    assert "within one standard error" in small.why_


def test_pools_that_cannot_be_fitted_are_left_out_and_told(digits, monkeypatch):
    X, y = digits
    real = search_module.fold_table

    def fails(path, *args):
        if type(path.pool).__name__ == "Products":
            raise ValueError("no products today")
        return real(path, *args)

    monkeypatch.setattr(search_module, "fold_table", fails)
    monkeypatch.setattr("laconic.compact.settings.OF_NUMBERS", ("columns", "products"))
    settings = {"alphas": ["auto"], "max_atoms": 4, "image_shape": None}
    with pytest.warns(UserWarning, match="'products' is left out: no products today"):
        model = CompactClassifier(700, **settings).fit(X, y)
    assert set(model.trials_["pool"]) == {"columns"}
    with pytest.raises(ValueError, match="no products today"):
        CompactClassifier(700, pools=["columns", "products"], **settings).fit(X, y)


def test_a_chosen_model_that_does_not_fit_the_integers_is_replaced(digits, monkeypatch):
    X, y = digits
    whole = CompactClassifier(700, **FEW).fit(X, y)
    real = Form.shipped

    def too_wide(self, predictor, rows, weight, bits):
        if len(weight) == len(y) and predictor.cost().atoms == whole.n_atoms_:
            raise TooWide("too wide")
        return real(self, predictor, rows, weight, bits)

    monkeypatch.setattr(Form, "shipped", too_wide)
    with pytest.warns(UserWarning, match="a model of the frontier is left out: too wide"):
        model = CompactClassifier(700, **FEW).fit(X, y)
    assert 0 < model.n_atoms_ < whole.n_atoms_


def test_float_models(digits):
    X, y = digits
    model = CompactClassifier(4000, **FEW, bits=32, inputs="float").fit(X, y)
    assert isinstance(model.predictor_, Predictor)
    assert not hasattr(model.predictor_, "integers")
    with pytest.raises(ValueError, match="bits=32 computes with floats"):
        CompactClassifier(4000, bits=32).fit(X, y)
    for bits in (12, None, (8.0,), ()):
        with pytest.raises(ValueError, match="bits must be 8, 16 or 32"):
            CompactClassifier(bits=bits).fit(X, y)
    for pools in (None, 5):
        with pytest.raises(TypeError, match='pools must be "auto" or a list'):
            CompactClassifier(pools=pools).fit(X, y)
    with pytest.raises(ValueError, match="groups has 9 entries, but X has 500 rows"):
        CompactClassifier(cv=GroupKFold(3)).fit(X, y, groups=np.arange(9))


def test_a_budget_for_no_atom_is_told():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="the chosen model has no atom"):
        CompactClassifier(400, **FEW).fit(X, y)
    with pytest.raises(ValueError, match="a model without any atom would take"):
        CompactClassifier(10, **FEW).fit(X, y)


def test_the_model_keeps_no_training_rows(digits):
    X, y = digits
    model = CompactClassifier(700, **FEW).fit(X, y)
    few = CompactClassifier(700, **FEW).fit(X[:250], y[:250])
    assert len(pickle.dumps(model)) < len(pickle.dumps(few)) + X[250:].nbytes // 4


@pytest.mark.parametrize("inputs", ["float", "uint8"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_random_rows_are_what_the_device_hands_over(digits, inputs, bits):
    X, y = digits
    predictor = ShareBoostClassifier(3).fit(X, y).predictor_
    if bits < 32:
        predictor = predictor.quantise(X, bits, inputs)
    rows = random_rows(predictor)
    assert rows.dtype == (np.uint8 if bits < 32 and inputs == "uint8" else np.float32)
    assert rows.shape == (500, 64)
    assert len(np.unique(rows[:, predictor.map.features()])) > 30


def test_it_pickles_clones_describes_and_sits_in_pipelines(model, digits, capsys):
    X, y = digits
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.at(500).predict(X), model.at(500).predict(X))
    assert clone(model).get_params() == model.get_params()
    model.describe()
    text = capsys.readouterr().out
    assert "It has the best score of all models that fit 700 bytes" in text
    pipe = make_pipeline(StandardScaler(), CompactClassifier(1200, **FEW)).fit(X, y)
    assert pipe.score(X, y) > 0.6


def test_plain_lists_without_pandas(digits, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    from laconic.compact.tables import as_frame

    assert as_frame([{"a": 1}]) == [{"a": 1}]


def test_the_frontier_is_drawn(model):
    ax = model.plot_pareto()
    assert ax.get_xlabel() == "bytes on cortex-m0"
    assert {"chosen", "budget"} <= {text.get_text() for text in ax.get_legend().get_texts()}


def checks():
    settings = {"pools": ["columns"], "alphas": ["auto"], "max_atoms": 4, "cv": 2}
    return list(estimator_checks_generator(CompactClassifier(2000, **settings, random_state=0)))


@pytest.mark.parametrize(("estimator", "check"), checks(), ids=lambda c: getattr(c, "func", c))
def test_scikit_learn_accepts_it(estimator, check, monkeypatch):
    """The checks fit hundreds of models. Compiled code is not what they are about."""
    monkeypatch.setenv("CC", "no-such-compiler")
    check(estimator)


def test_many_categories_leave_out_words_of_8_bits():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 400, 1200)
    X = pd.DataFrame({"town": [f"c{i:03d}" for i in town], "z": rng.normal(size=1200)})
    model = CompactClassifier(2000, pools=["stumps"], max_atoms=3, cv=2, random_state=0)
    model.fit(X, town > 395)
    assert model.predictor_.integers.bits == 16


@pytest.mark.parametrize(("pools", "said"), [(["rule"], "pool must be one of"), ("stumps", "list")])
def test_wrong_pools_are_not_blamed_on_missing_values(pools, said):
    X = np.array([[1.0, np.nan], [2.0, 0.0], [3.0, 1.0], [4.0, 1.0]])
    with pytest.raises((TypeError, ValueError), match=said):
        CompactClassifier(pools=pools).fit(X, [0, 0, 1, 1])

"""The last step of a search: tuned paths of its best tunable pools."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from laconic import CompactClassifier
from laconic.compact.settings import Setting
from laconic.compact.tables import lines_of
from laconic.compact.tuned import ALPHA, RATE_OF_HINGES, sizes_to_tune, tuned_settings
from laconic.pools import Columns, Hinges, Patches
from laconic.tune import Tuning


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:400].astype(np.uint8), y[:400]


def search(**settings):
    own = {"pools": ["stumps", Hinges(20, n_inputs=6)], "alphas": [1e-3], "max_atoms": 6,
           "bits": 8, "cv": 2, "random_state": 0, "tune": Tuning(epochs=15, rate=0.1)}  # fmt: skip
    return CompactClassifier(900, **{**own, **settings})


@pytest.fixture(scope="module")
def fitted(digits):
    return search().fit(*digits)


def tried(setting, score, took, reached=10, bits=8):
    return SimpleNamespace(setting=setting, score=score, bytes=took, reached=reached, bits=bits)


def test_the_best_penalty_of_the_two_best_tunable_pools_is_tuned():
    pools = Columns(), Hinges(), Hinges(n_inputs=4), Patches()
    settings = [Setting(str(n), pool, a) for a in ("auto", 1e-3) for n, pool in enumerate(pools)]
    models = [tried(0, 0.99, 50), tried(1, 0.7, 50), tried(2, 0.8, 50), tried(3, 0.6, 50),
              tried(3, 0.97, 500), tried(5, 0.9, 60), tried(6, 0.75, 50)]  # fmt: skip
    found = tuned_settings(settings, models, 100, True)
    assert [own.title for own in found] == ["2, tuned", "1, tuned"]
    assert [own.alpha for own in found] == [ALPHA, 1e-3]
    assert [own.pool for own in found] == [pools[2], pools[1]]
    assert all(own.tuning.rate == RATE_OF_HINGES for own in found)
    assert tuned_settings(settings, models[:1], 100, True) == []


def test_sizes_are_those_that_fit():
    models = [tried(0, 0, 0, size) for size in (1, 2, 5, 11.5)]
    assert sizes_to_tune(models) == [2, 5, 11]
    assert sizes_to_tune([tried(0, 0, 0, 1)]) == []
    assert sizes_to_tune([]) == []


def test_settings_of_your_own_are_used():
    settings, models = [Setting("h", Hinges(), 0.1)], [tried(0, 0.9, 50, reached=8)]
    own = Tuning(sizes=[3, 8, 9], epochs=7)
    assert tuned_settings(settings, models, 100, own)[0].tuning == Tuning(sizes=[3, 8], epochs=7)
    assert tuned_settings(settings, models, 100, Tuning(sizes=[9])) == []
    assert tuned_settings(settings, models, 100, Tuning(epochs=7))[0].tuning.sizes == (2, 4, 8)


def test_tuned_models_are_tried_and_shipped(digits, fitted):
    lines = [line for line in lines_of(fitted.trials_) if line["pool"].endswith(", tuned")]
    assert [line["atoms"] for line in lines] == [3, 6]
    plain = {line["atoms"]: line for line in lines_of(fitted.trials_) if "Hinges" in line["pool"]
             and not line["pool"].endswith(", tuned")}  # fmt: skip
    for line in lines:  # fewer rows choose the atoms that are tuned, so these may be others
        assert line["bytes"] == pytest.approx(plain[line["atoms"]]["bytes"], rel=0.02)
        assert line["score"] >= plain[line["atoms"]]["score"]
    assert "tuned" in fitted.why_
    assert fitted.bytes_ <= 900
    assert fitted.score(*digits) > 0.95
    assert [model.bytes_ for model in fitted.frontier()] == sorted(fitted.pareto_["bytes"])


def test_without_tuning_the_rest_of_the_search_is_the_same(digits, fitted):
    plain = search(tune=False).fit(*digits)
    n = len(plain.trials_)
    assert lines_of(fitted.trials_)[:n] == lines_of(plain.trials_)
    assert not any("tuned" in line["pool"] for line in lines_of(plain.trials_))


def test_a_checkpoint_of_a_search_without_tuning_goes_on(digits, fitted, tmp_path, monkeypatch):
    search(tune=False, checkpoint=tmp_path / "state").fit(*digits)
    resumed = search(checkpoint=tmp_path / "state").fit(*digits)
    assert lines_of(resumed.trials_) == lines_of(fitted.trials_)
    again = search(checkpoint=tmp_path / "state")

    def refuse(*given):
        raise AssertionError("every outcome is in the file")

    monkeypatch.setattr("laconic.compact.search.fold_table", refuse)
    assert lines_of(again.fit(*digits).trials_) == lines_of(fitted.trials_)


def test_few_rows_are_not_tuned(digits):
    X, y = digits
    model = search().fit(X[:150], y[:150])
    assert not any("tuned" in line["pool"] for line in lines_of(model.trials_))


def test_processes_change_nothing(digits, fitted):
    again = clone(fitted).set_params(n_jobs=2).fit(*digits)
    assert lines_of(again.trials_) == lines_of(fitted.trials_)
    scores = [model.predictor_.scores(digits[0]) for model in (again, fitted)]
    assert np.array_equal(*scores)


def test_a_time_limit_leaves_tuning_out(digits):
    with pytest.warns(UserWarning, match="tuned could be tried"):
        model = search(time_limit=1e-9, pools=[Hinges(20, n_inputs=6)]).fit(*digits)
    assert "tuned" in model.status_

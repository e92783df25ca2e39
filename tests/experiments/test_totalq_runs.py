"""One split of the study, end to end."""

import json

import numpy as np
import pytest
import totalq_benchmark
import totalq_runs
from totalq_frontier import worse


def test_splits_are_the_listed_sizes_and_reproduce(data_dir):
    for name, number, rows in (("heart", 1, 170), ("thyroid", 3, 140), ("heart", 0, 216)):
        split = totalq_runs.split_of(data_dir, name, number, 0)
        assert len(split.y) == rows
        again = totalq_runs.split_of(data_dir, name, number, 0)
        assert np.array_equal(split.X_new, again.X_new)
        assert set(np.unique(split.y)) == {-1, 1}


def test_experiments_of_one_split(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(totalq_runs, "ROUNDS", 12)
    monkeypatch.setattr(totalq_runs, "PRICES", np.array([0.5, 5.0]))
    monkeypatch.setattr(totalq_runs, "NU", np.array([1.0, 10.0]))
    monkeypatch.setattr(totalq_runs, "BOTH_NU", (1.0,))
    monkeypatch.setattr(totalq_runs, "BOTH_PRICES", np.array([1.0]))
    result = totalq_runs.run("thyroid", 1, data_dir, 0, tmp_path)
    assert {letter: len(of) for letter, of in result["points"].items() if letter != "B"} == {
        "A": 2, "C": 2, "D": 2, "E": 2, "F": 1,
    }  # fmt: skip
    assert not worse(result, "E", "B")["risk"]
    assert not worse(result, "D", "E")["risk"]
    assert totalq_runs.run("thyroid", 1, data_dir, 0, tmp_path) == result


def test_splits_run_on_a_cluster(data_dir, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(totalq_runs, "ROUNDS", 6)
    for name in ("PRICES", "NU", "BOTH_NU", "BOTH_PRICES"):
        monkeypatch.setattr(totalq_runs, name, np.array([1.0]))
    monkeypatch.setattr(totalq_benchmark, "draw", lambda *_: None)

    def results(folder, *more):
        words = ["--sets", "thyroid", "--splits", "1", "2", "--data", data_dir, "--jobs", 1, *more]
        words += ["--cache", tmp_path / folder, "--json", tmp_path / f"{folder}.json"]
        monkeypatch.setattr("sys.argv", ["totalq_benchmark.py", *map(str, words)])
        totalq_benchmark.main()
        found = json.loads((tmp_path / f"{folder}.json").read_text())["results"]
        return found["partitions"]["thyroid"]

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=False, **settings) as cluster:
        there = results("there", "--cluster", cluster.scheduler_address)
    assert len(list((tmp_path / "there").iterdir())) == 4  # two files for each split
    assert there == results("here")


def test_other_settings_have_files_of_their_own(tmp_path, monkeypatch):
    calls = []

    def fake(*task):
        calls.append(task)
        return {"seconds": {"F": 0.0}, "points": {"F": []}}

    monkeypatch.setattr(totalq_runs, "_paper", fake)
    monkeypatch.setattr(totalq_runs, "_both", fake)
    for prices, expected in (([0.5, 5.0], 2), ([0.5, 5.0], 2), ([0.5, 6.0], 3)):
        monkeypatch.setattr(totalq_runs, "PRICES", np.array(prices))
        totalq_runs.run("thyroid", 1, tmp_path, 0, tmp_path)
        assert len(calls) == expected
    monkeypatch.setattr(totalq_runs, "BOTH_NU", (2.0,))
    totalq_runs.run("thyroid", 1, tmp_path, 0, tmp_path)
    assert len(calls) == 4
    assert len(list(tmp_path.iterdir())) == 4

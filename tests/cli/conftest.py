"""What several files test on: a model of every kind of column, small chunks, Parquet files."""

import fit_tables
import numpy as np
import pytest
from long_tables import ROWS, rows

from laconic import ShareBoostClassifier
from laconic.cli import chunks, predict


@pytest.fixture(scope="session")
def kinds_model(tmp_path_factory):
    """A model that asks about every kind of column."""
    frame = rows().drop(columns=["id", "note"]).astype({"code": "category"})
    kinds = [
        frame.number.fillna(1) > 0, frame.single > 0, frame.whole > 4, frame.truth,
        frame.town == "Rome", frame.town.isna(), frame.code == 2, frame.when > "2023-09-01",
    ]  # fmt: skip
    y = np.where(sum(kind.astype(int) for kind in kinds) > 3, "yes", "no")
    fitted = ShareBoostClassifier(12, pool="stumps").fit(frame, y)
    assert len(fitted.predictor_.map.features()) == frame.shape[1]
    file = tmp_path_factory.mktemp("model") / "m.laconic"
    fitted.predictor_.save(file)
    return file


@pytest.fixture
def small_chunks(monkeypatch):
    """A function that makes chunks small, and then counts them."""
    seen = []

    def make(frame, rows_of_a_chunk=ROWS):
        monkeypatch.setattr(chunks, "CELLS", rows_of_a_chunk * frame.shape[1])
        monkeypatch.setattr("laconic.cli.parquet_chunks.LEAST", 1)
        answers = predict._answers
        monkeypatch.setattr(
            predict,
            "_answers",
            lambda model, chunk, *more: (
                seen.append(len(chunk.frame)),
                answers(model, chunk, *more),
            )[1],
        )
        return seen

    return make


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of Parquet files in the working folder."""
    fit_tables.write(fit_tables.rows(), tmp_path / "rows")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "rows"

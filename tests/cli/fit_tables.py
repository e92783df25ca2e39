"""Parquet files to fit on, and the options of a fit."""

import numpy as np
import pandas as pd

N = 900
FIT = ("--target", "y", "--max-atoms", 5, "--out", "m.laconic")
STUMPS = (*FIT, "--pool", "stumps")


def rows(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N).astype(np.float32),
            "b": np.where(rng.uniform(size=N) < 0.1, np.nan, rng.normal(size=N)),
            "town": rng.choice(["Oslo", "Rome", "Ulm"], N),
            "code": rng.integers(1, 4, N),
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, N), "D"),
        }
    )
    points = (frame.a > 0).astype(int) + (frame.town == "Rome") + (frame.code == 2)
    return frame.assign(y=np.where(points + (frame.when > "2023-09-01") > 1, "yes", "no"))


def write(frame, folder, n_files=3):
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(frame), -(-len(frame) // n_files))):
        end = start + -(-len(frame) // n_files)
        frame[start:end].to_parquet(folder / f"{number}.parquet")

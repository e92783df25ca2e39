"""A table with columns of every kind, which is read in chunks."""

import numpy as np
import pandas as pd

N = 900
ROWS = 90  # of a chunk


def rows(seed=0):
    """Columns of every kind, with gaps."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=N)
    frame = pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(N)],
            "number": np.where(rng.uniform(size=N) < 0.1, np.nan, number.round(4)),
            "single": rng.normal(size=N).astype(np.float32),
            "whole": rng.integers(0, 9, N),
            "truth": rng.uniform(size=N) < 0.5,
            "town": rng.choice(["Oslo", "Rome", "NA", "Ulm"], N),
            "code": rng.integers(0, 4, N),
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, N), "D"),
            "note": rng.choice(["a, b", 'a "quote"', "two\nlines", "plain", ""], N),
        }
    )
    frame.loc[::7, "town"] = None
    frame.loc[N - 3, "note"] = "NA"
    return frame


def write(frame, file):
    if file.suffix == ".parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="\t" if ".tsv" in file.name else ",")

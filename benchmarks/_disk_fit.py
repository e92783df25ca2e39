"""Fit rows in files in a process of its own, and print its times and its memory as JSON.

`disk_rows.py` starts it: python _disk_fit.py KIND FOLDER ROWS ATOMS. See there.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from laconic import ShareBoostClassifier
from laconic.beyond.read_again import ReadAgain

SAMPLED = 0.05
"""Seconds between two looks at the memory of the process."""
PHASES = {"look": "look", "_count": "survey", "_survey": "survey", "_bound": "bind"}


def main() -> None:
    kind, folder, rows, atoms = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    warm = np.random.default_rng(0).random((3000, 20), dtype=np.float32)
    ShareBoostClassifier(2, pool="stumps").fit(warm, warm[:, 0] > 0.5)  # loads the kernels
    X, y = given(kind, folder, rows)
    clock = Clock()
    with clock.watched():
        model = ShareBoostClassifier(atoms, pool="stumps", callbacks=[clock.entry]).fit(X, y)
    print(json.dumps({**clock.results(rows), "train error": train_error(model, folder, rows)}))


def given(kind: str, folder: Path, rows: int) -> tuple[Any, Any]:
    """Return X and y as they are given to `fit`."""
    if kind == "parquet":
        return folder, "label"
    if kind == "npy":
        return folder / "X.npy", folder / "y.npy"
    X, y = np.load(folder / "X.npy", mmap_mode="r")[:rows], np.load(folder / "y.npy")[:rows]
    return (np.array(X) if kind == "memory" else X), y


class Clock:
    """Notes the seconds of the phases of a fit, the reading of parts, and the memory."""

    def __init__(self) -> None:
        self._phases = dict.fromkeys(PHASES.values(), 0.0)
        self._peaks: dict[str, int] = {}
        self._times_read: list[str] = []
        self._entries: list[float] = []
        self._now, self._start = "other", 0.0

    def entry(self, state: Any) -> None:
        """Note the time of an entry of the path. From the first one on, there are only rounds."""
        self._entries.append(time.perf_counter())
        self._now = "rounds"

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note what happens in the context."""
        ask, done, clock = ReadAgain.ask, threading.Event(), self

        def noted(self: ReadAgain, question: Any, *arguments: Any, **named: Any) -> list[Any]:
            phase = PHASES.get(question.__name__, "other")
            clock._now, start = phase, time.perf_counter()
            answers = ask(self, question, *arguments, **named)
            clock._phases[phase] = clock._phases.get(phase, 0.0) + time.perf_counter() - start
            if self.n_parts > 1:
                clock._times_read.append(question.__name__.strip("_"))
            clock._now = "other"
            return answers

        def sample() -> None:
            while not done.wait(SAMPLED):
                self._peaks[self._now] = max(self._peaks.get(self._now, 0), anonymous_bytes())

        thread = threading.Thread(target=sample, daemon=True)
        ReadAgain.ask = noted  # type: ignore[method-assign]
        thread.start()
        self._start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds = time.perf_counter() - self._start
            ReadAgain.ask = ask  # type: ignore[method-assign]
            done.set()
            thread.join()

    def results(self, rows: int) -> dict[str, Any]:
        """Return everything that was noted."""
        peak, rounds = max(self._peaks.values()), len(self._entries) - 1
        looped = self._entries[-1] - self._entries[0]
        return {
            "rows": rows,
            "seconds": self._seconds,
            "seconds of phases": {
                **self._phases,
                "preparing": self._entries[0] - self._start,
                "rounds": looped,
                "a round": looped / rounds,
            },
            "times read": self._times_read,
            "peak RssAnon": peak,
            "peak RssAnon a row": peak / rows,
            "peak RssAnon of phases": self._peaks,
        }


def anonymous_bytes() -> int:
    """Return the anonymous memory of this process: no page of it is that of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell the anonymous memory of a process")


def train_error(model: Any, folder: Path, rows: int, together: int = 1 << 20) -> float | None:
    """Return the error on the rows, or None for Parquet files, which have the same rows."""
    if not (folder / "X.npy").exists():
        return None
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
    blocks = [slice(at, min(at + together, rows)) for at in range(0, rows, together)]
    wrong = sum(int((model.predict(np.asarray(X[s])) != y[s]).sum()) for s in blocks)
    return wrong / rows


if __name__ == "__main__":
    main()

"""Checkpoints: the loop's state in a file, so that a killed fit ends with the identical model."""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from laconic import __version__
from laconic.boost.loop import State
from laconic.boost.path import PathEntry
from laconic.model.store import read_archive, write_archive
from laconic.objective import Certificate
from laconic.pools.base import BoundPool
from laconic.threads import row_blocks

# Rows that are hashed together: the most that is ever copied.
HASHED_ROWS = 4096

_NUMBERS = ("loss", "objective", "inner", "steepest", "cost", "seconds")


def fingerprint(X: Any, y: np.ndarray, weight: np.ndarray, settings: dict[str, Any]) -> str:
    """Digest of what a fit's answer depends on: settings, data, labels and weights."""
    sha = hashlib.sha256()
    try:
        sha.update(joblib.hash(settings).encode())
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"a checkpoint needs settings that can be told apart when a fit is resumed ({error}); "
            "name functions at the top of a module instead of a lambda or inside another function"
        ) from error
    sha.update(f"{__version__} {X.shape} {X.dtype}".encode())
    if sparse.issparse(X):
        parts: list[np.ndarray] = [X.data, X.indices, X.indptr]
    else:
        parts = [X[s] for s in row_blocks(X.shape[0], HASHED_ROWS)]
    for part in (*parts, y, weight):
        sha.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


@dataclass
class Checkpoint:
    """Writes the state after every round (it is a hook of the loop) and reads it back.

    Attributes
    ----------
    path : str or path-like
    fingerprint : str
        Only a state of this fingerprint is taken up.
    max_atoms : int
        Largest size of the fit. A fit of another largest size takes up the grown path as far as it
        goes, and refines anew.
    """

    path: str | os.PathLike[str]
    fingerprint: str
    max_atoms: int

    def __call__(self, state: State) -> None:
        """Write the state."""
        header: dict[str, Any] = {
            "fingerprint": self.fingerprint,
            "max_atoms": self.max_atoms,
            "swept": state.swept,
            "searched": state.searched,
            "bound": state.bound,
        }
        arrays: dict[str, np.ndarray] = {"generated": np.array(state.generated, dtype=np.int64)}
        for name in ("entries", "offered", "refined"):
            entries: list[PathEntry] = getattr(state, name)
            header[name] = [
                {**{n: getattr(e, n) for n in _NUMBERS}, "certificate": list(e.certificate)}
                for e in entries
            ]
            for i, e in enumerate(entries):
                key = f"{name}_{i}"
                arrays[f"{key}_numbers"] = np.array(e.numbers, dtype=np.int64)
                arrays[f"{key}_gains"] = np.array(e.gains, dtype=np.float64)
                arrays[f"{key}_weights"] = e.weights
                arrays[f"{key}_base"] = e.base
                arrays[f"{key}_means"] = e.means
        write_archive(self.path, "checkpoint", header, arrays)

    def resume(self, pool: BoundPool) -> State:
        """The state in the file, or a new one if there is no file yet."""
        if not Path(self.path).exists():
            return State()
        header, arrays = read_archive(self.path, "checkpoint")
        if header["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.path} was written for other data or settings; "
                "name another file, or delete it to start anew"
            )
        same = header["max_atoms"] == self.max_atoms
        state = State(
            swept=header["swept"] if same else 0,
            generated=arrays["generated"].tolist(),
            searched=header["searched"],
            bound=header["bound"],
        )
        for name in ("entries", "offered", *(("refined",) if same else ())):
            for i, plain in enumerate(header[name]):
                key = f"{name}_{i}"
                numbers = tuple(int(n) for n in arrays[f"{key}_numbers"])
                if len(numbers) > self.max_atoms:
                    break
                entry = PathEntry(
                    numbers=numbers,
                    atoms=tuple(pool.atom(n) for n in numbers),
                    map=pool.extract(numbers),
                    weights=arrays[f"{key}_weights"],
                    base=arrays[f"{key}_base"],
                    scales=pool.scales(numbers),
                    means=arrays[f"{key}_means"],
                    gains=tuple(float(g) for g in arrays[f"{key}_gains"]),
                    certificate=Certificate(*plain["certificate"]),
                    **{n: plain[n] for n in _NUMBERS},
                )
                getattr(state, name).append(entry)
        return state

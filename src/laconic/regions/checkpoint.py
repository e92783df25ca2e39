"""Checkpoints of hole punching, so that a killed fit ends with the identical model."""

from __future__ import annotations

import os
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laconic.model.store import read_archive, write_archive
from laconic.regions.punch import Hole, Puncher, State

_KIND = "holes checkpoint"


@dataclass
class HolesCheckpoint:
    """Writes the state after every hole (it is a hook of the loop) and reads it back.

    Models of any scikit-learn class are kept as pickles, which run code when they are read: take up
    only files of your own.

    Attributes
    ----------
    path : str or path-like
    fingerprint : str
        Only a state of this fingerprint is taken up.
    """

    path: str | os.PathLike[str]
    fingerprint: str
    puncher: Puncher

    def __call__(self, state: State) -> None:
        """Write the state."""
        plain = [{**asdict(hole), "centre": None, "model": None} for hole in state.holes]
        header = {
            "fingerprint": self.fingerprint,
            "holes": plain,
            "errors": state.errors,
            "held_errors": state.held_errors,
        }
        arrays = {
            "base": _pickled(state.base),
            "counts": self.puncher.counts.counts,
            "predicted": self.puncher.train.predicted,
        }
        if self.puncher.held is not None:
            arrays["held_predicted"] = self.puncher.held.predicted
        for number, hole in enumerate(state.holes):
            arrays[f"centre_{number}"] = hole.centre
            arrays[f"model_{number}"] = _pickled(hole.model)
        arrays = {name: _plain_text(array) for name, array in arrays.items()}
        write_archive(self.path, _KIND, header, arrays)

    def resume(self) -> State | None:
        """The state in the file, with the puncher brought to it; None if there is no file yet."""
        if not Path(self.path).exists():
            return None
        header, arrays = read_archive(self.path, _KIND)
        if header["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.path} was written for other data or settings; "
                "name another file, or delete it to start anew"
            )
        state = State(_unpickled(arrays["base"]))
        state.errors, state.held_errors = header["errors"], header["held_errors"]
        for number, plain in enumerate(header["holes"]):
            plain["centre"] = arrays[f"centre_{number}"]
            plain["model"] = _unpickled(arrays[f"model_{number}"])
            plain["held"] = None if plain["held"] is None else tuple(plain["held"])
            state.holes.append(Hole(**plain))
        train, held = self.puncher.train, self.puncher.held
        self.puncher.counts.counts = arrays["counts"]
        train.predicted = arrays["predicted"].astype(train.y.dtype)
        if held is not None:
            held.predicted = arrays["held_predicted"].astype(held.y.dtype)
        return state


def _pickled(model: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(model), dtype=np.uint8)


def _unpickled(array: np.ndarray) -> Any:
    return pickle.loads(array.tobytes())


def _plain_text(array: np.ndarray) -> np.ndarray:
    """Labels kept as Python strings become an array of text."""
    return array.astype(np.str_) if array.dtype.hasobject else array

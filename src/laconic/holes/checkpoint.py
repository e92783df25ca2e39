"""Checkpoints of hole punching, so that a killed fit ends with the identical model.

Estimators may be of any class, so they are kept as pickles, which run code when they are read. The
user must allow this with ``pickle_models``. Nothing else that Laconic writes holds a pickle.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from laconic.files.journal import EVERY, Record, Saver
from laconic.files.layout import Array, check_arrays, list_of, real_number, whole_number
from laconic.holes.punch import Puncher
from laconic.holes.state import Hole, PunchState

# Attributes of a hole that a header holds.
_PLAIN = ("radius", "row", "kind", "n_rows", "error_before", "error_after", "held")


@dataclass
class _Snapshot:
    """The state after a hole, from which a record is made."""

    state: PunchState
    arrays: dict[str, np.ndarray]


class HolesCheckpoint(Saver):
    """Writes the state after holes, and reads it back.

    A record holds the holes that are new since the last record, and the errors and predictions with
    them.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Only a state with this fingerprint is resumed.
    puncher : Puncher
        Its counts and predictions are part of the state.
    every : float
        Seconds between two records.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: str,
        puncher: Puncher,
        every: float = EVERY,
    ) -> None:
        super().__init__(path, "holes checkpoint", fingerprint, every)
        self.puncher = puncher
        self._held = 0
        self._has_base = False

    # -- writing -------------------------------------------------------------------------------

    def snapshot(self, state: PunchState) -> _Snapshot:
        """Return a copy of the state, and of the arrays that the puncher will change."""
        train, held = self.puncher.train, self.puncher.held
        arrays = {"counts": self.puncher.counts.counts.copy(), "predicted": train.predicted.copy()}
        if held is not None:
            arrays["held_predicted"] = held.predicted.copy()
        lists = (list(state.holes), list(state.errors), list(state.held_errors))
        return _Snapshot(PunchState(state.base, *lists), arrays)

    def write(self, snapshot: _Snapshot) -> bool:
        """Append a record of the holes that the file does not hold yet."""
        state = snapshot.state
        arrays = {name: _plain_text(array) for name, array in snapshot.arrays.items()}
        new = list(enumerate(state.holes))[self._held :]
        if not self._has_base:
            arrays["base"] = _pickled(state.base)
        for number, hole in new:
            arrays[f"centre_{number}"] = hole.centre
            arrays[f"model_{number}"] = _pickled(hole.model)
        header = {
            "holes": [{name: getattr(hole, name) for name in _PLAIN} for _, hole in new],
            "errors": state.errors,
            "held_errors": state.held_errors,
        }
        written = self.file.append(header, arrays)
        if written:
            self._held, self._has_base = len(state.holes), True
        return written

    # -- reading -------------------------------------------------------------------------------

    def resume(self) -> PunchState | None:
        """Return the state in the file, or None if there is none yet.

        The puncher's counts and predictions are set to this state.
        """
        with self.reading() as records:
            return self._resumed(records) if records else None

    def _resumed(self, records: list[Record]) -> PunchState:
        state: PunchState | None = None
        train, held = self.puncher.train, self.puncher.held
        for header, arrays in records:
            if state is None:
                state = PunchState(_unpickled(arrays.pop("base")))
            arrays = check_arrays(arrays, self._layout(len(state.holes), header), {})
            for number, plain in enumerate(header["holes"], len(state.holes)):
                centre, model = arrays[f"centre_{number}"], arrays[f"model_{number}"]
                state.holes.append(_hole(plain, centre, _unpickled(model)))
            state.errors = _errors(header["errors"], len(state.holes) + 1)
            held_length = 0 if held is None else len(state.holes) + 1
            state.held_errors = _errors(header["held_errors"], held_length)
        assert state is not None
        self._held, self._has_base = len(state.holes), True
        self.puncher.counts.counts = arrays["counts"].astype(np.float64)
        train.predicted = arrays["predicted"].astype(train.y.dtype)
        if held is not None:
            held.predicted = arrays["held_predicted"].astype(held.y.dtype)
        return state

    def _layout(self, first: int, header: dict[str, Any]) -> dict[str, Array]:
        """Return the kinds and shapes that the arrays of a record must have."""
        train, held = self.puncher.train, self.puncher.held
        out = {
            "counts": Array("f", (len(train.y),)),
            "predicted": Array(_label_kind(train.y), (len(train.y),)),
        }
        if held is not None:
            out["held_predicted"] = Array(_label_kind(held.y), (len(held.y),))
        for number in range(first, first + len(header["holes"])):
            out[f"centre_{number}"] = Array("f", (train.X.shape[1],))
            out[f"model_{number}"] = Array("i", (f"model_{number}",))
        return out


def _hole(plain: dict[str, Any], centre: np.ndarray, model: Any) -> Hole:
    """Return a hole from a record's header and arrays."""
    held = plain["held"]
    if plain["kind"] not in ("fitted", "constant"):
        raise ValueError(f"a hole has the unknown kind {plain['kind']!r}")
    if held is not None:
        n_rows, before, after = held
        errors = (real_number(e, "held", finite=False) for e in (before, after))
        held = (whole_number(n_rows, "held"), *errors)
    return Hole(
        centre=centre,
        radius=real_number(plain["radius"], "radius", finite=False),
        row=whole_number(plain["row"], "row"),
        model=model,
        kind=plain["kind"],
        n_rows=whole_number(plain["n_rows"], "n_rows", 1),
        error_before=real_number(plain["error_before"], "error_before"),
        error_after=real_number(plain["error_after"], "error_after"),
        held=held,
    )


def _errors(stored: Any, length: int) -> list[float]:
    """Return the errors with 0, 1, 2, … holes."""
    return [real_number(e, "errors") for e in list_of(float, stored, "errors", length)]


def _label_kind(labels: np.ndarray) -> str:
    """Return the kind of array in which labels are kept."""
    return {"u": "i", "O": "U", "S": "U"}.get(labels.dtype.kind, labels.dtype.kind)


def _pickled(model: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(model), dtype=np.uint8)


def _unpickled(array: np.ndarray) -> Any:
    return pickle.loads(array.tobytes())


def _plain_text(array: np.ndarray) -> np.ndarray:
    """Turn labels that are Python strings into an array of text."""
    return array.astype(np.str_) if array.dtype.hasobject else array

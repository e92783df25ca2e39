"""Checkpoints of a clumping fit: the problems solved, and the state of the one being solved."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from laconic.model.store import read_archive, write_archive
from laconic.regions.problem import Solution

State = TypeVar("State")


class Resumable:
    """Writes a fit to a file, and reads back what was written for the same data and settings.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Of data and settings; a file of another one is refused.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self._header: dict[str, Any] = {"answers": 0, "under_way": False}
        self._arrays: dict[str, np.ndarray] = {}
        if Path(path).exists():
            self._header, self._arrays = read_archive(path, "clumping checkpoint")
            if self._header["fingerprint"] != fingerprint:
                raise ValueError(
                    f"checkpoint {path} was written for other data or settings; "
                    "name another file, or delete it to start anew"
                )

    def answers(self) -> list[Solution]:
        """The problems solved already."""
        return [
            Solution(*(_plain(self._arrays[f"{i}_{name}"]) for name in Solution._fields))
            for i in range(self._header["answers"])
        ]

    def state(self, kind: type[State], n_answers: int) -> State | None:
        """The state of the problem after those, where it was begun."""
        if not self._header["under_way"] or n_answers != self._header["answers"]:
            return None
        prefix = "state_"
        fields = {n.removeprefix(prefix): _plain(a) for n, a in self._arrays.items()
                  if n.startswith(prefix)}  # fmt: skip
        return kind(**fields)

    def save(self, answers: list[Solution], state: Any) -> None:
        """Write the answers, and the state of the problem under way."""
        arrays = {}
        for i, answer in enumerate(answers):
            for name, value in answer._asdict().items():
                arrays[f"{i}_{name}"] = np.asarray(value)
        if state is not None:
            arrays.update({f"state_{n}": np.asarray(v) for n, v in asdict(state).items()})
        header = {
            "fingerprint": self.fingerprint,
            "answers": len(answers),
            "under_way": state is not None,
        }
        write_archive(self.path, "clumping checkpoint", header, arrays)


def _plain(value: np.ndarray) -> Any:
    return value.item() if value.ndim == 0 else value

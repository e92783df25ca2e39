"""Tuned sizes, and the descent of the size that is being tuned, in the checkpoint of a fit.

Every size has a key: a digest of its entry as chosen, of the settings of tuning, and of the key of
the tuned size that it starts from. All else that it depends on is in the fingerprint of the file.
So a file may be used with other settings of tuning, or for a longer path. Sizes whose keys are in
the file are taken from there, and the others are tuned.

A descent is kept at the end of an epoch: the model, and the means of gradients and of their
squares. The number of steps follows from the epochs. What a descent starts from is computed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.boost.checkpoint import Checkpoint, read_certificate
from laconic.boost.path import PathEntry
from laconic.files.journal import Record
from laconic.files.layout import Array, check_arrays, real_number, whole_number
from laconic.files.store import digest
from laconic.numeric.namespaces import numbers_like, to_host

if TYPE_CHECKING:
    from laconic.tune.contract import Tunable
    from laconic.tune.descent import Descent

# What the headers of these records call their step.
STEP = "tuning"
# The arrays of a descent, and the least value that each may have.
OF_A_DESCENT = {"part": -np.inf, "mean": -np.inf, "square": 0.0}
# The numbers of a tuned entry that differ from those of the chosen one.
NUMBERS = ("loss", "objective", "inner", "seconds")


class KeptTuning:
    """What a fit keeps of its tuning. Without a checkpoint, it keeps nothing.

    As a context manager it writes the last state when tuning ends, for whatever reason.

    Parameters
    ----------
    saver : Checkpoint or None
        It has read its file.
    settings : str
        A digest of the settings of tuning.
    checks : sequence of hooks
        Refuse rows that were changed, before a state that read them is kept.

    Attributes
    ----------
    started : float
        When tuning started, on the clock of `time.perf_counter`. Time that earlier fits took
        counts, too.
    """

    def __init__(
        self, saver: Checkpoint | None, settings: str, checks: Sequence[Callable[..., Any]] = ()
    ) -> None:
        self.saver, self._settings, self._checks = saver, settings, checks
        self.started = time.perf_counter()
        self._records: dict[str, Record] = {}
        self._waiting: list[Record] = []
        if saver is None:
            return
        with saver.sound():
            for header, arrays in saver.steps:
                if header["step"] == STEP:
                    self._records[header["key"]] = header, arrays
        saver.steps = []

    def __enter__(self) -> KeptTuning:
        if self.saver is not None:
            self.saver.flush()  # the path comes before what is tuned of it
        return self

    def __exit__(self, *exc: object) -> None:
        self._flush()

    def of(self, entry: PathEntry, before: KeptSize | None) -> KeptSize:
        """Return what is kept of a size that starts from the tuned size ``before``."""
        header = {"settings": self._settings, "before": "" if before is None else before.key}
        numbers = np.array(entry.numbers, dtype=np.int64)
        given = {"weights": entry.weights, "base": entry.base, "means": entry.means}
        key = digest(header, {"numbers": numbers, **given})
        return KeptSize(self, key, entry.size, self._records.get(key))

    def write(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Add a record, now or when the last one is old enough. It replaces a passing one."""
        if self.saver is None:
            return
        for check in self._checks:
            check(None)
        if self._waiting and self._waiting[-1][0].get("passing"):
            self._waiting.pop()
        header = {"step": STEP, "spent": time.perf_counter() - self.started, **header}
        self._waiting.append((header, arrays))
        if self.saver.file.age >= self.saver.every:
            self._flush()

    def _flush(self) -> None:
        while self._waiting and self.saver and self.saver.file.append(*self._waiting[0]):
            del self._waiting[0]


class KeptSize:
    """What is kept of one size: nothing, how far its descent is, or its result.

    Attributes
    ----------
    key : str
    epochs : int
        Epochs of the descent that are done.
    loss : float
        The mean loss of the last of them.
    done : bool
        Whether the result is known.
    """

    def __init__(self, all_sizes: KeptTuning, key: str, size: int, record: Record | None) -> None:
        self.key, self._size, self._all = key, size, all_sizes
        self.epochs, self.loss, self.done, self._record = 0, np.nan, False, record
        if record is None or all_sizes.saver is None:
            return
        with all_sizes.saver.sound():
            header = record[0]
            self.done = "accepted" in header
            self.epochs = whole_number(header["epochs"], "epochs")
            self.loss = real_number(header["mean_loss"], "mean_loss", finite=False)
            spent = real_number(header["spent"], "spent")
        all_sizes.started = min(all_sizes.started, time.perf_counter() - spent)

    # -- the descent ---------------------------------------------------------------------------

    def resume(self, descent: Descent, epochs: int, n_batches: int) -> int:
        """Bring a descent to where it was. Return how many of its epochs are done."""
        if self._record is None:
            return 0
        assert self._all.saver is not None
        with self._all.saver.sound():
            if self.epochs > epochs:
                raise ValueError("it has more epochs than a descent")
            layout = {
                f"{name}_{k}": Array("f", tuple(part.shape), least)
                for name, least in OF_A_DESCENT.items()
                for k, part in enumerate(descent.parts)
            }
            arrays = check_arrays(self._record[1], layout, {})
        each = range(len(descent.parts))
        state = ([arrays[f"{name}_{k}"] for k in each] for name in OF_A_DESCENT)
        descent.resume(*state, n_steps=self.epochs * n_batches)
        return self.epochs

    def keep(self, descent: Descent, epochs: int, loss: float) -> None:
        """Keep a descent after some epochs, if there is a checkpoint."""
        self.epochs, self.loss = epochs, loss
        if self._all.saver is None:
            return
        arrays = {
            f"{name}_{k}": np.array(to_host(array))
            for name, own in zip(OF_A_DESCENT, descent.state(), strict=True)
            for k, array in enumerate(own)
        }
        if all(np.isfinite(array).all() for array in arrays.values()):
            self._all.write({"passing": True, **self._header()}, arrays)

    # -- the result ----------------------------------------------------------------------------

    def finish(self, found: PathEntry | None, parameters: Sequence[Any]) -> None:
        """Keep the tuned entry, or None if it was refused."""
        header: dict[str, Any] = {"accepted": found is not None, **self._header()}
        arrays = {}
        if found is not None:
            header |= {"certificate": list(found.certificate)}
            header |= {name: getattr(found, name) for name in NUMBERS}
            arrays = {f"parameter_{k}": np.array(to_host(p)) for k, p in enumerate(parameters)}
            arrays |= {"weights": found.weights, "base": found.base, "means": found.means}
        self._all.write(header, arrays)

    def result(self, chosen: PathEntry, atoms: Tunable) -> PathEntry | None:
        """Return the tuned entry of a size that is done, or None if it was refused.

        The records of its atoms are those of the chosen ones.
        """
        assert self._record is not None
        assert self._all.saver is not None
        header, arrays = self._record
        with self._all.saver.sound():
            if header["accepted"] is False:
                check_arrays(arrays, {}, {})
                return None
            layout = {
                f"parameter_{k}": Array("f", tuple(part.shape))
                for k, part in enumerate(atoms.start)
            }
            for name in ("weights", "base", "means"):
                layout[name] = Array("f", getattr(chosen, name).shape)
            arrays = check_arrays(arrays, layout, {})
            parameters = [
                numbers_like(arrays[f"parameter_{k}"], part) for k, part in enumerate(atoms.start)
            ]
            numbers: dict[str, Any] = {n: real_number(header[n], n) for n in NUMBERS}
            return replace(
                chosen,
                map=atoms.map(parameters),
                weights=arrays["weights"],
                base=arrays["base"],
                means=arrays["means"],
                certificate=read_certificate(header["certificate"]),
                steepest=np.nan,
                **numbers,
            )

    def _header(self) -> dict[str, Any]:
        return {
            "key": self.key, "size": self._size, "epochs": self.epochs, "mean_loss": self.loss,
        }  # fmt: skip

"""Checkpoints: the loop's state in a file, so that a killed fit ends with the identical model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.stages import Settle, State
from laconic.correct.objective import Certificate
from laconic.files.journal import EVERY, Record, Saver
from laconic.files.layout import Array, check_arrays, real_number, whole_number
from laconic.pools.base import BoundPool

# Numbers of an entry, and those of them that may be NaN or infinite.
_NUMBERS = ("loss", "objective", "inner", "steepest", "cost", "seconds")
_ANY = {"steepest"}

# Arrays of a record: those of all its entries, one after the other. The settling stage has more.
_LAYOUT = {
    "numbers": Array("i", ("atoms",), 0, below="pool"),
    "gains": Array("f", ("atoms",)),
    "weights": Array("f", ("columns", "outputs")),
    "means": Array("f", ("columns",)),
    "base": Array("f", ("items", "outputs")),
}


class Checkpoint(Saver):
    """Writes the state of a booster's loop, and reads it back.

    A record holds the entries that are new or have changed since the one before, and all else that
    a state is made of. So all records together are as large as the path, not as its square. What
    only the settling stage knows is written and read as its `laconic.boost.stages.Own` says.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Only a state of this fingerprint is taken up.
    every : float
        Seconds between two records.
    """

    def __init__(
        self, path: str | os.PathLike[str], fingerprint: str, every: float = EVERY
    ) -> None:
        super().__init__(path, "checkpoint", fingerprint, every)
        self._held: dict[str, list[PathEntry]] = {}

    # -- writing -------------------------------------------------------------------------------

    def snapshot(self, state: State) -> State:
        """The state with lists of its own."""
        return state.copy()

    def write(self, snapshot: State) -> bool:
        """Append a record of the entries that the file does not hold yet."""
        items: list[dict[str, Any]] = []
        new: list[PathEntry] = []
        lists = _lists(snapshot)
        if _begins(self._held.get("entries", []), lists["entries"]):
            lists["entries"] = self._held["entries"]
        for name, entries in lists.items():
            held = self._held.get(name, [])
            for at, entry in enumerate(entries):
                if at >= len(held) or held[at] is not entry:
                    items.append({"list": name, "at": at, **_described(entry)})
                    new.append(entry)
        header = {
            **snapshot.own.numbers(),
            "lengths": {name: len(entries) for name, entries in lists.items()},
            "items": items,
        }
        outputs = len(snapshot.entries[0].base)
        written = self.file.append(header, {**_arrays(new, outputs), **snapshot.own.arrays()})
        if written:
            self._held = lists
        return written

    # -- reading -------------------------------------------------------------------------------

    def resume(self, pool: BoundPool, n_outputs: int, settle: Settle) -> State:
        """The state in the file as far as the stage's limits go, or a new one if it has none."""
        state = State(settle.begin())
        with self.reading() as records:
            if not records:
                return state
            self._read(records, pool, n_outputs, state)
        try:
            settle.trim(state)
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path} {error}") from error
        return state

    def _read(self, records: list[Record], pool: BoundPool, n_outputs: int, state: State) -> None:
        """Fill a new state."""
        lists, known = _lists(state), dict[int, Any]()
        self._held = {name: [] for name in lists}
        layout = {**_LAYOUT, **state.own.layout}
        for header, arrays in records:
            # Files of old also have the arrays of other stages, without items.
            arrays = {name: a for name, a in arrays.items() if name in layout or len(a)}
            dimensions = {"pool": pool.n_atoms, "outputs": n_outputs, "items": len(header["items"])}
            arrays = check_arrays(arrays, layout, dimensions)
            self._take_up(header, arrays, pool, known)
        for name, entries in lists.items():
            entries += self._held[name]
        state.own.read(header, arrays)
        if not (state.entries and state.own.sound(state.entries)):
            raise ValueError("its entries do not fit together")

    def _take_up(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        pool: BoundPool,
        known: dict[int, Any],
    ) -> None:
        """Bring the lists to what a record says; ``known`` has the atoms met so far."""
        atom = column = 0
        for number, item in enumerate(header["items"]):
            size, at = whole_number(item["size"], "size"), whole_number(item["at"], "at")
            chosen = tuple(arrays["numbers"][atom : atom + size].tolist())
            if len(set(chosen)) != size:
                raise ValueError("an entry does not have the atoms that it should")
            width = sum(pool.width(n) for n in chosen)
            atoms, columns = slice(atom, atom + size), slice(column, column + width)
            for n in chosen:
                if n not in known:
                    known[n] = pool.atom(n)
            entry = PathEntry(
                numbers=chosen,
                atoms=tuple(known[n] for n in chosen),
                map=pool.extract(chosen),
                weights=arrays["weights"][columns],
                base=arrays["base"][number],
                scales=pool.scales(chosen),
                means=arrays["means"][columns],
                gains=tuple(arrays["gains"][atoms].tolist()),
                certificate=_certificate(item["certificate"]),
                **{n: real_number(item[n], n, finite=n not in _ANY) for n in _NUMBERS},
            )
            entries = self._held[item["list"]]
            if at > len(entries):
                raise ValueError("an entry is missing")
            entries[at : at + 1] = [entry]
            atom, column = atoms.stop, columns.stop
        if (atom, column) != (len(arrays["numbers"]), len(arrays["means"])):
            raise ValueError("its arrays are longer than its entries")
        for name, entries in self._held.items():
            length = whole_number(header["lengths"][name], "lengths")
            if length > len(entries):
                raise ValueError("entries are missing")
            del entries[length:]


def _lists(state: State) -> dict[str, list[PathEntry]]:
    """The lists of entries in a state, by the names that files have for them."""
    return {"entries": state.entries, **state.own.lists()}


def _begins(held: list[PathEntry], entries: list[PathEntry]) -> bool:
    """Whether the file has the same path, and more of it: a fit of a smaller size shall not cut it.

    Entries that differ in what they know of their gradients are the same.
    """
    shorter = len(entries) < len(held)
    pairs = zip(held, entries, strict=False)
    return shorter and all(one.weights is other.weights for one, other in pairs)


def _described(entry: PathEntry) -> dict[str, Any]:
    """What a record's header says of an entry."""
    numbers = {name: getattr(entry, name) for name in _NUMBERS}
    return {**numbers, "size": entry.size, "certificate": list(entry.certificate)}


def _arrays(entries: list[PathEntry], outputs: int) -> dict[str, np.ndarray]:
    """The arrays of entries, one after the other."""

    def joined(parts: list[Any], dtype: Any, *shape: int) -> np.ndarray:
        return np.concatenate([np.empty((0, *shape), dtype=dtype), *parts])

    return {
        "numbers": joined([np.array(e.numbers, dtype=np.int64) for e in entries], np.int64),
        "gains": joined([np.array(e.gains, dtype=np.float64) for e in entries], np.float64),
        "weights": joined([e.weights for e in entries], np.float64, outputs),
        "means": joined([e.means for e in entries], np.float64),
        "base": joined([e.base[None] for e in entries], np.float64, outputs),
    }


def _certificate(stored: Any) -> Certificate:
    gap, decrement, gradient, evaluations, products, converged = stored
    if not isinstance(converged, bool):
        raise ValueError("converged must be true or false")
    return Certificate(
        gap=real_number(gap, "gap", finite=False),
        decrement=real_number(decrement, "decrement", finite=False),
        gradient=real_number(gradient, "gradient", finite=False),
        evaluations=whole_number(evaluations, "evaluations"),
        products=whole_number(products, "products"),
        converged=converged,
    )

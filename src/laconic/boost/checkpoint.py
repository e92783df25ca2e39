"""Checkpoints: save the loop's state, so that a killed fit can resume to the identical model."""

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
from laconic.pools.opened import PREFIX, OpenPool

# Numbers of an entry. Those in `_ANY` may be NaN or infinite.
_NUMBERS = ("loss", "objective", "inner", "steepest", "cost", "seconds")
_ANY = {"steepest"}

# Arrays of a record. Each joins the arrays of all the record's entries. The settling stage adds
# its own arrays.
_LAYOUT = {
    "numbers": Array("i", ("atoms",), 0, below="pool"),
    "gains": Array("f", ("atoms",)),
    "weights": Array("f", ("columns", "outputs")),
    "means": Array("f", ("columns",)),
    "base": Array("f", ("items", "outputs")),
}


class Checkpoint(Saver):
    """Writes the state of a booster's loop to a file, and reads it back.

    A record holds the entries that are new or have changed since the previous record, and the rest
    of the state. So the size of the file grows with the path, not with its square. The settling
    stage has its own part of the state. Its `laconic.boost.stages.Own` decides how that part is
    written and read.

    Steps after the loop, such as tuning, may add records of their own to ``file``. Their headers
    have an entry ``step``, and `resume` puts them in ``steps``.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Only a file with this fingerprint is read.
    every : float
        Seconds between two records.
    """

    def __init__(
        self, path: str | os.PathLike[str], fingerprint: str, every: float = EVERY
    ) -> None:
        super().__init__(path, "checkpoint", fingerprint, every)
        self._held: dict[str, list[PathEntry]] = {}
        self.steps: list[Record] = []
        self._pool: OpenPool | None = None
        # Atoms that are not in the pool's list: those in the file, and those of the last snapshot.
        self._joined = self._joining = 0

    # -- writing -------------------------------------------------------------------------------

    def snapshot(self, state: State) -> State:
        """Return a copy of the state with its own lists."""
        if self._pool is not None:
            self._joining = self._pool.n_joined
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
        arrays = {**_arrays(new, len(snapshot.entries[0].base)), **snapshot.own.arrays()}
        if self._pool is not None and self._joining > self._joined:
            header["joined"], own = self._pool.written(self._joined, self._joining)
            arrays |= own
        written = self.file.append(header, arrays)
        if written:
            self._held, self._joined = lists, self._joining
        return written

    # -- reading -------------------------------------------------------------------------------

    def resume(self, pool: BoundPool, n_outputs: int, settle: Settle) -> State:
        """Return the state in the file, or a new state if there is none.

        The state is cut to the limits of the settling stage.
        """
        state = State(settle.begin())
        self._pool = pool if isinstance(pool, OpenPool) else None
        with self.reading() as read:
            self.steps = [record for record in read if "step" in record[0]]
            records = [record for record in read if "step" not in record[0]]
            if not records:
                return state
            self._read(records, pool, n_outputs, state)
        try:
            settle.trim(state)
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path} {error}") from error
        return state

    def _read(self, records: list[Record], pool: BoundPool, n_outputs: int, state: State) -> None:
        """Fill a new state from the records of a file."""
        lists, known = _lists(state), dict[int, Any]()
        self._held = {name: [] for name in lists}
        known_arrays, later = {**_LAYOUT, **state.own.layout}, state.own.later
        for header, arrays in records:
            arrays = self._let_join(header, arrays)
            # Older files also have the arrays of other stages, which are empty.
            arrays = {name: a for name, a in arrays.items() if name in known_arrays or len(a)}
            layout = {n: a for n, a in known_arrays.items() if n in arrays or n not in later}
            dimensions = {"pool": pool.n_atoms, "outputs": n_outputs, "items": len(header["items"])}
            arrays = check_arrays(arrays, layout, dimensions)
            self._take_up(header, arrays, pool, known)
        for name, entries in lists.items():
            entries += self._held[name]
        state.own.read(header, arrays)
        if not (state.entries and state.own.sound(state.entries)):
            raise ValueError("its entries do not fit together")

    def _let_join(
        self, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Let the atoms of a record join that the pool does not list. Return its other arrays."""
        own = {name: array for name, array in arrays.items() if name.startswith(PREFIX)}
        if own:
            if self._pool is None:
                raise ValueError("it has atoms that are not in the list of the pool")
            self._joined += self._pool.read(header["joined"], own)
        return {name: array for name, array in arrays.items() if name not in own}

    def _take_up(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        pool: BoundPool,
        known: dict[int, Any],
    ) -> None:
        """Update the lists from a record. ``known`` holds the atoms read so far."""
        atom = column = 0
        for number, item in enumerate(header["items"]):
            size, at = whole_number(item["size"], "size"), whole_number(item["at"], "at")
            chosen = tuple(arrays["numbers"][atom : atom + size].tolist())
            if len(set(chosen)) != size:
                raise ValueError("an entry has too few atoms or repeats one")
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
                certificate=read_certificate(item["certificate"]),
                footprint=_optional(item.get("footprint")),
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
    """Return the lists of entries in a state, by their names in files."""
    return {"entries": state.entries, **state.own.lists()}


def _begins(held: list[PathEntry], entries: list[PathEntry]) -> bool:
    """Return whether the file holds the same path and more of it.

    A fit of a smaller size must not cut such a path. Two entries count as the same if they differ
    only in what is known about their gradients.
    """
    shorter = len(entries) < len(held)
    pairs = zip(held, entries, strict=False)
    return shorter and all(one.weights is other.weights for one, other in pairs)


def _described(entry: PathEntry) -> dict[str, Any]:
    """Return the part of a record's header that describes an entry."""
    numbers = {name: getattr(entry, name) for name in _NUMBERS}
    if entry.footprint is not None:
        numbers["footprint"] = entry.footprint
    return {**numbers, "size": entry.size, "certificate": list(entry.certificate)}


def _arrays(entries: list[PathEntry], outputs: int) -> dict[str, np.ndarray]:
    """Return the arrays of the entries, joined in order."""

    def joined(parts: list[Any], dtype: Any, *shape: int) -> np.ndarray:
        return np.concatenate([np.empty((0, *shape), dtype=dtype), *parts])

    return {
        "numbers": joined([np.array(e.numbers, dtype=np.int64) for e in entries], np.int64),
        "gains": joined([np.array(e.gains, dtype=np.float64) for e in entries], np.float64),
        "weights": joined([e.weights for e in entries], np.float64, outputs),
        "means": joined([e.means for e in entries], np.float64),
        "base": joined([e.base[None] for e in entries], np.float64, outputs),
    }


def _optional(stored: Any) -> int | None:
    """Return a footprint. Files of fits without a chip have none."""
    return None if stored is None else whole_number(stored, "footprint")


def read_certificate(stored: Any) -> Certificate:
    """Return the certificate in a record's header."""
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

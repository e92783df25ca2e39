"""Checkpoints: the loop's state in a file, so that a killed fit ends with the identical model."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.stages import RefinementState, SearchState, State
from laconic.correct.objective import Certificate
from laconic.files.journal import EVERY, Record, Saver
from laconic.files.layout import Array, check_arrays, real_number, whole_number
from laconic.pools.base import BoundPool

# Lists of entries in a state.
_LISTS = ("entries", "offered", "refined")
# Numbers of an entry, and those of them that may be NaN or infinite.
_NUMBERS = ("loss", "objective", "inner", "steepest", "cost", "seconds")
_ANY = {"steepest"}

# Arrays of a record: those of all its entries, one after the other.
_LAYOUT = {
    "generated": Array("i", ("generated",), 0, below="pool"),
    "numbers": Array("i", ("atoms",), 0, below="pool"),
    "gains": Array("f", ("atoms",)),
    "weights": Array("f", ("columns", "outputs")),
    "means": Array("f", ("columns",)),
    "base": Array("f", ("items", "outputs")),
}


class Checkpoint(Saver):
    """Writes the state of a booster's loop, and reads it back.

    A record holds the entries that are new or have changed since the one before, and all else that
    a state is made of. So all records together are as large as the path, not as its square.

    Parameters
    ----------
    path : str or path-like
    fingerprint : str
        Only a state of this fingerprint is taken up.
    max_atoms : int
        Largest size of the fit. A fit of another largest size takes up the grown path as far as it
        goes, and refines anew.
    every : float
        Seconds between two records.
    cut : bool
        Whether a path is taken up to that size only. TotalQBoost counts rounds, and its models have
        other sizes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: str,
        max_atoms: int,
        every: float = EVERY,
        cut: bool = True,
    ) -> None:
        super().__init__(path, "checkpoint", fingerprint, every)
        self.max_atoms = max_atoms
        self.cut = cut
        self._held: dict[str, list[PathEntry]] = {name: [] for name in _LISTS}

    # -- writing -------------------------------------------------------------------------------

    def snapshot(self, state: State) -> State:
        """The state with lists of its own; entries never change."""
        search, refinement = state.search, state.refinement
        return State(
            list(state.entries),
            replace(search, generated=list(search.generated), offered=list(search.offered)),
            replace(refinement, entries=list(refinement.entries)),
            state.status,
        )

    def write(self, snapshot: State) -> bool:
        """Append a record of the entries that the file does not hold yet."""
        items: list[dict[str, Any]] = []
        new: list[PathEntry] = []
        lists = _lists(snapshot)
        if _begins(self._held["entries"], lists["entries"]):
            lists["entries"] = self._held["entries"]
        for name, entries in lists.items():
            held = self._held[name]
            for at, entry in enumerate(entries):
                if at >= len(held) or held[at] is not entry:
                    items.append({"list": name, "at": at, **_described(entry)})
                    new.append(entry)
        header = {
            "max_atoms": self.max_atoms,
            "swept": snapshot.refinement.swept,
            "searched": snapshot.search.searched,
            "bound": snapshot.search.bound,
            "lengths": {name: len(entries) for name, entries in lists.items()},
            "items": items,
        }
        written = self.file.append(header, _arrays(new, snapshot))
        if written:
            self._held = lists
        return written

    # -- reading -------------------------------------------------------------------------------

    def resume(self, pool: BoundPool, n_outputs: int) -> State:
        """The state in the file, or a new one if there is none yet."""
        with self.reading() as records:
            return self._resumed(records, pool, n_outputs) if records else State()

    def _resumed(self, records: list[Record], pool: BoundPool, n_outputs: int) -> State:
        known: dict[int, Any] = {}
        for record in records:
            self._take_up(record, pool, n_outputs, known)
        header, arrays = records[-1]
        same = whole_number(header["max_atoms"], "max_atoms") == self.max_atoms
        swept = whole_number(header["swept"], "swept")
        state = State(
            search=SearchState(
                generated=arrays["generated"].tolist(),
                searched=whole_number(header["searched"], "searched", -1),
                bound=real_number(header["bound"], "bound", finite=False),
            ),
            refinement=RefinementState(swept=swept if same else 0),
        )
        for name, kept in _lists(state).items():
            if name == "refined" and not same:
                continue
            for entry in self._held[name]:
                if self.cut and entry.size > self.max_atoms:
                    break
                kept.append(entry)
        _check_state(state)
        return state

    def _take_up(
        self, record: Record, pool: BoundPool, n_outputs: int, known: dict[int, Any]
    ) -> None:
        """Bring the lists to what a record says."""
        header, arrays = record
        items = header["items"]
        dimensions = {"pool": pool.n_atoms, "outputs": n_outputs, "items": len(items)}
        arrays = check_arrays(arrays, _LAYOUT, dimensions)
        atom = column = 0
        for number, item in enumerate(items):
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
        for name in _LISTS:
            length = whole_number(header["lengths"][name], "lengths")
            if length > len(self._held[name]):
                raise ValueError("entries are missing")
            del self._held[name][length:]


def _lists(state: State) -> dict[str, list[PathEntry]]:
    """The lists of entries in a state, by the names that files have for them."""
    return {
        "entries": state.entries,
        "offered": state.search.offered,
        "refined": state.refinement.entries,
    }


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


def _arrays(entries: list[PathEntry], state: State) -> dict[str, np.ndarray]:
    """The arrays of entries, one after the other."""
    outputs = len(state.entries[0].base)

    def joined(parts: list[Any], dtype: Any, *shape: int) -> np.ndarray:
        return np.concatenate([np.empty((0, *shape), dtype=dtype), *parts])

    return {
        "generated": np.array(state.search.generated, dtype=np.int64),
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


def _check_state(state: State) -> None:
    """Refuse a state that no fit was ever in."""
    generated, entries = state.search.generated, state.entries
    among = set(generated)
    sound = (
        bool(entries)
        and len(state.refinement.entries) <= len(entries)
        and len(among) == len(generated)
        and state.search.searched <= len(generated)
    )
    if sound and among:  # atoms that are always in are those of the first entry
        among.update(entries[0].numbers)
        sound = all(among.issuperset(entry.numbers) for entry in entries)
    if not sound:
        raise ValueError("its entries do not fit together")

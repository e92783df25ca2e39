"""New weights for the atoms of a model, on the processor or on a device.

The atoms stay as they are. So their values are computed once and are the input columns, and all
columns of a size are in from the start. Nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from _common import progress

from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder
from laconic.correct import Newton
from laconic.estimators.on_device import TrainingOnDevice
from laconic.estimators.training import TrainingInMemory
from laconic.losses import find_loss
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Columns
from laconic.rows.asked import RowsAsked
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows


def new_weights(
    chosen: Any,
    X: np.ndarray,
    y: np.ndarray,
    sizes: Iterable[int],
    alpha: float,
    tol: float,
    device: str | None = None,
) -> list[PathEntry]:
    """Fit weights to the first atoms of a map, for a few sizes. Every atom has one column.

    The margin loss is minimised with an l2 penalty, as `ShareBoostClassifier` does by default. A
    size beyond the number of atoms means all atoms.
    """
    codes = np.unique(y, return_inverse=True)[1]
    values = chosen.columns(X)
    n_atoms = values.shape[1]
    progress(f"{n_atoms} atoms on {len(X)} rows")
    entries = []
    with Threads() as threads:
        rows = rows_of(values, codes, threads, device)
        record, weights = Recorder(rows), None
        for size in sorted({min(size, n_atoms) for size in sizes}):
            rows.reset(range(size))
            solution = Newton(tol).solve(rows, L2(alpha), rows.padded(weights))
            progress(f"{size} atoms, loss {solution.loss:.5f}")
            weights, first = solution.weights, chosen.take(range(size))
            entry = record.entry(solution, ())
            entries.append(replace(entry, map=first, atoms=tuple(first.atoms(range(size)))))
    return entries


def rows_of(values: np.ndarray, codes: np.ndarray, threads: Threads, device: str | None) -> Rows:
    """Return rows of equal weight, whose pool is the columns of the values."""
    given = values, codes, np.full(len(codes), 1.0 / len(codes))
    training: Any = TrainingInMemory(*given)
    if device is not None:
        from laconic.device.place import find_device

        training = TrainingOnDevice(*given, find_device(device))
    loss = find_loss("margin")
    n_outputs = loss.n_outputs(int(codes.max()) + 1)
    asked = RowsAsked(Columns(), False, loss, n_outputs, threads, True, Limits())
    rows: Rows = training.rows(asked)
    return rows

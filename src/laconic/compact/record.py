"""The checkpoint of a search: a journal with one record for every fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.compact.search import Outcome
from laconic.files.journal import Journal

KIND = "compact search"


class SearchRecord:
    """A journal of outcomes. ``known`` has those that the file held when it was opened."""

    def __init__(self, path: Any, mark: str, shape: tuple[int, ...]) -> None:
        self._journal = Journal(path, KIND, mark)
        try:
            self.known = [self._read(*record, shape) for record in self._journal.records]
        except ValueError:
            self._journal.close()
            raise

    def _read(self, header: Any, arrays: Any, shape: tuple[int, ...]) -> Outcome:
        """Return an outcome of the file. A stranger may have written it."""
        if "table" not in arrays:
            return Outcome(None, str(header.get("why", ""))[:1000])
        table = np.asarray(arrays["table"])
        if table.dtype != np.float64 or table.shape != shape or np.isinf(table).any():
            raise ValueError(
                f"checkpoint {self._journal.path} is not sound: a table has another shape; name "
                "another file, or delete it to start again"
            )
        return Outcome(table)

    def add(self, outcome: Outcome) -> None:
        """Write an outcome."""
        arrays = {} if outcome.table is None else {"table": outcome.table}
        self._journal.append({"why": outcome.why}, arrays)

    def __enter__(self) -> SearchRecord:
        return self

    def __exit__(self, *exc: object) -> None:
        self._journal.close()

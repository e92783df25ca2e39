"""The state of a subset search between two rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from laconic.boost.path import PathEntry
from laconic.boost.stages import Own
from laconic.files.layout import Array, real_number, whole_number


@dataclass
class SearchState(Own):
    """What `laconic.boost.search_subset.SearchSubset` keeps in addition to the path."""

    layout: ClassVar[Mapping[str, Array]] = {
        "generated": Array("i", ("generated",), 0, below="pool"),
        "intercepts": Array("f", ("entries", "outputs")),
    }
    later: ClassVar[frozenset[str]] = frozenset({"intercepts"})

    generated: list[int] = field(default_factory=list)
    """TotalQBoost's H: every atom that was ever added, even if it was dropped later."""
    offered: list[PathEntry] = field(default_factory=list)
    """The best models of every size that the search after a hot start found."""
    searched: int = -1
    """Size of H at the first search, or -1 before it. After the first search, every round does a
    search."""
    bound: float = -np.inf
    """Proven lower bound on the problem of the last search, or -inf if nothing is proven."""
    intercepts: list[np.ndarray] = field(default_factory=list)
    """Intercept of the fit behind every path entry, (n_outputs,) each, as the search found it. The
    entry has the other weights of the fit, bit for bit."""

    def copy(self) -> SearchState:
        """Return a copy with its own lists."""
        return replace(
            self,
            generated=list(self.generated),
            offered=list(self.offered),
            intercepts=list(self.intercepts),
        )

    def lists(self) -> dict[str, list[PathEntry]]:
        """Return the models of every size."""
        return {"offered": self.offered}

    def numbers(self) -> dict[str, Any]:
        """Return the size of H at the first search, and the bound of the last search."""
        return {"searched": self.searched, "bound": self.bound}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return H and the intercepts."""
        return {
            "generated": np.array(self.generated, dtype=np.int64),
            "intercepts": np.array(self.intercepts, dtype=np.float64),
        }

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Read the numbers, H and the intercepts from a record."""
        self.generated = arrays["generated"].tolist()
        self.intercepts = list(arrays.get("intercepts", ()))
        self.searched = whole_number(header["searched"], "searched", -1)
        self.bound = real_number(header["bound"], "bound", finite=False)

    def sound(self, entries: list[PathEntry]) -> bool:
        """Return whether H repeats no atom and holds every atom of the entries.

        The first entry has the atoms that are always in, which need not be in H. Older files have
        no intercepts.
        """
        known = {*self.generated, *entries[0].numbers}
        return (
            len(set(self.generated)) == len(self.generated)
            and self.searched <= len(self.generated)
            and len(self.intercepts) in (0, len(entries))
            and all(known.issuperset(entry.numbers) for entry in entries)
        )

"""What a search for subsets knows between two rounds."""

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
    """What `laconic.boost.search_subset.SearchSubset` keeps beside the path."""

    layout: ClassVar[Mapping[str, Array]] = {
        "generated": Array("i", ("generated",), 0, below="pool"),
    }

    generated: list[int] = field(default_factory=list)
    """TotalQBoost's H: every atom that was ever added, those later dropped too."""
    offered: list[PathEntry] = field(default_factory=list)
    """The best models of every size that the search after a hot start found."""
    searched: int = -1
    """Size of H at the first search, after which every round does one; -1 before."""
    bound: float = -np.inf
    """Proven lower bound on the last search's problem; -inf where nothing is."""

    def copy(self) -> SearchState:
        """The same with lists of its own."""
        return replace(self, generated=list(self.generated), offered=list(self.offered))

    def lists(self) -> dict[str, list[PathEntry]]:
        """The models of every size."""
        return {"offered": self.offered}

    def numbers(self) -> dict[str, Any]:
        """When the first search was, and what the last one proved."""
        return {"searched": self.searched, "bound": self.bound}

    def arrays(self) -> dict[str, np.ndarray]:
        """H."""
        return {"generated": np.array(self.generated, dtype=np.int64)}

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over numbers and H."""
        self.generated = arrays["generated"].tolist()
        self.searched = whole_number(header["searched"], "searched", -1)
        self.bound = real_number(header["bound"], "bound", finite=False)

    def sound(self, entries: list[PathEntry]) -> bool:
        """Whether H has no atom twice, and all that the entries have beside the first one's."""
        known = {*self.generated, *entries[0].numbers}  # the first has the atoms that are always in
        return (
            len(set(self.generated)) == len(self.generated)
            and self.searched <= len(self.generated)
            and all(known.issuperset(entry.numbers) for entry in entries)
        )

"""What models cost, what an atom adds to that, and the caps that models must keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from laconic.boost.measures import Measure, Numbers

# Costs that add up to a cap count as within it despite rounding.
ROUNDING = 1e-12
# With room for so many atoms of the largest kind, atoms are not measured. The chosen one is.
AMPLE = 8


@dataclass(frozen=True)
class Cap:
    """The largest amount of a quantity that a model may have."""

    name: str
    """The setting that asks for it, such as ``"max_features"``."""
    most: float
    measure: Measure

    def excess(self, numbers: Numbers) -> float:
        """Return by how much a model of these atoms is above the cap, or 0 if it is within."""
        over = self.measure.of(numbers) - self.most
        return over if over > self.most * ROUNDING else 0.0

    def beyond(self, chosen: Numbers) -> np.ndarray:
        """Return the atoms that a model of the atoms ``chosen`` has no room for.

        There may be more of them if the pool does not know what its atoms add. So an atom that is
        taken must be checked again, with `excess`.
        """
        room = self.most * (1.0 + ROUNDING) - self.measure.of(chosen)
        if room > AMPLE * self.measure.largest:
            return np.empty(0, dtype=np.int64)
        added = self.measure.added(chosen)
        if added is None:
            return np.empty(0, dtype=np.int64)
        self.measure.largest = float(added.max(initial=0.0))
        return np.flatnonzero(added > room)


class Costs:
    """The cost of models of a pool's atoms, and the caps on what models use.

    The loop ranks atoms by what they add to the cost, and asks which atoms the caps allow. Searches
    and path entries ask the same object.

    Parameters
    ----------
    paid : Measure or None
        The cost. Atoms are ranked by gain per cost. If None, each atom costs 1, and cost does not
        count in the ranking.
    caps : sequence of Cap
        A model must keep all of them. They do not change the ranking.
    size : Measure or None
        The bytes of models on a target, if they are asked for.
    """

    def __init__(
        self, paid: Measure | None = None, caps: Sequence[Cap] = (), size: Measure | None = None
    ) -> None:
        self.paid = paid
        self.caps = tuple(caps)
        self.size = size
        self._last: tuple[tuple[int, ...], np.ndarray] | None = None

    @property
    def plain(self) -> bool:
        """Whether each atom costs 1 and there are no caps."""
        return self.paid is None and not self.caps

    def total(self, numbers: Numbers) -> float:
        """Return the cost of a model of these atoms."""
        return float(len(numbers)) if self.paid is None else self.paid.of(numbers)

    def least(self, chosen: Numbers) -> float:
        """Return the least cost that any other atom adds to a model of the atoms ``chosen``."""
        if self.paid is None:
            return 1.0
        added = self.paid.added(chosen)
        return 0.0 if added is None else float(np.delete(added, list(chosen)).min(initial=np.inf))

    def ranked(self, chosen: Numbers) -> np.ndarray | None:
        """Return the cost of each atom by which it is ranked beside the atoms ``chosen``.

        It is what the atom adds to the cost. An atom that adds nothing, because all that it needs
        is paid, is ranked as if it added the least price that there is. Without this limit its gain
        per cost would be infinite. Atoms of the first feature would then fill the model, however
        little they gain. With the limit, an atom that costs nothing is never preferred to an atom
        of the least price that gains more. All prices may be multiplied by a factor, and the
        ranking stays the same.
        """
        if self.paid is None:
            return None
        added = self.paid.added(chosen)
        return None if added is None else np.maximum(added, self.paid.least)

    def beyond(self, chosen: Numbers) -> np.ndarray:
        """Return the atoms for which the caps leave no room beside the atoms ``chosen``.

        `allows` checks one atom for certain; see `Cap.beyond`.
        """
        key = tuple(chosen)
        if self._last is None or self._last[0] != key:
            found = [np.empty(0, dtype=np.int64), *(cap.beyond(chosen) for cap in self.caps)]
            self._last = key, np.unique(np.concatenate(found))
        return self._last[1]

    def allows(self, numbers: Numbers) -> bool:
        """Return whether a model of these atoms is within all caps."""
        over = [cap for cap in self.caps if cap.excess(numbers)]
        for cap in over:
            cap.measure.largest = np.inf  # there is no ample room, so measure all atoms again
            self._last = None
        return not over

    def footprint(self, numbers: Numbers) -> int | None:
        """Return the bytes of a model on the target, or None if there is no target."""
        return None if self.size is None else round(self.size.of(numbers))

"""The kinds of atoms that can be tuned: the one place to register a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.numeric.threads import Threads
from laconic.registry import find
from laconic.tune.contract import Tunable


class TunableKind:
    """How the atoms of one kind of map become functions of their parameters.

    A kind has `start` and `tunable`. The other methods are for maps that cannot tell their atoms,
    that have very many columns, or that remark on the training rows.
    """

    def start(self, chosen: Any, tuned: Any, own: Sequence[int], free: bool) -> Any:
        """Return the map to start from.

        Atom a is that of ``chosen``, or atom ``own[a]`` of the map ``tuned`` if that is not
        negative. With ``free``, atoms may read more inputs, and take more operations and bytes,
        than the chosen ones.
        """
        raise NotImplementedError

    def tunable(self, given: Any, X: Any, threads: Threads, device: Any, free: bool) -> Tunable:
        """Return the atoms of a map as functions, on a device or, with None, on the processor.

        X are the rows that they are tuned on.
        """
        raise NotImplementedError

    def records(self, made: Any, before: Sequence[Any]) -> Sequence[Any]:
        """Return the records of the atoms of a map. ``before`` are those of the chosen atoms."""
        return made.atoms()

    def pool(self, made: Any, scales: np.ndarray, remarks: bool = False) -> Any:
        """Return a pool of the atoms of a map, or None to write their columns down.

        With ``remarks``, the pool extracts maps with what they say about the rows.
        """
        return None


KINDS = {
    "bumps": "laconic.tune.bumps:BumpKind",
    "hinges": "laconic.tune.hinges:HingeKind",
    "patches": "laconic.tune.patch_kind:PatchKind",
    "pieces": "laconic.tune.pieces:PieceKind",
}
"""Kinds of maps with what makes them functions of their parameters."""


def kind_of(given: FeatureMap) -> TunableKind:
    """Return the kind of a map. Refuse one whose atoms have no parameters."""
    name = getattr(given, "kind", type(given).__name__)
    if name not in KINDS:
        raise TypeError(
            f"atoms of the kind {name!r} cannot be tuned; tune=True takes {', '.join(KINDS)}"
        )
    made: TunableKind = find(KINDS[name])()
    return made

"""Patches as a kind of atoms that can be tuned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.model.patches import PatchesMap
from laconic.numeric.threads import Threads
from laconic.tune.contract import Tunable
from laconic.tune.kinds import TunableKind
from laconic.tune.patches import TunedPatches, apart


class PatchKind(TunableKind):
    """See `laconic.tune.kinds.TunableKind`."""

    def start(
        self, chosen: PatchesMap, tuned: PatchesMap | None, own: Sequence[int], free: bool
    ) -> PatchesMap:
        """Return the map to start from. With ``free``, each patch has a template of its own."""
        given = apart(chosen) if free else chosen
        if tuned is None:
            return given
        known = np.flatnonzero(np.asarray(own) >= 0)
        source = np.asarray(own)[known]
        images, learned = given.templates(), tuned.templates()
        for atom, other in zip(known.tolist(), source.tolist(), strict=True):
            images[given.template[atom]] = learned[tuned.template[other]]
        parts = given.arrays()
        parts["values"] = np.concatenate([image.ravel() for image in images])
        parts["centre"] = parts["centre"].copy()
        parts["sigma"] = parts["sigma"].copy()
        parts["centre"][known], parts["sigma"][known] = tuned.centre[source], tuned.sigma[source]
        return PatchesMap(**parts)

    def tunable(
        self, given: PatchesMap, X: Any, threads: Threads, device: Any, free: bool
    ) -> Tunable:
        """Return the patches as functions of their parameters. With ``free``, places move, too."""
        here = TunedPatches(given, threads, free)
        if device is None:
            return here
        from laconic.device.tuned_patches import DeviceTunedPatches

        return DeviceTunedPatches(here, given, device, free)

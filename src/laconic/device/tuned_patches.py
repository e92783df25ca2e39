"""Patches as functions of their parameters, on a device; see `laconic.tune.patches`.

The mathematics is the same. All responses of a batch are made at once, and the largest masked one
of every atom is found among them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.device.precision import full_precision
from laconic.model.masks import CUT
from laconic.model.patches import PatchesMap
from laconic.numeric.namespaces import to_host

# Most masked responses that are held at once: 1 GiB.
HELD = 1 << 28


class Seen(NamedTuple):
    """What the derivatives of some values need."""

    windows: list[Tensor]
    """For each size of templates: (n_images, positions, size²)."""
    masks: list[Tensor]
    parameters: list[Tensor]
    values: Tensor
    at: Tensor


class DeviceTunedPatches:
    """Patches as functions of their parameters; see `laconic.tune.contract.Tunable`.

    Parameters
    ----------
    here : TunedPatches
        The same patches on the host. It knows their parameters, and makes maps of them.
    given : PatchesMap
    device : torch.device
    places : bool
        Whether places and widths of the masks are tuned, too.
    """

    def __init__(self, here: Any, given: PatchesMap, device: torch.device, places: bool) -> None:
        self._here, self._places = here, places
        self._shape = int(given.shape[0]), int(given.shape[1])
        self._groups = here.groups
        self.units = here.units
        self.start = [self._there(array, device) for array in here.start]
        self._n_columns = len(given.template)
        self._masks = [
            torch.as_tensor(
                np.array([given.windows.mask(a).ravel() for a in group.place]), device=device
            )
            for group in self._groups
        ]

    def _there(self, array: np.ndarray, device: torch.device) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=device)

    def values(self, parameters: list[Tensor], X: Tensor) -> tuple[Tensor, Seen]:
        """Return the columns for some images, and what `slopes` needs."""
        images = X.float().view(-1, *self._shape)
        out = images.new_empty((self._n_columns, len(images)))
        at = torch.empty(out.shape, dtype=torch.int64, device=out.device)
        all_windows, all_masks = [], []
        with full_precision():
            for number, group in enumerate(self._groups):
                s = group.size
                windows = images.unfold(1, s, 1).unfold(2, s, 1).reshape(len(images), -1, s * s)
                masks = self._masks[number]
                if self._places:
                    masks = masks_of(parameters[-1][group.place], self._shape, s)
                self._largest(group, parameters[number], windows, masks, out, at)
                all_windows.append(windows)
                all_masks.append(masks)
        return out, Seen(all_windows, all_masks, parameters, out, at)

    def _largest(
        self, group: Any, templates: Tensor, windows: Tensor, masks: Tensor, out: Tensor, at: Tensor
    ) -> None:
        """Write the largest masked responses of one size of templates, and their positions."""
        n, positions, _ = windows.shape
        together = max(HELD // (n * positions), 1)
        for low in range(0, len(group.place), together):
            some = slice(low, low + together)
            own, place = group.template[some], group.place[some]
            used, first = np.unique(own, return_inverse=True)
            responses = templates[used].float() @ windows.view(n * positions, -1).T
            responses = responses.view(len(used), n, positions)
            if len(used) < len(own):
                responses = responses[first.ravel()]
            masked = responses * masks[some, None, :]
            largest, where = masked.max(2)
            positive = largest > 0
            out[place] = torch.where(positive, largest, 0.0)
            at[place] = torch.where(positive, where, -1)

    def slopes(self, kept: Seen, pull: Tensor) -> list[Tensor]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ."""
        sums = []
        with full_precision():
            for number, group in enumerate(self._groups):
                windows, masks = kept.windows[number], kept.masks[number]
                found = kept.at[group.place]
                at = found.clamp(min=0)
                force = pull[group.place].float() * masks.gather(1, at) * (found >= 0)
                rows = torch.arange(len(windows), device=at.device)
                total = torch.bmm(force[:, None, :], windows[rows, at])[:, 0].double()
                shared = np.arange(len(group.own))[:, None] == group.template
                if shared.shape[0] < shared.shape[1]:
                    total = torch.as_tensor(shared, dtype=total.dtype, device=at.device) @ total
                else:
                    total = total[np.argsort(group.template)]
                sums.append(total)
            if self._places:
                sums.append(self._slopes_of_places(kept, pull))
        return sums

    def _slopes_of_places(self, kept: Seen, pull: Tensor) -> Tensor:
        out = torch.zeros_like(kept.parameters[-1])
        for group in self._groups:
            across = self._shape[1] + 1 - group.size
            centre, sigma = kept.parameters[-1][group.place].split([2, 1], dim=1)
            at = kept.at[group.place]
            row, column = torch.div(at, across, rounding_mode="floor"), at % across
            away = torch.stack([row, column], 2) + (group.size - 1) / 2 - centre[:, None]
            force = pull[group.place].double() * kept.values[group.place].double() * (at >= 0)
            moved = (force[:, :, None] * away).sum(1) / sigma**2
            wider = (force * (away**2).sum(2)).sum(1)[:, None] / sigma**3
            out[group.place] = torch.cat([moved, wider], 1)
        return out

    def settled(self, parameters: list[Tensor]) -> list[Tensor]:
        """Return templates of zero mean and unit norm, and masks that find a place."""
        return self._here.settled(parameters)

    def map(self, parameters: list[Tensor]) -> PatchesMap:
        """Return the map of the patches that these parameters make."""
        made: PatchesMap = self._here.map([to_host(array) for array in parameters])
        return made


def masks_of(places: Tensor, shape: tuple[int, int], size: int) -> Tensor:
    """Return the masks of places and widths (n, 3) at all positions, as `model.masks` does."""
    y, x = (
        torch.arange(n - size + 1, device=places.device, dtype=places.dtype) + (size - 1) / 2
        for n in shape
    )
    row, column, sigma = (part[:, None, None] for part in places.T)
    squared = (y[:, None] - row) ** 2 + (x - column) ** 2
    weights = torch.exp(-squared / (2.0 * sigma**2))
    inside = squared <= (CUT * sigma) ** 2
    return torch.where(inside, weights, 0.0).float().flatten(1)

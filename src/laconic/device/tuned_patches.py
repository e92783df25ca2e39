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
from laconic.model.patches import PatchesMap, normed
from laconic.numeric.namespaces import to_host

# Most masked responses that are held at once: 1 GiB.
HELD = 1 << 28


class SeenThere(NamedTuple):
    """What the derivatives of some values need."""

    windows: list[Tensor]
    """For each size of templates: (n_images, positions, size²)."""
    masks: list[Tensor]
    parameters: list[Tensor]
    values: Tensor
    at: Tensor


class GroupThere(NamedTuple):
    """The atoms of one size of templates."""

    size: int
    template: Tensor
    """Number of the template of each atom."""
    place: Tensor | None
    """Number of the column of each atom; None if these are all columns."""
    masks: Tensor
    """(atoms, positions)"""
    shares: Tensor | None
    """(templates, atoms): 1 where an atom has a template; None if each has its own, in order."""


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
        self.units = here.units
        self.start = [
            torch.as_tensor(array, dtype=torch.float64, device=device) for array in here.start
        ]
        self._n_columns = len(given.template)
        self._groups = [self._brought(group, given, device) for group in here.groups]
        self._low, self._high = (torch.as_tensor(b, device=device) for b in here.bounds)

    def _brought(self, group: Any, given: PatchesMap, device: torch.device) -> GroupThere:
        """Bring what is known about a group of atoms to the device."""
        masks = np.array([given.windows.mask(a).ravel() for a in group.place])
        shared = np.arange(len(group.own))[:, None] == group.template
        own = np.array_equal(shared, np.eye(len(group.place)))
        every = len(group.place) == self._n_columns
        return GroupThere(
            group.size,
            torch.as_tensor(group.template, device=device),
            None if every else torch.as_tensor(group.place, device=device),
            torch.as_tensor(masks, device=device),
            None if own else torch.as_tensor(shared, dtype=torch.float64, device=device),
        )

    def values(self, parameters: list[Tensor], X: Tensor) -> tuple[Tensor, SeenThere]:
        """Return the columns for some images, and what `slopes` needs."""
        images = X.float().view(-1, *self._shape)
        out = images.new_empty((self._n_columns, len(images)))
        at = torch.empty(out.shape, dtype=torch.int64, device=out.device)
        all_windows, all_masks = [], []
        with full_precision():
            for group, templates in zip(self._groups, parameters, strict=False):
                s = group.size
                windows = images.unfold(1, s, 1).unfold(2, s, 1).reshape(len(images), -1, s * s)
                masks = group.masks
                if self._places:
                    masks = masks_of(_of(group, parameters[-1]), self._shape, s)
                largest, where = _largest(group, templates.float(), windows, masks)
                if group.place is None:
                    out, at = largest, where
                else:
                    out[group.place], at[group.place] = largest, where
                all_windows.append(windows)
                all_masks.append(masks)
        return out, SeenThere(all_windows, all_masks, parameters, out, at)

    def slopes(self, kept: SeenThere, pull: Tensor) -> list[Tensor]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ."""
        sums = []
        with full_precision():
            for group, windows, masks in zip(self._groups, kept.windows, kept.masks, strict=True):
                found = _of(group, kept.at)
                at = found.clamp(min=0)
                force = _of(group, pull).float() * masks.gather(1, at) * (found >= 0)
                rows = torch.arange(len(windows), device=at.device)
                total = torch.bmm(force[:, None, :], windows[rows, at])[:, 0].double()
                sums.append(total if group.shares is None else group.shares @ total)
        if self._places:
            sums.append(self._slopes_of_places(kept, pull))
        return sums

    def _slopes_of_places(self, kept: SeenThere, pull: Tensor) -> Tensor:
        out = torch.zeros_like(kept.parameters[-1])
        for group in self._groups:
            across = self._shape[1] + 1 - group.size
            centre, sigma = _of(group, kept.parameters[-1]).split([2, 1], dim=1)
            at = _of(group, kept.at)
            row, column = torch.div(at, across, rounding_mode="floor"), at % across
            away = torch.stack([row, column], 2) + (group.size - 1) / 2 - centre[:, None]
            force = _of(group, pull).double() * _of(group, kept.values).double() * (at >= 0)
            moved = (force[:, :, None] * away).sum(1) / sigma**2
            wider = (force * (away**2).sum(2)).sum(1)[:, None] / sigma**3
            out[slice(None) if group.place is None else group.place] = torch.cat([moved, wider], 1)
        return out

    def settled(self, parameters: list[Tensor]) -> list[Tensor]:
        """Return templates of zero mean and unit norm, and masks that find a place."""
        templates = [normed(given) for given in parameters[: len(self._groups)]]
        if not self._places:
            return templates
        return [*templates, torch.minimum(torch.maximum(parameters[-1], self._low), self._high)]

    def map(self, parameters: list[Tensor]) -> PatchesMap:
        """Return the map of the patches that these parameters make."""
        made: PatchesMap = self._here.map([to_host(array) for array in parameters])
        return made


def _of(group: GroupThere, lines: Tensor) -> Tensor:
    """Return the lines of the atoms of a group."""
    return lines if group.place is None else lines[group.place]


def _largest(
    group: GroupThere, templates: Tensor, windows: Tensor, masks: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the largest masked response of each atom and its position, or 0 and -1."""
    n, positions, _ = windows.shape
    n_atoms, flat = len(group.template), windows.view(n * positions, -1).T
    together = n_atoms if group.shares is None else max(HELD // (n * positions), 1)
    responses = (templates @ flat).view(-1, n, positions)
    parts = []
    for low in range(0, n_atoms, together):
        s = slice(low, low + together)
        own = responses if group.shares is None else responses[group.template[s]]
        parts.append((own * masks[s, None, :]).max(2))
    largest, where = (torch.cat(found) for found in zip(*parts, strict=True))
    positive = largest > 0
    return torch.where(positive, largest, 0.0), torch.where(positive, where, -1)


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

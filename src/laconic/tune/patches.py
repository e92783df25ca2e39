"""Patches as functions of their templates, and of the places and widths of their masks.

The value of a patch is z = g(p*) ⟨v, window at p*⟩, where p* is the position of the largest masked
response. Almost everywhere p* does not move with the parameters, so by Danskin's theorem

    ∂z/∂v = g(p*) · window at p*,
    ∂z/∂c = z (p* − c) / σ²,
    ∂z/∂σ = z ‖p* − c‖² / σ³,

with p* at the middle of the window. A patch without a positive response has the value 0 and no
derivative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.model.patches import PatchesMap, normed
from laconic.model.windows import images_of
from laconic.numeric.threads import Threads, row_blocks

# Images that one thread computes side by side.
LANES = 64
# Narrowest mask that tuning makes, in pixels. The nearest position is always under it.
NARROWEST = 0.5


class SizeGroup(NamedTuple):
    """The atoms whose templates have one size."""

    size: int
    own: np.ndarray
    """Numbers of the templates of this size."""
    template: np.ndarray
    """Number of the template of each atom, among ``own``."""
    place: np.ndarray
    """Number of the column of each atom."""


class SeenWindows(NamedTuple):
    """What the derivatives of some values need."""

    images: np.ndarray
    parameters: list[np.ndarray]
    values: np.ndarray
    at: np.ndarray
    """Position of the largest response, row by row, or -1; (n_columns, n_images)."""


def groups_of(windows: PatchesMap) -> list[SizeGroup]:
    """Return the atoms of a map by the size of their templates."""
    sizes = windows.size[windows.template]
    found = []
    for size in np.unique(sizes).tolist():
        place = np.flatnonzero(sizes == size)
        own, template = np.unique(windows.template[place], return_inverse=True)
        found.append(SizeGroup(size, own, template.ravel(), place))
    return found


def apart(given: PatchesMap) -> PatchesMap:
    """Return the same atoms, each with a template of its own."""
    images = given.templates()
    values = np.concatenate([images[t].ravel() for t in given.template])
    number, size = given.number[given.template], given.size[given.template]
    own = np.arange(len(given.template))
    return PatchesMap(given.shape, number, size, values, own, given.centre, given.sigma)


class TunedPatches:
    """Patches as functions of their parameters; see `laconic.tune.contract.Tunable`.

    Parameters
    ----------
    given : PatchesMap
    threads : Threads
    places : bool
        Whether places and widths of the masks are tuned, too.

    Notes
    -----
    The parameters are the templates of each size, (templates, size²), and with ``places`` the row,
    column and width of every mask, (atoms, 3).
    """

    def __init__(self, given: PatchesMap, threads: Threads, places: bool = False) -> None:
        self._given, self._threads, self._places = given, threads, places
        self._shape = int(given.shape[0]), int(given.shape[1])
        self.groups = groups_of(given)
        images = given.templates()
        self.start = [
            normed(np.array([images[t].ravel() for t in group.own], dtype=np.float64))
            for group in self.groups
        ]
        self.units = [1.0 / group.size for group in self.groups]
        half = (given.size[given.template] - 1)[:, None] / 2
        narrowest, widest = (np.full((len(half), 1), end) for end in (NARROWEST, np.inf))
        self.bounds = (
            np.hstack([half, half, narrowest]),
            np.hstack([given.shape - 1 - half, widest]),
        )
        """The least and the largest places and widths."""
        if places:
            self.start.append(np.column_stack([given.centre, given.sigma]))
            self.units.append(1.0)

    def values(self, parameters: list[np.ndarray], X: Any) -> tuple[np.ndarray, SeenWindows]:
        """Return the columns for some images, and what `slopes` needs."""
        from laconic.tune.patch_kernels import maxima_and_places

        images = images_of(X, self._shape)
        n, n_atoms = len(images), len(self._given.template)
        out, at = np.empty((n_atoms, n), np.float32), np.empty((n_atoms, n), np.int32)
        work = [
            (group, parameters[number].astype(np.float32), *self._masks(group, parameters))
            for number, group in enumerate(self.groups)
        ]

        def one(s: slice) -> None:
            pixels = np.zeros((*self._shape, LANES), dtype=np.float32)
            sums, largest = np.empty((2, LANES), dtype=np.float32)
            found = np.empty(LANES, dtype=np.int32)
            for group, templates, masks, mask in work:
                atoms = templates, masks, group.template, mask, group.place, group.size
                room = pixels, sums, largest, found
                maxima_and_places(images[s], *atoms, *room, out[:, s], at[:, s])

        list(self._threads.map(one, row_blocks(n, LANES)))
        return out, SeenWindows(images, parameters, out, at)

    def slopes(self, kept: SeenWindows, pull: np.ndarray) -> list[np.ndarray]:
        """Return Σ_i Σ_j pull_ji ∂z_ij/∂θ."""
        from laconic.tune.patch_kernels import template_slopes

        work = [(group, *self._masks(group, kept.parameters)) for group in self.groups]

        def one(s: slice) -> list[np.ndarray]:
            found = []
            for group, masks, mask in work:
                total = np.zeros((len(group.own), group.size**2))
                atoms = masks, group.template, mask, group.place, group.size
                template_slopes(kept.images[s], *atoms, kept.at[:, s], pull[:, s], total)
                found.append(total)
            return found

        parts = list(self._threads.map(one, row_blocks(len(kept.images), LANES)))
        sums = [np.sum(of_group, axis=0) for of_group in zip(*parts, strict=True)]
        if self._places:
            sums.append(self._slopes_of_places(kept, pull))
        return sums

    def _slopes_of_places(self, kept: SeenWindows, pull: np.ndarray) -> np.ndarray:
        centre, sigma = kept.parameters[-1][:, :2], kept.parameters[-1][:, 2]
        across = self._shape[1] + 1 - self._given.size[self._given.template]
        half = (self._given.size[self._given.template] - 1) / 2
        row, column = np.divmod(kept.at, across[:, None])
        away = np.stack([row, column]) + half[:, None] - centre.T[:, :, None]
        force = np.where(kept.at >= 0, pull * kept.values, 0.0)
        with np.errstate(divide="ignore"):
            moved = (force * away).sum(2) / sigma**2
            wider = (force * (away**2).sum(0)).sum(1) / sigma**3
        return np.column_stack([*moved, wider])

    def _masks(
        self, group: SizeGroup, parameters: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the different masks of a group, over all positions, and each atom's mask."""
        now = self._moved(parameters)
        _, first, mask = np.unique(
            now.mask_numbers()[group.place], return_index=True, return_inverse=True
        )
        masks = np.array([now.windows.mask(column) for column in group.place[first]])
        return masks, mask.ravel()

    def settled(self, parameters: list[np.ndarray]) -> list[np.ndarray]:
        """Return templates of zero mean and unit norm, and masks that find a place."""
        templates = [normed(given) for given in parameters[: len(self.groups)]]
        if not self._places:
            return templates
        return [*templates, np.clip(parameters[-1], *self.bounds)]

    def along(self, parameters: list[np.ndarray], slopes: list[np.ndarray]) -> list[np.ndarray]:
        """Return the gradient for settled parameters.

        A template moves along the zero means and the unit norm. A place at its bound stays there if
        its slope leads out.
        """
        n, found = len(self.groups), []
        for template, slope in zip(parameters[:n], slopes[:n], strict=True):
            centred = slope - slope.mean(1)[:, None]
            found.append(centred - template * (template * centred).sum(1)[:, None])
        for place, slope in zip(parameters[n:], slopes[n:], strict=True):
            low, high = self.bounds
            out = ((place <= low) & (slope < 0)) | ((place >= high) & (slope > 0))
            found.append(np.where(out, 0.0, slope))
        return found

    def map(self, parameters: list[np.ndarray]) -> PatchesMap:
        """Return the map of the patches that these parameters make."""
        return map_of(self._given, self.groups, parameters, self._places)

    def _moved(self, parameters: list[np.ndarray]) -> PatchesMap:
        """Return a map with the present places."""
        return self.map(parameters) if self._places else self._given


def map_of(
    given: PatchesMap, groups: list[SizeGroup], parameters: list[np.ndarray], places: bool
) -> PatchesMap:
    """Return a map with other parameters. Its templates are in float32."""
    templates: list[np.ndarray] = [np.empty(0)] * len(given.size)
    for group, own in zip(groups, parameters, strict=False):
        for number, template in zip(group.own.tolist(), own, strict=True):
            templates[number] = template
    values = np.concatenate(templates)
    centre, sigma = given.centre, given.sigma
    if places:
        centre, sigma = parameters[-1][:, :2], parameters[-1][:, 2]
    return PatchesMap(given.shape, given.number, given.size, values, given.template, centre, sigma)

"""Largest masked responses of templates, computed on a device.

The values are those of `laconic.model.windows`, up to rounding in float32. Images are stored with
one line for every pixel, so that neighbours in memory are the same pixel of two images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from laconic.device.precision import full_precision
from laconic.device.triton_or_twin import has_triton, launched_at, padded, power_of_two
from laconic.model.windows import WindowMaximum
from laconic.numeric.threads import row_blocks

# Most responses and copied pixels that are held together: 512 MiB.
RESPONSES = 1 << 27
# Images of a program of each kernel, and templates of a program of the first one.
IMAGES, TEMPLATES = 128, 4
# Images of a program for one atom. Each thread has four.
IMAGES_OF_ONE = 256
# Fewest atoms of a template for which all of its responses are computed once.
MANY = 4


class Group(NamedTuple):
    """All columns of one template size. Every template may have every mask."""

    size: int
    templates: Tensor
    """(templates, size²)"""
    masks: Tensor
    """(masks, positions)"""
    place: Tensor
    """(templates, masks): the column with that template and mask, or -1."""
    atoms: list[tuple[int, int, int]]
    """Template, mask and column of every atom."""
    boxes: list[tuple[int, int, int, int]]
    """The positions where each mask is not zero are in the box (top, bottom, left, right)."""


class PatchValues:
    """Values of some patches on any images.

    Parameters
    ----------
    windows : WindowMaximum
        The columns.
    device : torch.device
    """

    def __init__(self, windows: WindowMaximum, device: object) -> None:
        self._shape = tuple(int(n) for n in windows.shape)
        self._n_columns = windows.n_columns
        numbers, images = windows.mask_numbers(), windows.templates()
        sizes = windows.size[windows.template]
        self._groups, self._copies = [], []
        for size in np.unique(sizes).tolist():
            of_size = np.flatnonzero(sizes == size)
            used, template = np.unique(windows.template[of_size], return_inverse=True)
            _, first, mask = np.unique(numbers[of_size], return_index=True, return_inverse=True)
            place = np.full((len(used), len(first)), -1)
            place[template.ravel(), mask.ravel()] = of_size
            # Of columns that are the same, only the last one has a place.
            computed = place[template.ravel(), mask.ravel()]
            self._copies += [(c, own) for c, own in zip(of_size, computed, strict=True) if c != own]
            template, mask = (place >= 0).nonzero()
            own = place[template, mask]
            atoms = list(zip(template.tolist(), mask.tolist(), own.tolist(), strict=True))
            masks = [windows.mask(column) for column in of_size[first]]
            group = Group(
                size,
                torch.as_tensor(np.array([images[t].ravel() for t in used]), device=device),
                torch.as_tensor(np.array([m.ravel() for m in masks]), device=device),
                torch.as_tensor(place, device=device),
                atoms,
                [_box(m) for m in masks],
            )
            self._groups.append(group)

    def compute(self, pixels: Tensor) -> Tensor:
        """Return the values (n_columns, n_images) in float32, for pixels (n_pixels, n_images)."""
        n = pixels.shape[1]
        if pixels.stride(1) != 1:  # the kernels read neighbouring images together
            pixels = pixels.contiguous()
        out = torch.empty(self._n_columns, n, dtype=torch.float32, device=pixels.device)
        for group in self._groups:
            n_templates = len(group.templates)
            if has_triton(pixels) and len(group.atoms) < MANY * n_templates:
                self._one_by_one(group, pixels, out)
                continue
            lines = (n_templates + group.size**2) * group.masks.shape[1]
            with full_precision():
                for images in row_blocks(n, max(IMAGES, RESPONSES // lines // IMAGES * IMAGES)):
                    self._together(group, pixels[:, images], out[:, images])
        for column, computed in self._copies:
            out[column] = out[computed]
        return out

    def _together(self, group: Group, pixels: Tensor, out: Tensor) -> None:
        """Compute all responses of every template once."""
        n = pixels.shape[1]
        views = _views(pixels, self._shape, group.size)
        responses = (group.templates @ views.flatten(1)).view(len(group.templates), -1, n)
        if not has_triton(pixels):
            twin(responses, group, out)
            return
        from laconic.device.maxima_kernels import masked_maxima  # it imports Triton

        n_templates, n_masks = group.place.shape
        grid = (padded(n, IMAGES) // IMAGES, padded(n_templates, TEMPLATES) // TEMPLATES)
        with launched_at(responses):
            masked_maxima[grid](
                responses,
                group.masks.T.contiguous(),
                group.place,
                out,
                n_templates,
                n_masks,
                responses.shape[1],
                n,
                out.stride(0),
                TEMPLATES=TEMPLATES,
                MASKS=power_of_two(n_masks, 1),
                IMAGES=IMAGES,
                num_warps=4,
            )

    def _one_by_one(self, group: Group, pixels: Tensor, out: Tensor) -> None:
        """Compute the responses of every atom under its mask only. Copy no windows."""
        from laconic.device.maxima_kernels import maxima_of_one  # it imports Triton

        across = self._shape[1] - group.size + 1
        n = pixels.shape[1]
        for template, mask, column in group.atoms:
            with launched_at(pixels):
                maxima_of_one[(padded(n, IMAGES_OF_ONE) // IMAGES_OF_ONE,)](
                    pixels,
                    group.templates[template],
                    group.masks[mask],
                    out[column],
                    n,
                    pixels.stride(0),
                    self._shape[1],
                    across,
                    *group.boxes[mask],
                    SIZE=group.size,
                    IMAGES=IMAGES_OF_ONE,
                    num_warps=2,
                )


def twin(responses: Tensor, group: Group, out: Tensor) -> None:
    """Write the largest masked responses (templates, positions, images) in plain torch."""
    for number, mask in enumerate(group.masks):
        own = (group.place[:, number] >= 0).nonzero()[:, 0]
        under = mask.nonzero()[:, 0]
        values = responses[own][:, under] * mask[under, None]
        out[group.place[own, number]] = values.amax(dim=1).clamp_(min=0.0)


def _box(mask: np.ndarray) -> tuple[int, int, int, int]:
    """Return the box of the positions where a mask is not zero: top, bottom, left and right."""
    y, x = mask.nonzero()
    return int(y.min()), int(y.max()) + 1, int(x.min()), int(x.max()) + 1


def _views(pixels: Tensor, shape: Sequence[int], size: int) -> Tensor:
    """Return pixel (dy, dx) of the window at every position, (size², positions, n_images)."""
    images = pixels.view(*shape, -1)
    rows, columns = (n - size + 1 for n in shape)
    lines = [
        images[dy : dy + rows, dx : dx + columns].flatten(0, 1)
        for dy in range(size)
        for dx in range(size)
    ]
    return torch.stack(lines)

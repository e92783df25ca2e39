"""The pool of patch detectors on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.patch_values import PatchValues
from laconic.device.pool import on_a_row
from laconic.device.surveys import first_row
from laconic.device.triton_or_twin import padded
from laconic.device.value_sums import ALIGNED, shift_of, value_sums
from laconic.model.windows import LARGEST_PIXEL, images_of
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.bound_patches import largest_responses
from laconic.pools.parts import MOST_SURVEYS, Place, Unfinished
from laconic.pools.patches import MergedPatches, Patches, PatchesSurvey
from laconic.pools.templates import Windows

# Types of stored values, by the storage of the pool.
STORED_AS = {"uint8": torch.int8, "float16": torch.float16, "float32": torch.float32}
# Images whose atoms are stored together, and windows that are read together.
STORED, READ = 4096, 1 << 18
# Stored values that are squared together, and their images.
SQUARED = 1 << 26, 1 << 12


def bind(pool: Patches, X: Tensor, weight: Tensor, threads: Threads) -> DevicePatches:
    """Learn templates from the images, and compute every atom on them."""
    return DevicePatches(pool, X, weight, threads)


class DevicePatches:
    """`Patches` over images on a device.

    Every atom is computed once and stored in a few bytes, as on the host. The images are kept in
    float32, for the columns of chosen atoms.
    """

    def __init__(self, pool: Patches, X: Tensor, weight: Tensor, threads: Threads) -> None:
        learned = _learned(pool, X, threads)
        self.facts = on_a_row(pool, first_row(X), learned, threads)
        self.dtype = np.dtype(np.float32)
        self._n_images = len(X)
        self._pixels = X.float().T.contiguous()
        self._steps = 255.0 if pool.storage == "uint8" else 1.0
        unit = largest_responses(learned.map, learned.low, learned.high)
        self._to_values = torch.as_tensor(unit / self._steps, device=X.device)
        self._factors = torch.ones_like(self._to_values)
        shape = len(unit), padded(len(X), ALIGNED)
        self._stored = torch.zeros(shape, dtype=STORED_AS[pool.storage], device=X.device)
        peaks = self._store(PatchValues(learned.map.windows, X.device))
        if pool.scale is not None:
            late = peaks if pool.scale == "max" else self._moments(weight)
            self.facts.settle([late.cpu().numpy()])
            factors = self.facts.scales(range(len(unit)))
            self._factors = torch.as_tensor(factors, device=X.device)

    def _store(self, every: PatchValues) -> Tensor:
        """Compute every atom on every image, and return the largest stored value of each."""
        to_steps = (1.0 / self._to_values).float()[:, None]
        peaks = torch.zeros_like(self._to_values)
        for images in row_blocks(self._n_images, STORED):
            values = every.compute(self._pixels[:, images]).mul_(to_steps)
            if self._steps > 1.0:
                values.round_()
            stored = self._stored[:, images]
            stored.copy_(values.sub_(shift_of(stored)))
            torch.maximum(peaks, stored.amax(dim=1).double() + shift_of(stored), out=peaks)
        return peaks

    def _moments(self, weight: Tensor) -> Tensor:
        """Return the weighted sums of every stored column and of its squares."""
        [(_, sums)] = self.gradients(weight.float()[None])
        return torch.stack([sums[:, 0], self.squares(weight)])

    def gradients(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield all column sums in one block, from the stored values."""
        sums = value_sums(self._stored, residual)
        yield 0, sums * (self._to_values * self._factors)[:, None]

    def squares(self, weight: Tensor) -> Tensor:
        """Return the weighted squared norm of every column, from the stored values."""
        weight = weight.float()
        total = torch.zeros_like(self._factors)
        for images in row_blocks(self._n_images, SQUARED[1]):
            for atoms in row_blocks(len(total), SQUARED[0] // SQUARED[1]):
                values = self._stored[atoms, images].float() + shift_of(self._stored)
                total[atoms] += values.square() @ weight[images]
        return total * (self._to_values * self._factors).square()

    def columns(self, atoms: Sequence[int]) -> Tensor:
        """Return the scaled training columns, computed from the images without rounding."""
        chosen: Any = self.facts.extract(atoms)
        some = PatchValues(chosen.windows, self._pixels.device)
        values = some.compute(self._pixels)
        for column, atom in zip(values, atoms, strict=True):
            column.copy_(column.double() * self._factors[atom])
        return values


def _learned(pool: Patches, X: Tensor, threads: Threads) -> MergedPatches:
    """Learn the templates of every size on the host, from windows drawn on the device."""
    low, high = X.min().item(), X.max().item()
    place = Place(0, len(X))
    for _ in range(MOST_SURVEYS):
        shape, size, known = pool.next_windows(X.shape[1], place)
        _check_pixels(X, shape, max(high, -low))
        windows = _windows(X, known.drawn, shape, size)
        survey = PatchesSurvey(low, high, len(X), shape, windows, known)
        merged = pool.merge([survey], threads)
        if not isinstance(merged, Unfinished):
            return merged
        place = place._replace(known=merged.known)
    raise RuntimeError(f"the templates of {MOST_SURVEYS} sizes are too many")


def _check_pixels(X: Tensor, shape: tuple[int, int], largest: float) -> None:
    """Refuse pixels that are too large for single precision, as `images_of` does."""
    if largest > LARGEST_PIXEL:
        row = X.abs().amax(dim=1).argmax()
        images_of(X[row, None].cpu().numpy(), shape)


def _windows(X: Tensor, drawn: np.ndarray, shape: tuple[int, int], size: int) -> Windows:
    """Return all windows that were drawn."""
    height, width = shape
    across = width - size + 1
    image, place = np.divmod(drawn, (height - size + 1) * across)
    steps = np.arange(size)
    window = (steps[:, None] * width + steps).ravel()
    out = np.empty((len(drawn), size * size), dtype=np.float32)
    for some in row_blocks(len(drawn), READ):
        corner = place[some] // across * width + place[some] % across
        at = image[some, None] * X.shape[1] + corner[:, None] + window
        out[some] = X.take(torch.from_numpy(at).to(X.device)).float().cpu().numpy()
    return Windows(np.arange(len(drawn)), out)

"""Patch detectors over training images. Every atom is computed once and stored in a few bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laconic.model.patches import Patch, PatchesMap
from laconic.model.windows import IMAGES
from laconic.numeric.memory import warn_if_too_large
from laconic.numeric.once import once
from laconic.numeric.skinny import transpose_product
from laconic.numeric.threads import Threads, row_blocks
from laconic.pools.base import BoundPool, feature_number

STORAGES = ("uint8", "float16", "float32")
# Numbers of rows and columns of stored values that are squared together.
SQUARED = 512, 4096


class BoundPatches(BoundPool):
    """`Patches` over training images.

    The pixels of all parts are from ``low`` to ``high``. A stored value is the exact value divided
    by the largest value that its template can have (``_unit``). If values are rounded, the stored
    value counts ``_steps`` steps.
    """

    loads_numba = True

    def __init__(
        self,
        X: Any,
        weight: np.ndarray,
        every: PatchesMap,
        low: float,
        high: float,
        scale: str | None,
        storage: str,
        threads: Threads,
    ) -> None:
        self._X = X
        self._map = every
        self._threads = threads
        self.dtype = np.dtype(np.float32)
        self.n_atoms = self.n_columns = len(every.template)
        self._steps = 255.0 if storage == "uint8" else 1.0
        self._unit = largest_responses(every, low, high)
        warn_if_too_large(
            float(X.shape[0]) * self.n_atoms * np.dtype(storage).itemsize,
            f"a pool of {self.n_atoms} patches on {X.shape[0]} images",
            "lower n_templates or mask_grid, or set storage='uint8'",
        )
        self._stored = np.empty((X.shape[0], self.n_atoms), dtype=storage)
        peaks = self._store()
        self._factors = np.ones(self.n_atoms)
        self._scale = scale
        self._late = None
        if scale is not None:
            self._late = peaks if scale == "max" else self._moments(weight)
            self.settle([self._late])

    def late(self) -> np.ndarray | None:
        """Return what scales are found from: peaks, or weighted sums of values and squares."""
        return self._late

    def settle(self, late: Sequence[np.ndarray]) -> None:
        """Scale the columns by their sizes over all parts."""
        if self._scale == "max":
            sizes = np.max(late, axis=0) * self._unit / self._steps
        else:
            sums, squares = np.sum(late, axis=0)
            sizes = np.sqrt(np.maximum(squares - sums**2, 0.0))
        self._factors = np.ones(self.n_atoms)
        np.divide(1.0, sizes, out=self._factors, where=sizes > 0)

    def _store(self) -> np.ndarray:
        """Compute every atom on every image, and return the largest stored value of each."""
        to_steps = (self._steps / self._unit).astype(np.float32)

        def one(rows: slice) -> np.ndarray:
            values = self._map.windows.columns(self._X[rows], self._threads)
            values *= to_steps
            if self._stored.dtype == np.uint8:
                np.rint(values, out=values)
            self._stored[rows] = values
            return self._stored[rows].max(axis=0)

        self._map.windows.boxes()  # threads must not all look for them
        peaks = np.zeros(self.n_atoms)
        for of_block in self._threads.map(one, row_blocks(len(self._stored), IMAGES)):
            np.maximum(peaks, of_block, out=peaks)
        return peaks

    def _moments(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted sums of every stored column and of its squares."""
        [(_, sums)] = self.gradients(weight[:, None])
        return np.array([sums[:, 0], self.squares(weight)])

    def _to_scaled(self) -> np.ndarray:
        """Return the factor from stored to scaled values."""
        return self._unit / self._steps * self._factors

    def gradients(self, residual: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all column sums in one block, from the stored values."""
        residual = residual.astype(self.dtype, copy=False)
        sums = transpose_product(self._stored, residual, self._threads)
        yield 0, sums * self._to_scaled()[:, None]

    def squares(self, weight: np.ndarray) -> np.ndarray:
        """Return the weighted squared norm of every column, from the stored values."""

        def one(rows: slice) -> np.ndarray:
            sums = np.empty(self.n_atoms)
            for columns in row_blocks(self.n_atoms, SQUARED[1]):
                values = self._stored[rows, columns].astype(self.dtype)
                sums[columns] = weight[rows].astype(self.dtype) @ np.square(values, out=values)
            return sums

        total = np.zeros(self.n_atoms)
        for part in self._threads.map(one, row_blocks(len(self._stored), SQUARED[0])):
            total += part
        return total * self._to_scaled() ** 2

    def columns(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the scaled training columns, computed from the images without rounding."""
        values = self.extract(atoms).windows.columns(self._X, self._threads)
        return np.asfortranarray(values * self.scales(atoms), dtype=self.dtype)

    def scales(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the factors of the columns."""
        return self._factors[np.asarray(atoms, dtype=np.int64)]

    def atom(self, index: int) -> Patch:
        """Return the record of atom ``index``."""
        return self._map.atoms([index])[0]

    def index(self, atom: Any) -> int:
        """Return the number of an atom record."""
        if isinstance(atom, Patch):
            low, high = np.searchsorted(self._map.template, [atom.template, atom.template + 1])
            for number, record in enumerate(self._map.atoms(range(low, high)), int(low)):
                if record == atom:
                    return number
        raise ValueError(f"{atom!r} is not an atom of this pool")

    def matching(self, item: Any) -> np.ndarray:
        """Return the number of a patch, or the numbers of all patches that read a pixel."""
        if isinstance(item, Patch):
            return np.array([self.index(item)])
        pixel = feature_number(item, self._X.shape[1])
        return np.flatnonzero(self._by_mask(lambda atom: pixel in atom.reads))

    def extract(self, atoms: Sequence[int]) -> PatchesMap:
        """Return the feature map of the atoms."""
        return self._map.take(atoms)

    def costs(self, feature_costs: np.ndarray) -> np.ndarray:
        """Return the cost of every atom: the sum of the costs of the pixels it reads."""
        return self._by_mask(lambda atom: float(feature_costs[list(atom.reads)].sum()))

    def alike(self, chosen: Sequence[int] = ()) -> np.ndarray:
        """Return kinds of patches: those of the same mask whose templates are all new, or known."""
        known = np.isin(self._map.template, self._map.template[list(chosen)])
        return 2 * self._masks[0] + known

    def operations(self, chosen: Sequence[int] = (), n_outputs: int = 0) -> np.ndarray:
        """Return the operations that each atom adds to a model of the atoms ``chosen``.

        These are the responses of its template at the positions under its mask, the products with
        the mask, and a weight for each of ``n_outputs`` scores. A response that an atom of
        ``chosen`` already needs is not computed again.
        """
        templates, (masks, first) = self._map.template, self._masks
        supports = np.array([_padded(atom) for atom in self._map.atoms(first)])
        positions = supports.sum(axis=1)[masks]
        new = positions.copy()
        numbers = np.asarray(chosen, dtype=np.int64)
        for template in np.unique(templates[numbers]):
            used = masks[numbers[templates[numbers] == template]]
            own = np.flatnonzero(templates == template)
            new[own] -= (supports[masks[own]] & supports[used].any(axis=0)).sum(axis=1)
        return (new * self._map.size[templates] ** 2 + positions + n_outputs).astype(float)

    @once
    def _masks(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of every atom's mask, and the first atom of every mask."""
        masks = self._map.mask_numbers()
        return masks, np.unique(masks, return_index=True)[1]

    def _by_mask(self, function: Callable[[Patch], Any]) -> np.ndarray:
        """Return a function of an atom's size and mask for every atom."""
        masks, first = self._masks
        return np.array([function(atom) for atom in self._map.atoms(first)])[masks]


def _padded(atom: Patch) -> np.ndarray:
    """Return where the mask of an atom is not zero, with room for the positions of any size."""
    rows, columns = (atom.mask() > 0).nonzero()
    support = np.zeros(atom.shape, dtype=bool)
    support[rows, columns] = True
    return support.ravel()


def largest_responses(every: PatchesMap, low: float, high: float) -> np.ndarray:
    """Return the largest value of every atom on images with pixels from ``low`` to ``high``."""
    bounds = np.array([np.maximum(v * low, v * high).sum(dtype=float) for v in every.templates()])
    # Rounding may lift a value a little above its bound. If the bound is zero, all values are zero.
    return np.where(bounds > 0, bounds * (1 + 1e-5), 1.0)[every.template]

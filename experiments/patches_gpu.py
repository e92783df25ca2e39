"""The fits of `share_mnist_patches.py` on a GPU, with PyTorch: many rounds on many digits.

Pool, rule, objective and the resulting predictor are those of `ShareBoostClassifier`. Only the
arithmetic differs. Values of candidates, including chosen ones, are stored in half precision. A
correction is a number of accelerated gradient steps in the metric of Böhning's bound on the
curvature (½ XᵀX / m + alpha), from a warm start. It is not a solve to a proven gap. With
``device="cpu"`` the same code runs anywhere, slowly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from _common import progress

from laconic.model.patches import PatchesMap
from laconic.pools import Patches

# Number of images whose responses are computed together, and of rows whose gradients are. Half
# precision ends at 65,504, and no response is above 4.5 (9 x 9 pixels, zero mean, unit norm).
IMAGES, ROWS = 1024, 1 << 13
# Every size up to this number of atoms is kept. Beyond it, sizes are kept at this step.
EVERY, STEP = 100, 10
STEPS_LAST = 300


class Sized(NamedTuple):
    """The model of one size. Its names are those of the entries of a path."""

    numbers: tuple[int, ...]
    map: PatchesMap
    weights: np.ndarray
    intercept: np.ndarray
    loss: float

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    def input_weights(self) -> np.ndarray:
        """Return the weights in the units of the input."""
        return self.weights


def fit(
    X: np.ndarray,
    y: np.ndarray,
    pool: Patches,
    atoms: int,
    alpha: float,
    device: str,
    costs: str | None = None,
    steps: int = 12,
) -> list[Sized]:
    """Choose patches one by one, and re-optimise all weights after each."""
    every = pool.fit(X).map_
    columns = Columns(every, device)
    progress(f"{len(every.template)} patches of {len(X)} digits")
    stored = columns.compute(X)
    scale = inverse_of_largest(stored)
    model = Weights(y, atoms, alpha, device)
    chosen: list[int] = []
    kept: list[Sized] = []
    while True:
        size = len(chosen)
        last = size == atoms
        loss = model.correct(STEPS_LAST if last else steps)
        if last or size <= EVERY or size % STEP == 0:
            weights, intercept = model.in_units(scale[chosen])
            kept.append(Sized(tuple(chosen), every.take(chosen), weights, intercept, loss))
        if size % 100 == 0:
            progress(f"{size} patches, loss {loss:.5f}")
        if last:
            return kept
        score = scale * products(stored, model.residual()).abs().sum(dim=1)
        if costs == "operations":
            score = score.square() / columns.operations()
        score[chosen] = -1.0
        chosen.append(int(score.argmax()))
        columns.cover(chosen[-1])
        model.add(stored[:, chosen[-1]].float() * scale[chosen[-1]])


def reweigh(
    X: np.ndarray, y: np.ndarray, chosen: PatchesMap, sizes: list[int], alpha: float, device: str
) -> list[Sized]:
    """Fit weights of the first patches of a model to other images, for a few sizes."""
    stored = Columns(chosen, device).compute(X)
    scale = inverse_of_largest(stored)
    model = Weights(y, max(sizes), alpha, device)
    kept = []
    for size in sorted(sizes):
        for number in range(model.size - 1, size):
            model.add(stored[:, number].float() * scale[number])
        loss = model.correct(STEPS_LAST)
        progress(f"{size} patches, loss {loss:.5f}")
        weights, intercept = model.in_units(scale[:size])
        numbers = tuple(range(size))
        kept.append(Sized(numbers, chosen.take(numbers), weights, intercept, loss))
    return kept


def inverse_of_largest(stored: torch.Tensor) -> torch.Tensor:
    """Return the factors that make the largest value of every column 1."""
    of_blocks = [stored[rows].amax(dim=0) for rows in blocks(len(stored))]
    largest = torch.stack(of_blocks).amax(dim=0).float()
    return torch.where(largest > 0, 1.0 / largest, torch.zeros_like(largest))


def blocks(n: int, length: int = ROWS) -> Iterator[slice]:
    """Yield blocks of rows."""
    return (slice(start, start + length) for start in range(0, n, length))


def products(stored: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Return the sums over rows of every column times every class's residual.

    Blocks are added in float32.
    """
    total = torch.zeros(stored.shape[1], residual.shape[1], device=stored.device)
    for rows in blocks(len(stored)):
        total += torch.mm(stored[rows].T, residual[rows].to(stored.dtype)).float()
    return total


class Columns:
    """Values of patches on images, and the operations that each patch adds to a model."""

    def __init__(self, every: PatchesMap, device: str) -> None:
        self.device = device
        self.kind = torch.float32 if device == "cpu" else torch.half
        self.shape = tuple(int(n) for n in every.shape)
        self.template = torch.tensor(every.template, device=device)
        self.area = torch.tensor(every.size[every.template] ** 2, device=device)
        # The places where each atom needs the response of its template, and where a model has it.
        support = np.zeros((len(every.template), *self.shape), dtype=bool)
        # For every size: its templates, and its masks with the atoms that use them.
        self.groups = []
        images, masks = every.templates(), every.mask_numbers()
        for size in np.unique(every.size):
            of_size = np.flatnonzero(every.size == size)
            kernels = self._tensor(np.array([images[t] for t in of_size])[:, None])
            weighed = []
            for number in np.unique(masks[every.size[every.template] == size]):
                atoms = np.flatnonzero(masks == number)
                mask = every.atoms(atoms[:1])[0].mask()
                support[atoms, : mask.shape[0], : mask.shape[1]] = mask > 0
                own = torch.tensor(np.searchsorted(of_size, every.template[atoms]), device=device)
                down, across, inside = _boxed(mask)
                places = torch.tensor(atoms, device=device)
                weighed.append((own, down, across, self._tensor(inside), places))
            self.groups.append((kernels, weighed))
        self.support = torch.tensor(support, device=device).flatten(1)
        self.covered = torch.zeros(
            len(every.size), self.support.shape[1], dtype=torch.bool, device=device
        )

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.tensor(values, dtype=self.kind, device=self.device)

    def compute(self, X: np.ndarray) -> torch.Tensor:
        """Return the values (n_images, n_atoms) in half precision (single precision on a CPU)."""
        out = torch.empty(len(X), len(self.template), dtype=self.kind, device=self.device)
        for rows in blocks(len(X), IMAGES):
            images = self._tensor(X[rows]).view(-1, 1, *self.shape)
            for kernels, weighed in self.groups:
                responses = F.conv2d(images, kernels)
                for own, down, across, mask, places in weighed:
                    values = responses[:, own, down, across] * mask
                    out[rows, places] = values.flatten(2).amax(dim=2).clamp_min(0)
        return out

    def cover(self, atom: int) -> None:
        """Record that the atom is in the model, so that its template's responses are available."""
        self.covered[self.template[atom]] |= self.support[atom]

    def operations(self) -> torch.Tensor:
        """Return the operations that each atom adds, as `BoundPatches.operations` counts them."""
        new = (self.support & ~self.covered[self.template]).sum(dim=1)
        return (new * self.area + self.support.sum(dim=1)).float()


def _boxed(mask: np.ndarray) -> tuple[slice, slice, np.ndarray]:
    """Return the box in which a mask is not zero, and the mask in it."""
    down, across = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    box = slice(int(down[0]), int(down[-1]) + 1), slice(int(across[0]), int(across[-1]) + 1)
    return *box, mask[box]


class Weights:
    """Weights of the chosen columns and an intercept, fitted to the margin log-loss."""

    def __init__(self, y: np.ndarray, atoms: int, alpha: float, device: str) -> None:
        labels = torch.tensor(np.unique(y, return_inverse=True)[1], device=device)
        self.own = F.one_hot(labels).float()
        self.alpha = alpha
        n, k = self.own.shape
        self.columns = torch.empty(n, atoms + 1, device=device)
        self.columns[:, 0] = 1
        self.gram = torch.zeros(atoms + 1, atoms + 1, dtype=torch.double, device=device)
        self.gram[0, 0] = n
        self.weights = torch.zeros(atoms + 1, k, device=device)
        self.scores = torch.zeros(n, k, device=device)
        self.size = 1

    def add(self, column: torch.Tensor) -> None:
        """Add a column with weight zero."""
        at, self.size = self.size, self.size + 1
        self.columns[:, at] = column
        new = self.columns[:, : self.size].T @ column
        self.gram[at, : self.size] = self.gram[: self.size, at] = new.double()

    def in_units(self, scale: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights for columns that are not scaled, and the intercept."""
        weights = self.weights[: self.size].cpu().numpy().astype(np.float64)
        return weights[1:] * scale.cpu().numpy()[:, None], weights[0]

    def residual(self) -> torch.Tensor:
        """Return the gradient of the summed loss in every score, at the weights."""
        return torch.softmax(self.scores + 1 - self.own, dim=1) - self.own

    def correct(self, steps: int) -> float:
        """Take Nesterov's steps with restarts, and return the mean loss at the end."""
        n, used = len(self.own), self.columns[:, : self.size]
        penalty = torch.full((self.size, 1), self.alpha, device=used.device)
        penalty[0] = 0
        metric = self.gram[: self.size, : self.size] / (2 * n)
        metric = metric + (self.alpha + 1e-9) * torch.eye(self.size, device=used.device)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(metric)).float()
        weights = self.weights[: self.size].clone()
        ahead, momentum = weights.clone(), 1.0
        for _ in range(steps):
            self.scores = used @ ahead
            gradient = used.T @ self.residual() / n + penalty * ahead
            new = ahead - inverse @ gradient
            if (gradient * (new - weights)).sum() > 0:
                momentum = 1.0
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / following * (new - weights)
            weights, momentum = new, following
        self.weights[: self.size] = weights
        self.scores = used @ weights
        losses = torch.logsumexp(self.scores + 1 - self.own, dim=1) - (self.scores * self.own).sum(
            dim=1
        )
        return float(losses.double().mean())


def describe(device: str) -> dict[str, Any]:
    """Describe the device of the fit."""
    name = torch.cuda.get_device_name(0) if device.startswith("cuda") else "processor"
    return {"device": name, "torch": torch.__version__}

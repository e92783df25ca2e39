"""The fits of `share_mnist_patches.py` on a GPU, with PyTorch: many rounds on many digits.

Pool, rule and objective are those of `ShareBoostClassifier`, and so is the predictor that comes
out. What differs is the arithmetic: values of candidates, chosen ones too, are kept in half
precision, and a correction is a number of accelerated gradient steps in the metric of Böhning's
bound on the curvature (½ XᵀX / m + alpha), warm-started, not a solve to a proven gap. With
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

# Images whose responses are computed together, and rows whose gradients are: halves end at 65,504,
# and no response is above 4.5 (9 x 9 pixels, zero mean, unit norm).
IMAGES, ROWS = 1024, 1 << 13
# Atoms up to which every size is kept, and the step between sizes kept beyond.
EVERY, STEP = 100, 10
STEPS_LAST = 300


class Sized(NamedTuple):
    """The model of one size, with the names that the entries of a path have."""

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
        """Weights in the units of the input."""
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
    """Choose patches one by one, all weights re-optimised after each."""
    every = pool.fit(X).map_
    columns = Columns(every, device)
    progress(f"{len(every.template)} patches of {len(X)} digits")
    stored = columns.compute(X)
    tall = [stored[rows].amax(dim=0) for rows in blocks(len(stored))]
    largest = torch.stack(tall).amax(dim=0).float()
    scale = torch.where(largest > 0, 1.0 / largest, torch.zeros_like(largest))
    model = Weights(y, atoms, alpha, device)
    chosen: list[int] = []
    kept: list[Sized] = []
    while True:
        size = len(chosen)
        last = size == atoms
        loss = model.correct(STEPS_LAST if last else steps)
        if last or size <= EVERY or size % STEP == 0:
            own = scale[chosen].cpu().numpy()[:, None]
            weights = model.weights[: size + 1].cpu().numpy().astype(np.float64)
            part = every.take(chosen)
            kept.append(Sized(tuple(chosen), part, weights[1:] * own, weights[0], loss))
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


def blocks(n: int, length: int = ROWS) -> Iterator[slice]:
    """Rows a block at a time."""
    return (slice(start, start + length) for start in range(0, n, length))


def products(stored: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Sums over rows of every column times every class's residual, in float32 between blocks."""
    total = torch.zeros(stored.shape[1], residual.shape[1], device=stored.device)
    for rows in blocks(len(stored)):
        total += torch.mm(stored[rows].T, residual[rows].to(stored.dtype)).float()
    return total


class Columns:
    """Values of every template with every mask, template by template as the pool numbers them."""

    def __init__(self, every: PatchesMap, device: str) -> None:
        self.device = device
        self.kind = torch.float32 if device == "cpu" else torch.half
        self.shape = tuple(int(n) for n in every.shape)
        self.n_masks = len(every.template) // len(every.size)
        self.sizes = torch.tensor(every.size, device=device)
        self.groups = []
        supports = []
        for size in np.unique(every.size):
            of_size = np.flatnonzero(every.size == size)
            images = np.array([every.templates()[t] for t in of_size], dtype=np.float32)
            first = int(of_size[0]) * self.n_masks
            masks = [atom.mask() for atom in every.atoms(range(first, first + self.n_masks))]
            templates = torch.tensor(images[:, None], device=device, dtype=self.kind)
            boxes = [
                (down, across, torch.tensor(mask, device=device, dtype=self.kind))
                for down, across, mask in map(_boxed, masks)
            ]
            self.groups.append((templates, boxes))
            room = np.zeros((self.n_masks, *self.shape), dtype=bool)
            room[:, : masks[0].shape[0], : masks[0].shape[1]] = np.array(masks) > 0
            supports += [torch.tensor(room.reshape(self.n_masks, -1), device=device)] * len(of_size)
        # (templates, masks, positions): where each atom needs its template's response.
        self.supports = torch.stack(supports)
        self.covered = torch.zeros_like(self.supports[:, 0])

    def compute(self, X: np.ndarray) -> torch.Tensor:
        """Values in half precision (single on a processor), (n_images, n_atoms)."""
        n_atoms = len(self.sizes) * self.n_masks
        out = torch.empty(len(X), n_atoms, dtype=self.kind, device=self.device)
        for rows in blocks(len(X), IMAGES):
            images = torch.tensor(X[rows], device=self.device, dtype=self.kind)
            images = images.view(-1, 1, *self.shape)
            start = 0
            for templates, boxes in self.groups:
                responses = F.conv2d(images, templates)
                stop = start + len(templates) * self.n_masks
                values = out[rows, start:stop].view(len(images), len(templates), self.n_masks)
                for number, (down, across, mask) in enumerate(boxes):
                    weighed = responses[:, :, down, across] * mask
                    values[:, :, number] = weighed.flatten(2).amax(dim=2).clamp_min(0)
                start = stop
        return out

    def cover(self, atom: int) -> None:
        """The atom is in the model: its template's responses are there from now on."""
        template, mask = divmod(atom, self.n_masks)
        self.covered[template] |= self.supports[template, mask]

    def operations(self) -> torch.Tensor:
        """Operations that each atom adds, as `BoundPatches.operations` counts them."""
        new = (self.supports & ~self.covered[:, None]).sum(dim=2)
        return (new * self.sizes[:, None] ** 2 + self.supports.sum(dim=2)).view(-1).float()


def _boxed(mask: np.ndarray) -> tuple[slice, slice, np.ndarray]:
    """The box where a mask is not zero, and the mask in it."""
    down, across = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    box = slice(int(down[0]), int(down[-1]) + 1), slice(int(across[0]), int(across[-1]) + 1)
    return *box, mask[box]


class Weights:
    """Margin log-loss over the chosen columns and an intercept, and its accelerated descent."""

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
        """Another column, at weight zero."""
        at, self.size = self.size, self.size + 1
        self.columns[:, at] = column
        new = self.columns[:, : self.size].T @ column
        self.gram[at, : self.size] = self.gram[: self.size, at] = new.double()

    def residual(self) -> torch.Tensor:
        """Gradient of the summed loss in every score, at the weights."""
        return torch.softmax(self.scores + 1 - self.own, dim=1) - self.own

    def correct(self, steps: int) -> float:
        """Nesterov's steps with restarts; the mean loss at the end."""
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
    """What the fit ran on."""
    name = torch.cuda.get_device_name(0) if device.startswith("cuda") else "processor"
    return {"device": name, "torch": torch.__version__}

"""The patches of a model as a picture: each template at its place, on a shade for its mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from laconic.look.plots import INK, pyplot
from laconic.look.quiet import quiet
from laconic.model.mixed import maps_of
from laconic.model.patches import Patch, PatchesMap
from laconic.model.pieces import PLOT_BALLS
from laconic.model.predictor import Predictor

# Number of patches side by side.
ACROSS = 10
# Space between two patches, and above each for its number, as parts of a patch's width.
GAP, HEAD = 0.07, 0.25
# Width of a patch in inches.
INCHES = 0.85


def plot_patches(model: Any, n_atoms: int | None = None, ax: Any = None) -> Any:
    """Draw the patches of a model, in the order they were chosen.

    A frame is an image. The template is drawn in the middle of its mask, red where it asks for
    bright pixels and blue where it asks for dark ones. The shade around it is the mask: the places
    where the middle of the template is searched. Above each frame are the patch's place in the
    model and the class whose score it raises most.

    Parameters
    ----------
    model : ShareBoostClassifier or Predictor
        Some of its atoms must be patches.
    n_atoms : int, default=None
        How many to draw. The default is all.
    ax : Axes, default=None
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes
    """
    predictor: Predictor = getattr(model, "predictor_", model)
    maps = list(maps_of(predictor.map, PatchesMap))
    if not maps:
        kind = predictor.map.kind
        instead = f". {PLOT_BALLS} draws those" if kind == "pieces" else ""
        raise ValueError(f"only patches can be drawn so, but the model has {kind}{instead}")
    atoms = [
        (column, atom, map.templates()[map.template[number]])
        for map, columns in maps
        for number, (column, atom) in enumerate(zip(columns.tolist(), map.atoms(), strict=True))
    ]
    atoms = sorted(atoms, key=lambda item: item[0])[:n_atoms]
    height, width = (int(n) for n in maps[0][0].shape)
    across = max(1, min(ACROSS, len(atoms)))
    down = max(1, math.ceil(len(atoms) / across))
    gap, head = (math.ceil(part * width) for part in (GAP, HEAD))
    step_y, step_x = height + gap + head, width + gap
    canvas = np.ones((down * step_y, across * step_x, 3))
    if ax is None:
        ax = _new_axes(across * INCHES, down * INCHES * step_y / step_x)
    starts = np.cumsum([0, *predictor.widths])
    for number, (column, atom, template) in enumerate(atoms):
        top, left = number // across * step_y + head, number % across * step_x
        frame = canvas[top : top + height, left : left + width]
        frame[:] = _frame(atom, template)
        best = predictor.classes[int(np.argmax(predictor.weights[column]))]
        text = f"{int(np.searchsorted(starts, column)) + 1} · {best}"
        ax.text(left, top - 1, text, fontsize=6, color=INK, va="bottom", ha="left")
    ax.imshow(canvas, interpolation="nearest")
    ax.axis("off")
    return quiet(ax)


def _new_axes(width: float, height: float) -> Any:
    figure = pyplot().figure(figsize=(width + 0.2, height + 0.2))
    return figure.add_axes((0.01, 0.01, 0.98, 0.98))


def _frame(atom: Patch, template: np.ndarray) -> np.ndarray:
    """Return an image in colours: the mask as a shade, and the template over its middle."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    half = (atom.size - 1) // 2
    mask = atom.mask()
    shade = np.zeros(atom.shape)
    shade[half : half + mask.shape[0], half : half + mask.shape[1]] = mask
    paper, colour = np.full(3, 0.97), np.array(to_rgb(INK))
    out = paper + 0.35 * shade[:, :, None] * (colour - paper)
    top, left = (
        min(max(round(middle - (atom.size - 1) / 2), 0), length - atom.size)
        for middle, length in zip((atom.row, atom.column), atom.shape, strict=True)
    )
    largest = np.abs(template).max() or 1.0
    drawn = colormaps["RdBu_r"](0.5 + 0.5 * template / largest)[:, :, :3]
    out[top : top + atom.size, left : left + atom.size] = drawn
    return out

"""Kernels of tuned patches. They import Numba, so import this module at first use."""

from __future__ import annotations

from typing import Any

from laconic.numeric.compiled import compiled


@compiled(fastmath={"contract"})
def maxima_and_places(
    images: Any,
    templates: Any,
    masks: Any,
    template: Any,
    mask: Any,
    place: Any,
    size: int,
    pixels: Any,
    sums: Any,
    largest: Any,
    found: Any,
    out: Any,
    at: Any,
) -> None:
    """Compute the largest masked response of each atom, and where it is.

    ``images`` is (n, h, w) with at most as many images as ``sums`` has entries, ``templates`` is
    (templates, size²), and ``masks`` is (masks, rows, columns) over all positions. Atom a has
    ``template[a]`` and ``mask[a]``. For image i its value goes to ``out[place[a], i]``, and the
    number of its position, row by row, to ``at[place[a], i]``. This is -1 if no masked response is
    positive. ``pixels`` (h, w, lanes), ``sums``, ``largest`` and ``found`` (lanes) are working
    memory.
    """
    n, height, width = images.shape
    lanes = len(sums)
    for y in range(height):
        for i in range(n):
            for x in range(width):
                pixels[y, x, i] = images[i, y, x]
    for a in range(len(template)):
        for i in range(lanes):
            largest[i] = 0
            found[i] = -1
        number = -1
        for y in range(masks.shape[1]):
            for x in range(masks.shape[2]):
                number += 1
                weight = masks[mask[a], y, x]
                if weight == 0:
                    continue
                for i in range(lanes):
                    sums[i] = 0
                for dy in range(size):
                    for dx in range(size):
                        factor = templates[template[a], dy * size + dx]
                        line = pixels[y + dy, x + dx]
                        for i in range(lanes):
                            sums[i] += factor * line[i]
                for i in range(lanes):
                    value = weight * sums[i]
                    better = value > largest[i]
                    largest[i] = value if better else largest[i]
                    found[i] = number if better else found[i]
        for i in range(n):
            out[place[a], i] = largest[i]
            at[place[a], i] = found[i]


@compiled
def template_slopes(
    images: Any,
    masks: Any,
    template: Any,
    mask: Any,
    place: Any,
    size: int,
    at: Any,
    pull: Any,
    out: Any,
) -> None:
    """Add pull times the derivative of each value in the pixels of its template.

    A value is mask · ⟨template, window⟩ at its position. So its derivative is mask · window.
    ``out`` is (templates, size²) in float64. The other arguments are those of `maxima_and_places`.
    """
    across = masks.shape[2]
    for a in range(len(template)):
        total = out[template[a]]
        for i in range(len(images)):
            number = at[place[a], i]
            if number < 0:
                continue
            top, left = number // across, number % across
            factor = pull[place[a], i] * masks[mask[a], top, left]
            for dy in range(size):
                for dx in range(size):
                    total[dy * size + dx] += factor * images[i, top + dy, left + dx]

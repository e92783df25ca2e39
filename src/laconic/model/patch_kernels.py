"""Kernels of patch features: the windows of an image, and the largest masked responses.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from laconic.numeric.compiled import compiled

# Images that are computed side by side. They fill several registers, and their pixels stay in
# cache.
LANES = 64


@compiled
def windows(images: Any, size: int, top: int, left: int, rows: int, columns: int, out: Any) -> None:
    """Copy the windows whose upper left corners are in a box of positions to ``out``.

    ``images`` is (n, h, w) and ``out`` is (n, size², rows x columns). Every window is a column of
    ``out``: line j of an image holds pixel j of all its windows.
    """
    for i in range(len(images)):
        for dy in range(size):
            for dx in range(size):
                line = out[i, dy * size + dx]
                for y in range(rows):
                    pixels = images[i, top + y + dy]
                    for x in range(columns):
                        line[y * columns + x] = pixels[left + x + dx]


@compiled(fastmath={"contract"})
def lane_maxima(
    pixels: Any, template: Any, mask: Any, top: int, left: int, size: int, sums: Any, out: Any
) -> None:
    """Compute the largest masked response of one atom for `LANES` images side by side.

    ``pixels`` is (h, w, LANES) and ``template`` is (size²,). ``mask`` is (rows, columns) and covers
    the box whose upper left position is (top, left). ``sums`` is working memory for `LANES`
    numbers. No windows are copied. Only positions under the mask are computed, for a register of
    images at a time.
    """
    for i in range(LANES):
        out[i] = 0
    for y in range(mask.shape[0]):
        for x in range(mask.shape[1]):
            weight = mask[y, x]
            if weight == 0:
                continue
            for i in range(LANES):
                sums[i] = 0
            for dy in range(size):
                for dx in range(size):
                    factor = template[dy * size + dx]
                    line = pixels[top + y + dy, left + x + dx]
                    for i in range(LANES):
                        sums[i] += factor * line[i]
            for i in range(LANES):
                value = weight * sums[i]
                out[i] = value if value > out[i] else out[i]


@compiled
def lane_integers(
    pixels: Any,
    template: Any,
    mask: Any,
    down: int,
    top: int,
    left: int,
    size: int,
    sums: Any,
    out: Any,
) -> None:
    """Compute the largest masked response of one atom of whole numbers, for `LANES` images.

    The response at a position is max(0, sum of pixels times template) >> ``down``. ``out`` gets the
    largest response times mask. Sums are float64, which holds whole numbers below 2^53 exactly. The
    other arguments are those of `lane_maxima`.
    """
    for i in range(LANES):
        out[i] = 0
    for y in range(mask.shape[0]):
        for x in range(mask.shape[1]):
            weight = mask[y, x]
            if weight == 0:
                continue
            for i in range(LANES):
                sums[i] = 0.0
            for dy in range(size):
                for dx in range(size):
                    factor = template[dy * size + dx]
                    line = pixels[top + y + dy, left + x + dx]
                    for i in range(LANES):
                        sums[i] += factor * line[i]
            for i in range(LANES):
                value = (types.int64(max(sums[i], 0.0)) >> down) * weight
                out[i] = value if value > out[i] else out[i]


@intrinsic
def _bits(context, number):  # type: ignore[no-untyped-def]
    """Return the bits of a float32 as an int32. This keeps the order of non-negative floats."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _number(context, bits):  # type: ignore[no-untyped-def]
    """Return the float32 that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@compiled
def masked_maxima(
    responses: Any,
    first_position: int,
    masks: Any,
    first: Any,
    last: Any,
    template: Any,
    mask: Any,
    place: Any,
    out: Any,
) -> None:
    """Compute the largest masked response of every atom in float32.

    This is max(0, max_p mask(p) · response(p)). ``responses`` is (images, templates, positions),
    and its positions start at ``first_position``. ``masks`` is (masks, positions), and mask m is
    zero outside ``first[m]:last[m]``. Atom a has ``template[a]`` and ``mask[a]``. Its value for
    image i goes to ``out[i, place[a]]``.
    """
    for i in range(len(responses)):
        for a in range(len(template)):
            m = mask[a]
            start, stop = first[m] - first_position, last[m] - first_position
            response = responses[i, template[a], start:stop]
            weight = masks[m, first[m] : last[m]]
            # The compiler vectorises maxima of integers, but not those of floats.
            largest = types.int32(0)
            for p in range(len(weight)):
                value = _bits(weight[p] * response[p])
                if value > largest:
                    largest = value
            out[i, place[a]] = _number(largest)

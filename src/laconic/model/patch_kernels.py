"""Kernels of patch features: the largest masked responses.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from laconic.numeric.compiled import compiled

# Images that are computed side by side. They fill several registers, and their pixels stay in
# cache.
LANES = 64


@compiled(fastmath={"contract"})
def lane_maxima(
    images: Any,
    templates: Any,
    masks: Any,
    template: Any,
    mask: Any,
    place: Any,
    top: int,
    left: int,
    size: int,
    pixels: Any,
    sums: Any,
    largest: Any,
    out: Any,
) -> None:
    """Compute the largest masked response of a few atoms, for `LANES` images side by side.

    ``images`` is (n, h, w), ``templates`` is (templates, size²), and ``masks`` is (masks, rows,
    columns) and covers the box whose upper left position is (top, left). Atom a has ``template[a]``
    and ``mask[a]``, and its values go to ``out[:, place[a]]``. ``pixels`` (h, w, LANES), ``sums``
    and ``largest`` (LANES) are working memory. No windows are copied. Only positions under the mask
    are computed, for a register of images at a time.
    """
    n, height, width = images.shape
    for low in range(0, n, LANES):
        count = min(LANES, n - low)
        for y in range(height):
            for i in range(count):
                for x in range(width):
                    pixels[y, x, i] = images[low + i, y, x]
        for a in range(len(template)):
            for i in range(LANES):
                largest[i] = 0
            for y in range(masks.shape[1]):
                for x in range(masks.shape[2]):
                    weight = masks[mask[a], y, x]
                    if weight == 0:
                        continue
                    for i in range(LANES):
                        sums[i] = 0
                    for dy in range(size):
                        for dx in range(size):
                            factor = templates[template[a], dy * size + dx]
                            line = pixels[top + y + dy, left + x + dx]
                            for i in range(LANES):
                                sums[i] += factor * line[i]
                    for i in range(LANES):
                        value = weight * sums[i]
                        largest[i] = value if value > largest[i] else largest[i]
            for i in range(count):
                out[low + i, place[a]] = largest[i]


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


@compiled(fastmath={"contract"})
def respond(
    templates: Any, first: int, n: int, windows: Any, start: int, length: int, out: Any
) -> None:
    """Write the responses of n templates from the first on to ``out``, which is flat.

    ``windows`` (pixels, positions) are read from a position on, eight pixels at a time.
    """
    n_pixels = windows.shape[0]
    left = n_pixels % 8
    for t in range(first, first + n):
        q, line = templates[t, 0] if left > 0 else templates[t, 0] * 0, (t - first) * length
        for p in range(length):
            out[np.uintp(line + p)] = q * windows[0, np.uintp(start + p)]
    for d in range(1, left):
        for t in range(first, first + n):
            q, line = templates[t, d], (t - first) * length
            for p in range(length):
                out[np.uintp(line + p)] += q * windows[d, np.uintp(start + p)]
    for d in range(left, n_pixels, 8):
        for t in range(first, first + n):
            q, r, s, u = (
                templates[t, d],
                templates[t, d + 1],
                templates[t, d + 2],
                templates[t, d + 3],
            )
            v, w = templates[t, d + 4], templates[t, d + 5]
            x, y = templates[t, d + 6], templates[t, d + 7]
            line = (t - first) * length
            for p in range(length):
                at = np.uintp(start + p)
                one = q * windows[d, at] + r * windows[d + 1, at]
                one += s * windows[d + 2, at] + u * windows[d + 3, at]
                two = v * windows[d + 4, at] + w * windows[d + 5, at]
                two += x * windows[d + 6, at] + y * windows[d + 7, at]
                out[np.uintp(line + p)] += one + two


@compiled
def masked_maxima(
    images: Any,
    templates: Any,
    masks: Any,
    first: Any,
    last: Any,
    template: Any,
    mask: Any,
    place: Any,
    runs: Any,
    top: int,
    left: int,
    size: int,
    rows: int,
    columns: int,
    windows: Any,
    responses: Any,
    out: Any,
) -> None:
    """Compute the largest masked response of every atom in float32, image by image.

    This is max(0, max_p mask(p) · response(p)). ``images`` is (n, h, w). The windows whose upper
    left corners are in the box of (rows, columns) positions from (top, left) on are copied to
    ``windows``, (size², positions). They are multiplied by ``templates``, eight pixels at a time.
    BLAS is no faster here, and takes a lock for memory in every call.

    ``runs`` has a line for every run: its first template and how many it has, its first position
    and how many it has, its first atom and the one after its last. Atom a has ``template[a]`` (in
    its run) and ``mask[a]``. ``masks`` is (masks, positions), and mask m is zero outside
    ``first[m]:last[m]``. The value of atom a for image i goes to ``out[i, place[a]]``.
    ``responses`` is working memory.
    """
    for i in range(len(images)):
        for dy in range(size):
            for dx in range(size):
                line = windows[dy * size + dx]
                for y in range(rows):
                    pixels = images[i, top + y + dy]
                    for x in range(columns):
                        line[y * columns + x] = pixels[left + x + dx]
        for r in range(len(runs)):
            start, length = runs[r, 2], runs[r, 3]
            respond(templates, runs[r, 0], runs[r, 1], windows, start, length, responses)
            for a in range(runs[r, 4], runs[r, 5]):
                m = mask[a]
                low, high = first[m], last[m]
                response = responses[template[a] * length + low - start :]
                weight = masks[m, low:high]
                # The compiler vectorises maxima of integers, but not those of floats.
                largest = types.int32(0)
                for p in range(len(weight)):
                    value_bits = _bits(weight[p] * response[p])
                    if value_bits > largest:
                        largest = value_bits
                out[i, place[a]] = _number(largest)

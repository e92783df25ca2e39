"""Kernels of patch features: the windows of an image, and the largest masked responses.

This module imports Numba, so it is imported at first use.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from laconic.numeric.compiled import compiled

# Images that are computed side by side: some registers full, and their pixels stay in cache.
LANES = 64


@compiled
def windows(images: Any, size: int, top: int, left: int, rows: int, columns: int, out: Any) -> None:
    """Windows whose upper left corners lie in a box of positions, one a column of ``out``.

    ``images`` is (n, h, w), ``out`` (n, size², rows x columns): line j of an image holds pixel j of
    its windows.
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
    """Largest masked response of one atom, for `LANES` images side by side.

    ``pixels`` is (h, w, LANES), ``template`` (size²,), ``mask`` (rows, columns) over the box whose
    upper left position is (top, left), ``sums`` room for `LANES` numbers. No windows are copied and
    only positions under the mask are computed, a register of images at a time.
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


@intrinsic
def _bits(context, number):  # type: ignore[no-untyped-def]
    """The bits of a float32 as an int32: of floats that are not negative they have their order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _number(context, bits):  # type: ignore[no-untyped-def]
    """The float32 that has these bits."""

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
    """Largest masked response of every atom: max(0, max_p mask(p) · response(p)), in float32.

    ``responses`` is (images, templates, positions), of the positions from ``first_position`` on,
    and ``masks`` (masks, positions), zero outside the positions ``first`` to ``last`` of each.
    Atom a has ``template[a]`` and ``mask[a]``; its value for image i goes to ``out[i, place[a]]``.
    """
    for i in range(len(responses)):
        for a in range(len(template)):
            m = mask[a]
            start, stop = first[m] - first_position, last[m] - first_position
            response = responses[i, template[a], start:stop]
            weight = masks[m, first[m] : last[m]]
            # The compiler takes maxima of integers a register at a time, of floats one by one.
            largest = types.int32(0)
            for p in range(len(weight)):
                value = _bits(weight[p] * response[p])
                if value > largest:
                    largest = value
            out[i, place[a]] = _number(largest)

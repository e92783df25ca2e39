"""Kernel of `laconic.deform`. It imports Numba, so import it only at first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.numeric.compiled import compiled


@compiled
def bilinear(images: Any, affine: Any, bend: Any, fill: Any, out: Any) -> None:
    """Sample every image at the places to which its affine map and bend send the pixels.

    Values are interpolated between four pixels. ``images`` and ``out`` are (n, h, w), ``affine`` is
    (n, 2, 3), and ``bend`` is (n, 2, h, w), or (n, 2, 1, 1) for no bend. Pixels outside an image
    have the value ``fill``.
    """
    n, height, width = images.shape
    bent = bend.shape[2] > 1 or bend.shape[3] > 1
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    for i in range(n):
        image, a = images[i], affine[i]
        for y in range(height):
            for x in range(width):
                dy, dx = y - middle_y, x - middle_x
                source_y = a[0, 0] * dy + a[0, 1] * dx + middle_y + a[0, 2]
                source_x = a[1, 0] * dy + a[1, 1] * dx + middle_x + a[1, 2]
                if bent:
                    source_y += bend[i, 0, y, x]
                    source_x += bend[i, 1, y, x]
                top, left = int(np.floor(source_y)), int(np.floor(source_x))
                down, across = source_y - top, source_x - left
                value = 0.0
                for v in range(2):
                    for u in range(2):
                        weight = (down if v else 1.0 - down) * (across if u else 1.0 - across)
                        if weight == 0.0:
                            continue
                        inside = 0 <= top + v < height and 0 <= left + u < width
                        value += weight * (image[top + v, left + u] if inside else fill)
                out[i, y, x] = value

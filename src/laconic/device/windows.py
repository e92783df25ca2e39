"""`laconic.model.windows.WindowMaximum` on a device."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.device.patch_values import PatchValues
from laconic.model.windows import LARGEST_PIXEL, WindowMaximum, images_of
from laconic.numeric.namespaces import to_host
from laconic.numeric.threads import row_blocks

# Most pixels that are copied together.
HELD = 1 << 26


def window_maxima(p: WindowMaximum, X: Tensor) -> Tensor:
    """Return the largest masked responses, (n_rows, n_columns), in float32.

    An image that is not finite has the value NaN in every column.
    """
    every = PatchValues(p, X.device)
    out = X.new_empty((len(X), p.n_columns), dtype=torch.float32)
    height, width = p.shape.tolist()
    for s in row_blocks(len(X), max(HELD // (height * width), 1)):
        pixels = X[s].float()
        finite = torch.isfinite(pixels).all(1)
        if bool((pixels.abs() > LARGEST_PIXEL).any()):
            images_of(to_host(X[s]), (height, width))  # it refuses pixels that are too large
        images = torch.where(finite[:, None], pixels, 0.0)
        out[s] = every.compute(images.T).T
        out[s][~finite] = torch.nan
    return out

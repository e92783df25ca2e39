"""`laconic.model.windows.WindowMaximum` on a device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from laconic.model.windows import LARGEST_PIXEL, WindowMaximum, images_of
from laconic.numeric.namespaces import to_host
from laconic.numeric.threads import row_blocks

# Most numbers of the windows that are held at once.
HELD = 1 << 26


def window_maxima(p: WindowMaximum, X: Tensor) -> Tensor:
    """Return the largest masked responses, (n_rows, n_columns), in float32.

    An image that is not finite has the value NaN in every column.
    """
    out = X.new_zeros((len(X), p.n_columns), dtype=torch.float32)
    height, width = p.shape.tolist()
    for s in row_blocks(len(X), max(HELD // (height * width * int(p.size.max(initial=1)) ** 2), 1)):
        pixels = X[s].float()
        finite = torch.isfinite(pixels).all(1)
        if bool((pixels.abs() > LARGEST_PIXEL).any()):
            images_of(to_host(X[s]), (height, width))  # it refuses pixels that are too large
        images = torch.where(finite[:, None], pixels, 0.0).view(-1, height, width)
        for size in np.unique(p.size[p.template]).tolist():
            _of_size(p, size, images, out[s])
        out[s][~finite] = torch.nan
    return out


def _of_size(p: WindowMaximum, size: int, images: Tensor, out: Tensor) -> None:
    """Write the columns whose templates have this size."""
    windows = images.unfold(1, size, 1).unfold(2, size, 1).reshape(len(images), -1, size * size)
    templates = p.templates()
    columns = np.flatnonzero(p.size[p.template] == size)
    for t in np.unique(p.template[columns]).tolist():
        pixels = torch.from_numpy(templates[t].ravel().copy()).to(images.device)
        response = windows @ pixels
        for column in columns[p.template[columns] == t].tolist():
            mask = p.mask(column).ravel()
            under = np.flatnonzero(mask)
            at = torch.from_numpy(under).to(images.device)
            weight = torch.from_numpy(mask[under]).to(images.device)
            out[:, column] = (response[:, at] * weight).amax(1).clamp_(min=0.0)

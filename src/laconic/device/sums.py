"""Sums over the rows of a device: in blocks in the type of the factors, across them in float64.

The blocks are fixed, and nothing is added in an order that depends on who is first. So the same
rows give the same bits from run to run on one device.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Rows whose products are added up in the type of the factors.
BLOCK = 1024


def sums_over_rows(columns: Tensor, values: Tensor) -> Tensor:
    """Return Σ_i columns_ri values_ci of (n, n_rows) and (k, n_rows) tensors: (n, k) in float64."""
    n_rows = columns.shape[1]
    blocks = n_rows // BLOCK
    within = blocks * BLOCK
    left, right = (given[:, :within].view(len(given), blocks, BLOCK) for given in (columns, values))
    out = torch.bmm(left.transpose(0, 1), right.permute(1, 2, 0)).sum(0, dtype=torch.float64)
    if within < n_rows:
        out += columns[:, within:] @ values[:, within:].T
    return out

"""Sums of columns times a residual, in the dtype of X in a block, and in float64 across blocks."""

from __future__ import annotations

import torch
from torch import Tensor

# Rows of a block. Sums in float32 must not be long.
ROWS = 1024
# Blocks that are multiplied in one call, by the bytes that their sums or doubles take.
BYTES = 1 << 28


def block_sums(X: Tensor, residual: Tensor, double: bool = False, rows: int = ROWS) -> Tensor:
    """Return the column sums Xᵀ residualᵀ, (d, n_outputs) in float64.

    X (n_rows, d) is read in place, in any order of memory.

    Parameters
    ----------
    X : Tensor of shape (n_rows, d)
    residual : Tensor of shape (n_outputs, n_rows)
    double : bool
        Whether to multiply in float64, whatever the dtype of X.
    rows : int
        Rows of a block.
    """
    (k, n), d = residual.shape, X.shape[1]
    dtype = torch.float64 if double else X.dtype
    total = torch.zeros(k, d, dtype=torch.float64, device=X.device)
    each = max(k * d, rows * d if double else 1)
    step = rows * max(1, BYTES // (8 * each))
    whole = n - n % rows
    for start in range(0, whole, step):
        some = slice(start, min(start + step, whole))
        left = residual[:, some].to(dtype).unflatten(1, (-1, rows)).transpose(0, 1)
        right = X[some].to(dtype).unflatten(0, (-1, rows))
        total += torch.bmm(left, right).sum(dim=0, dtype=torch.float64)
    if whole < n:
        total += (residual[:, whole:].to(dtype) @ X[whole:].to(dtype)).double()
    return total.T

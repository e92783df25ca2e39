"""Losses of a score matrix, shared by every estimator.

A loss gets blocks of scores of shape ``(n_outputs, n_rows)``, so that sums over classes run along
contiguous rows. It does not know what an atom is. Every value is a sum weighted by the given row
weights. If they sum to one, it is a weighted mean.
"""

from laconic.losses.binary import (
    BINARY_LOSSES,
    BinaryLoss,
    ExponentialLoss,
    LogisticLoss,
    SquaredHingeLoss,
    sigmoid,
)
from laconic.losses.contract import Link, Loss
from laconic.losses.links import (
    LINKS,
    OneScore,
    OneVsRest,
    ScoresOnly,
    decide,
    find_link,
    find_loss,
)
from laconic.losses.softmax import LOSSES, LogLoss, MarginLoss, softmax

__all__ = [
    "BINARY_LOSSES", "LINKS", "LOSSES", "BinaryLoss", "ExponentialLoss", "Link", "LogLoss",
    "LogisticLoss", "Loss", "MarginLoss", "OneScore", "OneVsRest", "ScoresOnly",
    "SquaredHingeLoss", "decide", "find_link", "find_loss", "sigmoid", "softmax",
]  # fmt: skip

"""Links: what the scores of a predictor mean. Some of them are losses, the others minimise none."""

from __future__ import annotations

from typing import Any

from laconic.losses.binary import BINARY_LOSSES
from laconic.losses.contract import Link, Loss
from laconic.losses.softmax import LOSSES
from laconic.numeric.namespaces import as_type, namespace


def decide(scores: Any) -> Any:
    """Return the class code of every row.

    It is the position of the largest score. With a single score, it is 1 above zero and else 0.
    """
    if scores.shape[1] > 1:
        return namespace(scores).argmax(scores, axis=1)
    return as_type(scores[:, 0] > 0, "int64")


class OneVsRest:
    """Link for the scores of one squared hinge problem per class.

    Predictors use it; no fit minimises it. The population optimum of the squared hinge is
    f = 2p − 1.
    """

    name = "one_vs_rest"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score per class."""
        return n_classes

    def probabilities(self, scores: Any) -> Any:
        """Return (1 + f)/2 of every class, clipped to [0, 1] and scaled to sum to one."""
        p = 0.5 * (1.0 + scores.clip(-1.0, 1.0))
        p[p.sum(axis=1) == 0.0] = 1.0
        p /= p.sum(axis=1, keepdims=True)
        return p


class ScoresOnly:
    """Link for one score per class that gives no probability, as in error clumping.

    A discount moves scores away from f = 2p − 1, the optimum of the squared hinge.
    """

    name = "scores"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score per class."""
        return n_classes


class OneScore:
    """Link for two classes and one score that gives no probability, as of a linear classifier."""

    name = "one_score"

    def n_outputs(self, n_classes: int) -> int:
        """Return one score. More than two classes are refused."""
        if n_classes != 2:
            raise ValueError(f"one score tells 2 classes apart, not {n_classes}")
        return 1


def find_loss(loss: Any) -> Loss:
    """Return the loss of a name, or a loss object unchanged."""
    known: dict[str, Any] = {**LOSSES, **BINARY_LOSSES}
    if isinstance(loss, str):
        if loss not in known:
            raise ValueError(f"loss must be one of {', '.join(map(repr, known))}, not {loss!r}")
        made: Loss = known[loss]()
        return made
    wanted = [name for name in vars(Loss) if not name.startswith("_")]
    missing = [name for name in ("name", "shift_invariant", *wanted) if not hasattr(loss, name)]
    if missing or isinstance(loss, type):
        why = "is a class; pass an object" if isinstance(loss, type) else f"has no {missing[0]!r}"
        raise TypeError(f"loss must be a name or a loss object; {loss!r} {why}")
    given: Loss = loss
    return given


LINKS: dict[str, Any] = {
    **LOSSES, **BINARY_LOSSES, OneVsRest.name: OneVsRest, ScoresOnly.name: ScoresOnly,
    OneScore.name: OneScore,
}  # fmt: skip
"""Links that a saved predictor can have, by name."""


def find_link(link: Any) -> Link:
    """Return the link of a name, or a loss object unchanged."""
    made: Link = LINKS[link]() if isinstance(link, str) and link in LINKS else find_loss(link)
    return made

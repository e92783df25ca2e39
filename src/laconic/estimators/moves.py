"""What cannot be tuned at selection, and is refused before the data is touched."""

from __future__ import annotations

from typing import Any

# Rules whose score is a smooth function of an atom's parameters, almost everywhere.
MOVING_RULES = ("gradient", "projection")


def check_moves(estimator: Any, pool: Any) -> None:
    """Refuse settings with which atoms cannot be moved when they are chosen."""
    rule = getattr(estimator, "rule", None)
    if rule is None:
        raise TypeError(
            f"at_selection=True moves atoms along the score of ShareBoostClassifier's rule; "
            f"leave it out for a {type(estimator).__name__}"
        )
    if rule not in MOVING_RULES:
        raise ValueError(
            f'at_selection=True moves atoms along the score of rule="gradient" or "projection", '
            f"and rule={rule!r} has no such score; use one of the two, or leave at_selection out"
        )
    if not getattr(pool, "movable", False):
        raise TypeError(
            f"at_selection=True moves hinges and patches, not the atoms of {type(pool).__name__}; "
            "leave it out to tune them after the path is grown"
        )
    if not estimator.fit_intercept:
        raise ValueError(
            "at_selection=True needs fit_intercept=True, because the score of a centred column "
            "says where to move an atom"
        )
    if estimator.device is not None:
        raise ValueError(
            f"at_selection=True moves atoms on the processor, not on device={estimator.device!r}; "
            "leave one of them out"
        )

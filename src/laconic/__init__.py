"""Laconic: compact predictors. Few shared features, few weak learners, few pieces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laconic import forks as forks

if TYPE_CHECKING:
    from laconic.clump import ErrorClumpingClassifier
    from laconic.holes import HolePunchingClassifier
    from laconic.look.report import report_holes
    from laconic.model.predictor import Predictor
    from laconic.regions.groups import grouped_scorer
    from laconic.regions.score import clump_score
    from laconic.share import ShareBoostClassifier
    from laconic.totalq import TotalQBoostClassifier

__version__ = "0.1.0"

__all__ = [
    "ErrorClumpingClassifier",
    "HolePunchingClassifier",
    "Predictor",
    "ShareBoostClassifier",
    "TotalQBoostClassifier",
    "__version__",
    "clump_score",
    "grouped_scorer",
    "report_holes",
]

_WHERE = {
    "ErrorClumpingClassifier": "laconic.clump",
    "HolePunchingClassifier": "laconic.holes",
    "Predictor": "laconic.model.predictor",
    "ShareBoostClassifier": "laconic.share",
    "TotalQBoostClassifier": "laconic.totalq",
    "clump_score": "laconic.regions.score",
    "grouped_scorer": "laconic.regions.groups",
    "report_holes": "laconic.look.report",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

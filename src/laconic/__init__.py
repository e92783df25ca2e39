"""Laconic: compact predictors from few shared features, few weak learners or few pieces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laconic.numeric import forks as forks

if TYPE_CHECKING:
    from laconic.clumping.score import clump_score
    from laconic.compact.classifier import CompactClassifier
    from laconic.converters.convert import convert
    from laconic.estimators.clump import ErrorClumpingClassifier
    from laconic.estimators.holes import HolePunchingClassifier
    from laconic.estimators.label_groups import grouped_scorer
    from laconic.estimators.share import ShareBoostClassifier
    from laconic.estimators.totalq import TotalQBoostClassifier
    from laconic.model.predictor import Predictor
    from laconic.report.report import report_holes

__version__ = "0.1.0"

__all__ = [
    "CompactClassifier",
    "ErrorClumpingClassifier",
    "HolePunchingClassifier",
    "Predictor",
    "ShareBoostClassifier",
    "TotalQBoostClassifier",
    "__version__",
    "clump_score",
    "convert",
    "grouped_scorer",
    "report_holes",
]

_WHERE = {
    "CompactClassifier": "laconic.compact.classifier",
    "ErrorClumpingClassifier": "laconic.estimators.clump",
    "HolePunchingClassifier": "laconic.estimators.holes",
    "Predictor": "laconic.model.predictor",
    "ShareBoostClassifier": "laconic.estimators.share",
    "TotalQBoostClassifier": "laconic.estimators.totalq",
    "clump_score": "laconic.clumping.score",
    "convert": "laconic.converters.convert",
    "grouped_scorer": "laconic.estimators.label_groups",
    "report_holes": "laconic.report.report",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

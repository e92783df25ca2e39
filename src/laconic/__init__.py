"""Laconic: compact predictors. Few shared features, few weak learners, few pieces."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laconic.model.predictor import Predictor
    from laconic.share import ShareBoostClassifier
    from laconic.totalq import TotalQBoostClassifier

__version__ = "0.1.0"

__all__ = ["Predictor", "ShareBoostClassifier", "TotalQBoostClassifier", "__version__"]

_WHERE = {
    "ShareBoostClassifier": "laconic.share",
    "TotalQBoostClassifier": "laconic.totalq",
    "Predictor": "laconic.model.predictor",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'laconic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

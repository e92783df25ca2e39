"""Fingerprints: what tells the checkpoint of one fit from that of another."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from laconic import __version__
from laconic.numeric.threads import row_blocks

# Rows that are hashed together: the most that is ever copied.
HASHED_ROWS = 4096
# Settings that say how a fit runs, not what it finds: of any estimator, and of Laconic's.
HOW_IT_RUNS = ("n_jobs", "verbose")
HOW_OURS_RUN = ("checkpoint", "pickle_models", "callbacks")


def settings_of(estimator: Any, *limits: str) -> dict[str, Any]:
    """Settings that an estimator's answer depends on, those of estimators inside it included.

    ``limits`` names settings that say how far a fit goes: a resumed one may go further.
    """
    return _settings(estimator, (*HOW_IT_RUNS, *HOW_OURS_RUN, *limits))


def _settings(estimator: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    return {name: _plain(value) for name, value in params.items() if name not in left_out}


def _plain(value: Any) -> Any:
    """A setting, with estimators in it told by their class and their own settings."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        return (f"{kind.__module__}.{kind.__qualname__}", _settings(value, HOW_IT_RUNS))
    if type(value) in (list, tuple):
        return [_plain(item) for item in value]
    if type(value) is dict:
        return {name: _plain(item) for name, item in value.items()}
    return value


def fingerprint(X: Any, y: np.ndarray, weight: np.ndarray, settings: dict[str, Any]) -> str:
    """Digest of what a fit's answer depends on: settings, data, labels and weights."""
    sha = hashlib.sha256()
    try:
        sha.update(joblib.hash(settings).encode())
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"a checkpoint needs settings that can be told apart when a fit is resumed ({error}); "
            "name functions at the top of a module instead of a lambda or inside another function"
        ) from error
    # Sums over rows and over columns round differently, so the order in memory belongs to it.
    kind = X.format if sparse.issparse(X) else f"dense {X.flags.c_contiguous:d}"
    sha.update(f"{__version__} {X.shape} {X.dtype} {kind}".encode())
    if sparse.issparse(X):
        parts: list[np.ndarray] = [X.data, X.indices, X.indptr]
    else:
        parts = [X[s] for s in row_blocks(X.shape[0], HASHED_ROWS)]
    for part in (*parts, y, weight):
        sha.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()

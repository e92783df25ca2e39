"""Fingerprints, by which a fit recognises its own checkpoint."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from laconic import __version__
from laconic.numeric.threads import row_blocks

# Number of rows that are hashed together. No more rows than this are copied at a time.
HASHED_ROWS = 4096
# Settings that change how a fit runs but not its result: those of any estimator, and Laconic's own.
HOW_IT_RUNS = ("n_jobs", "verbose")
HOW_OURS_RUN = ("checkpoint", "pickle_models", "callbacks", "device")


def settings_of(estimator: Any, *limits: str) -> dict[str, Any]:
    """Return the settings that an estimator's result depends on.

    Settings of estimators inside it are included. ``limits`` names settings that are left out
    because they only say how far a fit goes: a resumed fit may go further.
    """
    return _settings(estimator, (*HOW_IT_RUNS, *HOW_OURS_RUN, *limits))


def _settings(estimator: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    return {name: plain(value) for name, value in params.items() if name not in left_out}


def plain(value: Any) -> Any:
    """Return a setting, with any estimator in it replaced by its class name and its settings."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        return (f"{kind.__module__}.{kind.__qualname__}", _settings(value, HOW_IT_RUNS))
    if type(value) in (list, tuple):
        return [plain(item) for item in value]
    if type(value) is dict:
        return {name: plain(item) for name, item in value.items()}
    return value


def fingerprint(X: Any, y: np.ndarray, weight: np.ndarray, settings: dict[str, Any]) -> str:
    """Return a digest of all that a fit's result depends on: settings, data, labels and weights."""
    sha = hashlib.sha256(digest_of(settings).encode())
    # The order in memory is part of the digest, because sums over rows and over columns round
    # differently.
    kind = X.format if sparse.issparse(X) else f"dense {X.flags.c_contiguous:d}"
    sha.update(f"{__version__} {X.shape} {X.dtype} {kind}".encode())
    if sparse.issparse(X):
        parts: list[np.ndarray] = [X.data, X.indices, X.indptr]
    else:
        parts = [X[s] for s in row_blocks(X.shape[0], HASHED_ROWS)]
    for part in (*parts, y, weight):
        sha.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def digest_of(settings: dict[str, Any]) -> str:
    """Return a digest of settings."""
    try:
        return str(joblib.hash(settings))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        why = error.args[0] if error.args else error  # joblib adds all settings
        raise ValueError(
            f"a checkpoint needs settings that can be compared when a fit is resumed ({why}); "
            "define functions at the top of a module, not as a lambda or inside another function"
        ) from error

"""Files of predictors: arrays and a header. They are safe to load, even from a stranger."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from laconic.data.frames import OTHER
from laconic.files.layout import Array, check_arrays, list_of, whole_number
from laconic.files.store import read_archive, write_archive
from laconic.losses import LINKS
from laconic.model.feature_maps import feature_map, unknown_map
from laconic.numeric.magnitudes import LARGEST_SCORE
from laconic.registry import INTEGER_FILE, find

if TYPE_CHECKING:
    from laconic.model.predictor import Predictor

P = TypeVar("P")

# The arrays in a file that do not belong to the map.
LAYOUT = {
    "weights": Array("f", ("columns", "outputs"), -LARGEST_SCORE, LARGEST_SCORE),
    "intercept": Array("f", ("outputs",), -LARGEST_SCORE, LARGEST_SCORE),
}


def write_predictor(predictor: Predictor, path: str | os.PathLike[str]) -> None:
    """Write a predictor to a file."""
    if predictor.map.kind == "classifiers":
        raise TypeError(
            "an ensemble of scikit-learn classifiers cannot be saved as a Laconic file; "
            "write the fitted estimator with joblib.dump instead"
        )
    if (own := unknown_map(predictor.map)) is not None:
        raise TypeError(
            f"a predictor with a feature map of your own ({type(own).__name__}) cannot "
            "be saved, because a file holds arrays, not code"
        )
    if LINKS.get(predictor.loss) is not type(predictor.link):
        raise TypeError(
            f"a predictor with a loss of your own ({type(predictor.link).__name__}) cannot be "
            "saved, because a file holds arrays, not code"
        )
    classes = np.asarray(predictor.classes)
    if classes.dtype.hasobject:
        if not all(isinstance(label, str) for label in classes):
            raise TypeError("class labels must be numbers, booleans or strings to be saved")
        classes = classes.astype(np.str_)
    header = {
        "atoms": predictor.map.kind,
        "loss": predictor.loss,
        "widths": predictor.widths,
        "n_features": predictor.n_features,
        "feature_names": predictor.feature_names,
        "categories": {
            str(f): {str(code): label for code, label in known.items()}
            for f, known in predictor.categories.items()
        },
        "other": None if np.isnan(predictor.other) else predictor.other,
    }
    if predictor.units:  # without dates, files are the same as those of older versions
        header["units"] = {str(f): unit for f, unit in predictor.units.items()}
    if predictor.class_factors is not None:
        header["class_factors"] = predictor.class_factors
    arrays = {"weights": predictor.weights, "intercept": predictor.intercept, "classes": classes}
    arrays |= {f"map_{name}": array for name, array in predictor.map.arrays().items()}
    if hasattr(predictor, "integers"):
        header["integers"], tables = find(INTEGER_FILE)[0](predictor)
        arrays |= {f"integer_{name}": table for name, table in tables.items()}
    write_archive(path, "predictor", header, arrays)


def read_predictor(path: str | os.PathLike[str], make: Callable[..., P]) -> P:
    """Check the parts in a file, and return what ``make`` builds from them."""
    header, arrays = read_archive(path, "predictor")
    try:
        return _made(make, header, arrays)
    except KeyError as error:
        raise ValueError(f"{path} is not a sound predictor: it has no {error}") from error
    except Exception as error:  # anything that the checks did not foresee
        raise ValueError(f"{path} is not a sound predictor: {error}") from error


def _made(make: Callable[..., P], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> P:
    """Check a header and arrays, and return what ``make`` builds from them."""
    n_features = whole_number(header["n_features"], "n_features", 1)
    names = header["feature_names"]
    if names is not None:
        list_of(str, names, "feature_names", n_features)
    mapped, whole = _taken(arrays, "map_"), _taken(arrays, "integer_")
    classes = arrays.pop("classes")
    kind = "i" if classes.dtype.kind == "u" else classes.dtype.kind
    check_arrays({"classes": classes}, {"classes": Array(kind, ("classes",))}, {})
    if len(np.unique(classes)) != len(classes) or len(classes) < 2:
        raise ValueError("it must have two or more different classes, each listed once")
    flat = check_arrays(arrays, LAYOUT, {})
    old = header["version"] == 1
    made = make(
        feature_map(header["atoms"], mapped, n_features),
        flat["weights"],
        flat["intercept"],
        classes,
        _known_link(header["loss"]),
        [whole_number(w, "widths", 1) for w in list_of(int, header["widths"], "widths")],
        n_features,
        names,
        _categories(header["categories"], old),
        np.nan if old or header["other"] is None else OTHER,
        _units(header.get("units", {})),
        _factors(header.get("class_factors")),
    )
    if "integers" in header or whole:
        integer: P = find(INTEGER_FILE)[1](made, dict(header["integers"]), whole)
        return integer
    return made


def _taken(arrays: dict[str, np.ndarray], start: str) -> dict[str, np.ndarray]:
    """Remove the arrays whose names begin with ``start``, and return them without it."""
    names = [name for name in arrays if name.startswith(start)]
    return {name.removeprefix(start): arrays.pop(name) for name in names}


def _known_link(loss: Any) -> str:
    if not isinstance(loss, str) or loss not in LINKS:
        raise ValueError(f"unknown loss {loss!r}; known: {', '.join(LINKS)}")
    return loss


def _units(stored: Any) -> dict[int, str]:
    """Return the units in a header."""
    list_of(str, list(dict(stored).values()), "units")
    return {int(feature): unit for feature, unit in stored.items()}


def _factors(stored: Any) -> list[float] | None:
    """Return the factors of the classes in a header, or None."""
    return None if stored is None else list_of(float, stored, "class_factors")


def _categories(stored: Any, old: bool) -> dict[int, dict[int, str]]:
    """Return the categories in a header. Files of version 1 list all categories of a feature."""
    out = {}
    for feature, known in dict(stored).items():
        labelled = dict(enumerate(known)) if old else dict(known)
        list_of(str, list(labelled.values()), "categories")
        out[int(feature)] = {int(code): label for code, label in labelled.items()}
    return out

"""LightGBM's ensembles of trees with one split."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from laconic.converters.columns import Column, WordCodes
from laconic.converters.linear import Converted
from laconic.converters.stumps import add_choice, too_deep
from laconic.converters.terms import TermSums
from laconic.losses import LogisticLoss, LogLoss, ScoresOnly

# Numbers up to this size are zero to LightGBM.
ZERO = float(np.float32(1e-35))


def classifier(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    """Convert a fitted LGBMClassifier."""
    return booster(model.booster_, columns, words, model.classes_)


def booster(model: Any, columns: list[Column], words: WordCodes, classes: Any = None) -> Converted:
    """Convert a Booster. Its classes are 0, 1, …"""
    dump = model.dump_model()
    loss, factor, n = _link(dump)
    if classes is None:
        classes = np.arange(max(n, 2))
    elif len(classes) != max(n, 2):
        raise ValueError(f"the model has {len(classes)} classes but {n} scores")
    terms, named = TermSums(n), _named_categories(dump, len(columns))
    trees = dump["tree_info"]
    if dump.get("average_output"):
        factor = factor * n / len(trees)
    for number, tree in enumerate(trees):
        root, at = tree["tree_structure"], np.arange(n) == number % n
        if tree["num_leaves"] > 2:
            raise too_deep(model, number, tree["num_leaves"] - 1, "max_depth=1")
        _check_constant(root)
        if "split_feature" not in root:
            terms.constant = terms.constant + np.where(at, factor * root["leaf_value"], 0.0)
            continue
        left, right = (
            np.where(at, factor * root[side]["leaf_value"], 0.0)
            for side in ("left_child", "right_child")
        )
        place = root["split_feature"]
        if root["decision_type"] == "==":
            codes = [int(code) for code in str(root["threshold"]).split("||")]
            asked = [named[place][code] if place in named else code for code in codes]
            add_choice(terms, columns[place], asked, left, right, words)
        else:
            _add_numeric(terms, columns[place], root, left, right)
    return Converted(terms, classes, loss)


def _check_constant(root: dict[str, Any]) -> None:
    leaves = [root[side] for side in ("left_child", "right_child") if side in root] or [root]
    if any("leaf_coeff" in leaf for leaf in leaves):
        raise ValueError("LightGBM with linear_tree=True cannot be converted; fit without it")


def _add_numeric(
    terms: TermSums, column: Column, root: dict[str, Any], left: Any, right: Any
) -> None:
    threshold, kind = float(root["threshold"]), root["missing_type"]
    lost = left if root["default_left"] else right

    def curve(number: float) -> np.ndarray:
        if abs(number) <= ZERO or (np.isnan(number) and kind != "NaN"):
            number = 0.0
        if np.isnan(number) or (kind == "Zero" and number == 0.0):
            return np.asarray(lost)
        return np.asarray(left if number <= threshold else right)

    cuts = {threshold}
    if kind == "Zero" or abs(threshold) <= ZERO:
        cuts |= {float(np.nextafter(-ZERO, -np.inf)), ZERO}
    column.add_curve(terms, list(cuts), curve)


def _link(dump: dict[str, Any]) -> tuple[str, float, int]:
    """Return the link, a factor of the scores, and the number of scores."""
    objective = str(dump.get("objective", "a function of your own"))
    n = int(dump["num_tree_per_iteration"])
    kind = objective.split()[0]
    found = re.search(r"sigmoid:(\S+)", objective)
    factor = float(found[1]) if found else 1.0
    if kind == "binary" and n == 1:
        return LogisticLoss.name, factor, n
    if kind == "multiclass" and n > 1:
        return LogLoss.name, 1.0, n
    if kind == "multiclassova" and n > 1:
        return ScoresOnly.name, factor, n
    raise ValueError(
        f"a LightGBM model with objective {objective!r} cannot be converted; known objectives are "
        "binary, multiclass and multiclassova"
    )


def _named_categories(dump: dict[str, Any], n: int) -> dict[int, list[Any]]:
    """Return the categories of the columns that a data frame of pandas declared as categorical."""
    named = dump.get("pandas_categorical") or []
    if not named:
        return {}
    infos = dump["feature_infos"]
    places = [
        place
        for place, name in enumerate(dump["feature_names"])
        if infos.get(name, {}).get("values")
    ]
    if len(places) != len(named):
        raise ValueError(
            f"the model has {len(named)} categorical columns of pandas, but only {len(places)} are "
            "known by number; leave out categorical columns with a single category"
        )
    spelled = ([str(category) for category in known] for known in named)
    return dict(zip(places, spelled, strict=True))

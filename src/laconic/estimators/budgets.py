"""Costs and caps of users, as the loop needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np

from laconic.boost.costs import Cap, Costs
from laconic.boost.measures import AtomCount, Measure, Operations, SensorPrices, TargetBytes
from laconic.estimators.terms import NAMELESS
from laconic.export.footprint import Target, find_target
from laconic.model.input_codes import given_type
from laconic.pools.base import BoundPool
from laconic.rows.rows import Rows

# Settings that cap a model, and what a model that is too large does.
CAPS = {
    "max_cost": "cost {:g}",
    "max_features": "read {:g} features",
    "max_operations": "take {:g} operations",
    "max_bytes": "take {:g} bytes",
}


def make_costs(estimator: Any, rows: Rows, target: Target | None, names: Any) -> Costs:
    """Return what models of a pool's atoms cost, with the caps of an estimator."""
    pool, n_outputs, n_features = rows.pool, rows.n_outputs, estimator.n_features_in_
    paid = _paid(estimator.costs, pool, n_features, names)
    measures: dict[str, Measure] = {}
    if estimator.max_cost is not None:
        measures["max_cost"] = AtomCount(pool) if paid is None else paid
    if estimator.max_features is not None:
        measures["max_features"] = SensorPrices(pool, np.ones(n_features), np.arange(n_features))
    if estimator.max_operations is not None:
        measures["max_operations"] = Operations(pool, n_outputs)
    if target is not None:
        one = n_outputs == 2 and rows.shift_invariant  # the difference of two scores is exported
        given = 1 if one else n_outputs, target, n_features, len(estimator.classes_)
        measures["max_bytes"] = TargetBytes(pool, *given)
    caps = [Cap(name, float(getattr(estimator, name)), m) for name, m in measures.items()]
    return Costs(paid, caps, measures.get("max_bytes"))


def _paid(costs: Any, pool: BoundPool, n_features: int, names: Any) -> Measure | None:
    """Return the cost that atoms are ranked by, or None if each atom costs 1."""
    if costs is None:
        return None
    if isinstance(costs, str):
        operations = Operations(pool)
        added = operations.added(())
        if added is None or not added.any():
            raise ValueError(
                'costs="operations" needs a pool whose atoms differ in the operations they take, '
                "such as Patches; with other pools, give one cost per feature"
            )
        return operations
    ordered = in_order(costs, names, n_features)
    sensor = np.arange(n_features)
    if isinstance(ordered, dict):
        for number, features in enumerate(ordered):
            sensor[list(features)] = number
        ordered = list(ordered.values())
    try:
        prices = np.asarray(ordered, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"costs must be numbers, one per feature: {error}") from error
    if prices.shape != (sensor.max(initial=-1) + 1,):
        raise ValueError(
            f"costs must have one number per feature ({n_features}), not shape {prices.shape}"
        )
    if not np.all(np.isfinite(prices)) or not np.all(prices > 0):
        raise ValueError("costs must be positive and finite")
    return SensorPrices(pool, prices, sensor)


def in_order(costs: Any, names: Any, n_features: int) -> Any:
    """Return the costs in the order of the features.

    Costs that are not given by name are returned as they are. Features without a cost by name cost
    1. If features have no names, their numbers count as names. If some features share a sensor, the
    answer is a dict: the features of every sensor, and its price.
    """
    if not isinstance(costs, Mapping) and not hasattr(costs, "to_dict"):
        return costs
    given = {key if isinstance(key, tuple) else (key,): price for key, price in costs.items()}
    if names is None:
        if not isinstance(costs, Mapping) and given and list(costs.keys()) == [*range(len(given))]:
            return list(given.values())  # a series without names: one cost per feature
        if not all(isinstance(feature, Integral) for key in given for feature in key):
            raise ValueError(f"costs have names, {NAMELESS}")
        names = range(n_features)
    place = {name: number for number, name in enumerate(names)}
    prices = {_numbers(key, place): price for key, price in given.items()}
    named = Counter(number for key in given for number in _numbers(key, place))
    for number, times in named.items():
        if times > 1:
            raise ValueError(
                f"costs names {names[number]!r} more than once; give each feature one cost of its "
                "own, or put it into one sensor"
            )
    prices |= {(number,): 1.0 for number in set(range(n_features)).difference(named)}
    prices = dict(sorted(prices.items()))
    return prices if len(prices) < n_features else list(prices.values())


def _numbers(features: Sequence[Any], place: Mapping[Any, int]) -> tuple[int, ...]:
    """Return the numbers of a sensor's features, in order."""
    if not features:
        raise ValueError("costs has a sensor without features; name its features, or leave it out")
    for name in features:
        if name not in place:
            near = get_close_matches(str(name), map(str, place), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"costs names {name!r}, which is not a feature of X{hint}")
    return tuple(sorted(place[name] for name in features))


def resolve_target(chip: Any, X: Any) -> Target:
    """Return the target of a chip, with the type of the features of ``X`` as inputs."""
    target = find_target(chip)
    return target if target.inputs != "auto" else target._replace(inputs=given_type(X))


def check_caps(costs: Costs, include: Sequence[int]) -> None:
    """Refuse atoms of ``include`` that no model within the caps can have."""
    for cap in costs.caps:
        if over := cap.excess(include):
            what = CAPS[cap.name].format(cap.measure.of(include))
            who = "the atoms of include" if include else "a model without any atom would"
            raise ValueError(f"{who} {what}, {over:g} more than {cap.name}={cap.most:g}")


def tight_caps(costs: Costs) -> str:
    """Say which caps leave no room for a single atom, and what the smallest atom needs."""
    said = []
    for cap in costs.caps:
        added = cap.measure.added(())
        if added is None or len(cap.beyond(())) < len(added):
            continue
        least = cap.measure.of(()) + float(added.min(initial=np.inf))
        said.append(
            f"A model of one atom would {CAPS[cap.name].format(least)}, more than "
            f"{cap.name}={cap.most:g}. Raise {cap.name}."
        )
        if isinstance(cap.measure, TargetBytes) and cap.measure.target.inputs == "float":
            said.append(
                "If the device hands over 8-bit or 16-bit integers, give X in that type: such "
                "models are smaller."
            )
    return " ".join(said)

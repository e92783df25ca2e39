"""Prepare a fit on rows that are elsewhere: on a cluster, in files, or in a large memory map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from laconic.boost.loop import Hook
from laconic.data.doubts import warn_of_amounts
from laconic.data.elsewhere import in_words, is_elsewhere, is_large_map
from laconic.data.validation import learn_features
from laconic.estimators.tuning import asked_tuning
from laconic.pools import Pool, make_pool
from laconic.pools.parts import PoolOfParts, of_parts


class Prepared(NamedTuple):
    """Checked rows in parts, and what a fit must know of them."""

    training: Any
    """A `laconic.beyond.in_parts.TrainingInParts`."""
    pool: Pool
    total: float
    """Sum of the weights."""
    first: Any
    """The first row of X."""
    hooks: tuple[Hook, ...]
    """Are called after every round."""


def takes_parts(estimator: Any, X: Any) -> bool:
    """Return whether a booster fits rows in parts. Refuse settings that need all rows here."""
    asked = [name for name in ("early_stopping", "cv") if getattr(estimator, name)]
    if is_elsewhere(X):
        if asked:
            raise ValueError(
                f"{asked[0]} chooses a size with rows in one memory, and X is {in_words(X)}; leave "
                f"{asked[0]} out, fit the path, and compare its sizes on rows that you kept aside, "
                "in arrays, data frames or Dask collections: at(size).score(X, y)"
            )
        return True
    if asked or not is_large_map(X):
        return False
    pool = make_pool(estimator._pool_object(), estimator.scale, estimator.groups, [])
    return isinstance(pool, PoolOfParts)


def prepared(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Prepared:
    """Look at all parts, set what `fit` learns of its input, and check the parts."""
    from laconic.beyond.check import Known, Weighing, check
    from laconic.beyond.given import given_parts
    from laconic.beyond.in_parts import TrainingInParts
    from laconic.beyond.look import agree, look
    from laconic.beyond.read_again import ReadAgain

    given = given_parts(X, y, sample_weight)
    parts, names = given.parts, given.names
    options = estimator._input()
    looks = (given.glances or parts).ask(look, (), names)
    told = agree(looks, options["categories"])
    learn_features(estimator, told.first)
    estimator._categories, estimator._units = told.categories, told.units
    estimator._given_names = None
    estimator.classes_ = told.classes
    warn_of_amounts(told.classes, told.n_rows)
    how = Weighing.of(estimator.class_weight, told)
    estimator.class_prior_ = told.class_weights / told.class_weights.sum()
    estimator._class_factors = how.factors / how.factors.max()
    pool = make_pool(
        estimator._pool_object(), estimator.scale, estimator.groups, list(told.categories)
    )
    of_parts(pool)
    known = Known(estimator, told.single, options, estimator._mixes_pools())
    kept = [names[number] for number in told.kept]
    checked = parts.chosen(told.kept).seen_as(check, (known, how), kept)
    checked.lengths = told.lengths
    files: Sequence[Any] = ()
    read_again = asked_tuning(estimator) or not getattr(pool, "keeps_only_codes", False)
    if isinstance(checked, ReadAgain) and read_again:
        checked, files = checked.on_disk()
    training = TrainingInParts(checked, given.join, files)
    hooks = (training.check_files,) if files else ()
    return Prepared(training, pool, how.sum_as_given, told.first, hooks)

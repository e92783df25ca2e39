"""Tuning of the atoms of a fitted path, for the boosters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from laconic.boost.path import PathEntry
from laconic.data.labels import held_out_rows
from laconic.pools import make_pool
from laconic.tune.settings import Tuning

if TYPE_CHECKING:
    from laconic.tune.path import Tuner, TuningGiven


def asked_tuning(estimator: Any) -> Tuning | None:
    """Return the settings of ``tune``, or None. Refuse pools whose atoms have no parameters."""
    tune = getattr(estimator, "tune", False)
    if tune is False:
        return None
    if tune is not True and not isinstance(tune, Tuning):
        raise TypeError(f"tune must be True, False or a laconic.tune.Tuning, not {tune!r}")
    pool = make_pool(estimator._pool_object(), estimator.scale, estimator.groups, [])
    if not getattr(pool, "tunable", False):
        raise TypeError(
            f"the atoms of {type(pool).__name__} have no parameters to tune; leave tune out, or "
            'use pool="hinges" or laconic.pools.Patches'
        )
    return Tuning() if tune is True else tune


def asked_sizes(tuning: Tuning, path: list[PathEntry], used: int) -> list[int]:
    """Return the sizes to tune, smallest first. Refuse sizes that the path does not have."""
    known = [entry.size for entry in path if entry.size]
    if tuning.sizes is None:
        return [used] if used else []
    if isinstance(tuning.sizes, str):
        return known
    asked = sorted(set(tuning.sizes))
    for size in asked:
        if size not in known:
            raise ValueError(f"the path has no model of {size} atoms, so it cannot be tuned")
    return asked


def tuned_path(
    tuner: Tuner, path: list[PathEntry], sizes: list[int], found: dict[int, PathEntry]
) -> None:
    """Tune some sizes of a path, and add the accepted entries to ``found``."""
    for entry in path:
        if entry.size in sizes:
            tuned = tuner.tuned(entry)
            if tuned is not None:
                found[entry.size] = tuned


def given_to_tuner(estimator: Any, ready: Any, loop: Any, threads: Any) -> TuningGiven:
    """Return what the tuner must know. Rows are held out if the fit held out none."""
    from laconic.boost.held_out import HeldOut
    from laconic.tune.path import TuningGiven

    every, held = ready.training, ready.held
    training = every
    if not hasattr(every, "X"):
        raise TypeError(
            "tune=True needs rows in one memory or on a GPU; fit on a sample of the rows, or leave "
            "tune out"
        )
    if held is None:
        parts = training.X, np.asarray(training.codes), np.asarray(training.weight)
        *fitted, kept = held_out_rows(estimator, *parts)
        training = training._replace(**dict(zip(("X", "codes", "weight"), fitted, strict=True)))
        held = HeldOut(*kept, ready.loss, estimator.n_iter_no_change)
    seed = estimator.random_state
    drawn = np.random.default_rng(seed if isinstance(seed, int) else 0)
    return TuningGiven(
        every,
        training,
        held,
        getattr(training, "device", None),
        ready.loss,
        loop.settle.penalty,
        estimator.tol,
        loop.record.rows.n_outputs,
        estimator.fit_intercept,
        threads,
        estimator._limits,
        int(drawn.integers(2**31)),
    )


def may_grow(estimator: Any) -> bool:
    """Return whether atoms may take more operations and bytes than they had when chosen."""
    capped = estimator.max_operations is not None or estimator.max_bytes is not None
    return not capped and not isinstance(estimator.costs, str)


@contextmanager
def shown(verbose: int) -> Iterator[Callable[[int, float, float], bool]]:
    """Give a function that moves a progress bar, or does nothing at ``verbose=0``."""
    if not verbose:
        yield lambda size, share, loss: False
        return
    from laconic.look.bars import progress_bar

    with progress_bar("{task.fields[says]}") as bar:
        tasks: dict[int, Any] = {}

        def told(size: int, share: float, loss: float) -> bool:
            if size not in tasks:
                tasks[size] = bar.add_task("tuning", total=100, says="")
            says = f"%  {size} atoms  loss {loss:.4f}"
            bar.update(tasks[size], completed=int(100 * share), says=says)
            return False

        yield told

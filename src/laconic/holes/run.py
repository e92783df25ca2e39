"""A run of hole punching: its rows, its seeds, the classifier outside, and the loop."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from laconic.clumping.neighbours import auto_radius
from laconic.clumping.ties import Digests
from laconic.data.doubts import stacklevel_of_user
from laconic.data.labels import PricedRows, held_out_rows
from laconic.holes.bad_balls import ErrorCounts
from laconic.holes.checkpoint import HolesCheckpoint
from laconic.holes.local_models import Weights, fit_model
from laconic.holes.punch import NONE_FOUND, Hook, Puncher
from laconic.holes.state import Part, PunchState
from laconic.numeric.threads import Threads


def split_rows(estimator: Any, rows: PricedRows, holds_out: bool) -> tuple[Part, Part | None]:
    """Return the rows to learn from, and the held-out rows or None."""
    labels, weights = estimator.classes_[rows.codes], Weights(rows.weight, rows.price)
    if not holds_out:
        return Part(rows.X, labels, weights, rows.number), None
    every = np.arange(len(labels))
    fit, _, _, (watch, _, _) = held_out_rows(estimator, every, rows.codes, weights.product)
    train, held = (
        Part(rows.X[few], labels[few], weights[few], rows.number[few]) for few in (fit, watch)
    )
    return train, held


def draw_seeds(random_state: Any, number: int) -> list[int | None]:
    """Return ``number`` seeds.

    They are None if no ``random_state`` is given. The random states of estimators then stay as they
    are.
    """
    if random_state is None:
        return [None] * number
    seeded = isinstance(random_state, Integral)
    rng = np.random.RandomState(int(random_state)) if seeded else random_state
    return [int(seed) for seed in rng.randint(2**31 - 1, size=number)]


@dataclass
class PunchRun:
    """A run: fits the classifier outside, or takes it from a resumed state, and runs the loop.

    Parameters
    ----------
    outside, local : estimator
        Estimators to fit to all rows, and inside holes.
    weighted : bool
        Whether rows have different weights, which estimators must then get.
    train : Part
    held : Part or None
    classes : ndarray of shape (n_classes,)
    radius : float or "auto"
        ρ. ``"auto"`` takes the radius of the classifier outside, if it has one of Euclidean
        distances. Otherwise it takes a radius within which a row has 5 % of the other rows. It is a
        number after the run has begun.
    min_rows : float
        Least weight of the training rows in a hole.
    max_holes, n_candidates : int
    tol : float
        Stop at this training error.
    patience : int or None
        Stop after this many holes without a lower held-out error.
    guarded : bool
        Whether a hole must lower the error of the held-out rows in it.
    seeds : list of int or None
        Seeds for the centres drawn, for the fit outside, and for the fit in every hole.
    threads : Threads
    """

    outside: Any
    local: Any
    weighted: bool
    train: Part
    held: Part | None
    classes: np.ndarray
    radius: Any
    min_rows: float
    max_holes: int
    n_candidates: int
    tol: float
    patience: int | None
    guarded: bool
    seeds: list[int | None]
    threads: Threads

    def __post_init__(self) -> None:
        self._tell_of_few_rows()
        train = self.train
        many = len(self.classes) > 2
        self.puncher = Puncher(
            train=train,
            held=self.held,
            local=self.local,
            weighted=self.weighted,
            least=self.min_rows,
            draws=Digests(train.X, np.random.RandomState(self.seeds[0]).randint(2**31 - 1)),
            candidates=self.n_candidates,
            guarded=self.guarded,
            seeds=self.seeds[2:],
            counts=ErrorCounts(train.X, 1.0, self.threads),
            threads=self.threads,
            codes=np.searchsorted(self.classes, train.y) if many else None,
        )

    def begin(self, state: PunchState | None) -> PunchState:
        """Return the state to start from.

        It is the resumed state, or else that of a newly fitted classifier outside.
        """
        if state is None:
            weights = self.train.weights if self.weighted else None
            X, y = self.train.X, self.train.y
            state = PunchState(fit_model(self.outside, X, y, weights, self.seeds[1]))
        self.radius = self.puncher.counts.radius = self._neighbourhood(state.base)
        if not state.errors:
            self.puncher.start(state)
        return state

    def _neighbourhood(self, base: Any) -> float:
        if self.radius != "auto":
            return float(self.radius)
        euclidean = getattr(base, "metric", "euclidean") == "euclidean"
        of_base = float(getattr(base, "radius_", np.nan)) if euclidean else np.nan
        found = np.isnan(of_base)
        return auto_radius(self.train.X, self.train.weights.copies) if found else of_base

    def punch(self, state: PunchState, hooks: list[Hook]) -> None:
        """Punch holes."""
        self.puncher.run(state, self.max_holes, self.tol, self.patience, hooks)
        if self.weighted and state.status == NONE_FOUND:
            self._tell_of_small_weights()

    @staticmethod
    def kept(state: PunchState) -> str:
        """Drop the unfinished hole, and return a text that says how many holes are left."""
        whole = min(len(state.holes), len(state.errors) - 1)
        state.cut(whole)
        return f"{whole} hole{'s' * (whole != 1)}"

    def _tell_of_few_rows(self) -> None:
        """Warn if ``min_rows`` looks like a share, or is more than all rows."""
        if not self.weighted and self.min_rows < 1:
            warnings.warn(
                f"min_rows={self.min_rows:g} is a number of rows, not a share of them. A hole may "
                "hold a single row.",
                stacklevel=stacklevel_of_user(),
            )
        total = self.train.weight.sum()
        if total < self.min_rows:
            there = f"there are {total:g} training rows"
            if self.weighted:
                there = f"the weights of the training rows add up to {total:.3g}"
            warnings.warn(
                f"{there}, so no hole can hold min_rows={self.min_rows:g} of them; lower min_rows"
                + " or raise the weights" * self.weighted,
                stacklevel=stacklevel_of_user(),
            )

    def _tell_of_small_weights(self) -> None:
        """Warn if no hole was found, but weights with a mean of 1 would leave room for one."""
        weight = self.train.weight
        total, mean = float(weight.sum()), float(weight.mean())
        if total < self.min_rows or mean >= 1.0:  # _tell_of_few_rows has warned of the first
            return
        if self.puncher.has_smaller_balls(self.min_rows * mean):
            warnings.warn(
                f"no hole was found. The weights of the {len(weight)} training rows add up to "
                f"{total:.3g}, so a hole of min_rows={self.min_rows:g} would hold "
                f"{100 * self.min_rows / total:.0f} % of them. Lower min_rows to "
                f"{self.min_rows * mean:.2g}, or divide the weights by their mean.",
                stacklevel=stacklevel_of_user(),
            )


@contextmanager
def saved(
    path: str | os.PathLike[str] | None, mark: str, run: PunchRun, every: float
) -> Iterator[tuple[PunchState | None, list[Hook]]]:
    """Yield the state in a checkpoint, and a list of the hook that writes it.

    Without a path, yield None and an empty list.
    """
    if path is None:
        yield None, []
        return
    with HolesCheckpoint(path, mark, run.puncher, every) as saver:
        yield saver.resume(), [saver]

"""A run of hole punching: its rows, its seeds, the classifier outside, and then the loop."""

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
    """Rows to learn from, and rows to watch where any are held out."""
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
    """So many seeds; None, which leaves random states as they are, where none is given."""
    if random_state is None:
        return [None] * number
    seeded = isinstance(random_state, Integral)
    rng = np.random.RandomState(int(random_state)) if seeded else random_state
    return [int(seed) for seed in rng.randint(2**31 - 1, size=number)]


@dataclass
class PunchRun:
    """The classifier outside, and the loop from wherever it is.

    Parameters
    ----------
    outside, local : estimator
        To be fitted to all rows, and inside holes.
    weighted : bool
        Whether rows count differently, so that estimators must be told.
    train : Part
    held : Part or None
    classes : ndarray of shape (n_classes,)
    radius : float or "auto"
        ρ; by default that of the classifier outside, if it has one of Euclidean distances, or one
        within which a row has 5 % of the others. A number once the run has begun.
    min_rows : float
        Least weight of the training rows in a hole.
    max_holes, n_candidates : int
    tol : float
        Training error at which to stop.
    patience : int or None
        Holes without a lower held-out error after which to stop.
    guarded : bool
        Whether the held-out rows in a hole must gain by it.
    seeds : list of int or None
        For the centres drawn, the fit outside and every hole's.
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
        """The state to go on from: a resumed one, or that of the classifier outside."""
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
        """Drop the hole under way, and say what is left."""
        whole = min(len(state.holes), len(state.errors) - 1)
        state.cut(whole)
        return f"{whole} hole{'s' * (whole != 1)}"

    def _tell_of_few_rows(self) -> None:
        """Warn where ``min_rows`` is a share, or more than all rows."""
        if not self.weighted and self.min_rows < 1:
            warnings.warn(
                f"min_rows={self.min_rows:g} is a number of rows, not a share of them: holes of "
                "one row will do",
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
        """Warn where weights of mean 1 would leave room for holes, and those given do not."""
        weight = self.train.weight
        total, mean = float(weight.sum()), float(weight.mean())
        if total < self.min_rows or mean >= 1.0:  # the first was told before
            return
        if self.puncher.has_smaller_balls(self.min_rows * mean):
            warnings.warn(
                f"no hole was found. The weights of the {len(weight)} training rows add up to "
                f"{total:.3g}: a hole of min_rows={self.min_rows:g} would hold "
                f"{100 * self.min_rows / total:.0f} % of them. Lower min_rows to "
                f"{self.min_rows * mean:.2g}, or divide the weights by their mean",
                stacklevel=stacklevel_of_user(),
            )


@contextmanager
def saved(
    path: str | os.PathLike[str] | None, mark: str, run: PunchRun, every: float
) -> Iterator[tuple[PunchState | None, list[Hook]]]:
    """The state in a checkpoint, and the hook that writes it; neither without a path."""
    if path is None:
        yield None, []
        return
    with HolesCheckpoint(path, mark, run.puncher, every) as saver:
        yield saver.resume(), [saver]

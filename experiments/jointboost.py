"""JointBoost (Torralba, Murphy, Freeman 2007): stumps shared by subsets of the classes.

This is GentleBoost on one-against-all labels z_ic = ±1 with weights w_ic = exp(−z_ic H(x_i, c)). A
round adds one stump 1[v_f ≤ θ] that a subset S of the classes shares, and a constant for each class
outside S. The two values of the stump are fitted by weighted least squares. With the sums over rows

    A_c = Σ_{v ≤ θ} w_ic z_ic,  B_c = Σ_{v ≤ θ} w_ic,  and their totals Ā_c, B̄_c over all rows,

the squared error that a stump and a subset leave is Σ w − gain, where

    gain = (Σ_S A)²/Σ_S B + (Σ_S Ā − A)²/(Σ_S B̄ − B) + Σ_{c ∉ S} Ā_c²/B̄_c.

S is found by the paper's best-first search. It starts with the empty set and adds the class that,
with its best stump, gives the largest gain, until all k classes are in. Then it takes the best of
the k subsets. That tries k(k + 1)/2 subsets for each stump instead of 2^k. The sums come from the
histograms of `laconic.pools.Stumps`, so the candidates are those of ShareBoost. A round costs
O(rows · features · k + stumps · k²), both parts on all threads. The authors' code tries sampled
features and thresholds instead.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from laconic.model.feature_maps import FeatureMap
from laconic.numeric.compiled import compiled
from laconic.numeric.threads import Threads
from laconic.pools import Pool

# Number of stumps in one task of the search. Their sums for 26 classes stay in a core's cache.
TASK = 4096


class SharedStump(NamedTuple):
    """The stump and the constants that one round adds."""

    atom: int
    """Number of the stump in the pool."""
    yes: np.ndarray
    no: np.ndarray
    """Values of each class on both sides, which are equal for a class outside the subset."""
    shared: np.ndarray
    """Whether each class shares the stump."""


class JointBoost:
    """A path of shared stumps, one per round.

    Parameters
    ----------
    max_rounds : int
    rate : float
        Part of its fitted values that every round adds; 1 is the paper's algorithm.
    n_jobs : int or None

    Attributes
    ----------
    rounds : list of SharedStump
    seconds : list of float
        Time from the start of the fit to the end of every round.
    """

    def __init__(self, max_rounds: int, rate: float = 1.0, n_jobs: int | None = None) -> None:
        self.max_rounds = max_rounds
        self.rate = rate
        self.n_jobs = n_jobs

    def fit(self, pool: Pool, X: Any, codes: np.ndarray) -> JointBoost:
        """Fit to rows X, with classes numbered from 0."""
        clock = time.perf_counter()
        z = np.where(codes[:, None] == np.arange(codes.max() + 1), 1.0, -1.0)
        H = np.zeros_like(z)
        self.rounds: list[SharedStump] = []
        self.seconds: list[float] = []
        with Threads(self.n_jobs) as threads:
            bound = pool.bind(X, np.full(len(codes), 1.0 / len(codes)), threads)
            for _ in range(self.max_rounds):
                w = np.exp(-z * H)
                w /= w.sum()
                stump = best_shared_stump(bound, z, w, threads)
                stump = stump._replace(yes=self.rate * stump.yes, no=self.rate * stump.no)
                yes = bound.columns([stump.atom])[:, 0] > 0
                H += np.where(yes[:, None], stump.yes, stump.no)
                self.rounds.append(stump)
                self.seconds.append(time.perf_counter() - clock)
            self._map: FeatureMap = bound.extract([s.atom for s in self.rounds])
        return self

    def staged_scores(self, X: Any) -> Any:
        """Yield H(x, c) after every round."""
        columns = self._map.columns(X)
        H = np.zeros((len(columns), len(self.rounds[0].yes)))
        for column, stump in zip(columns.T, self.rounds, strict=True):
            H = H + np.where(column[:, None] > 0, stump.yes, stump.no)
            yield H

    def sizes(self) -> np.ndarray:
        """Return the number of different stumps after every round.

        A stump that occurs again costs nothing to compute.
        """
        seen: set[int] = set()
        return np.array([len(seen := seen | {s.atom}) for s in self.rounds])


def best_shared_stump(bound: Any, z: np.ndarray, w: np.ndarray, threads: Threads) -> SharedStump:
    """Return the stump and the subset of classes that the best-first search finds."""
    k = z.shape[1]
    both = np.hstack([w * z, w])
    sums = np.empty((2, k, bound.n_atoms))
    for first, block in bound.gradients(both):
        sums[:, :, first : first + len(block)] = block.T.reshape(2, k, -1)
    totals = both.sum(axis=0).reshape(2, k)
    constant = totals[0] ** 2 / totals[1]
    tasks = range(0, bound.n_atoms, TASK)
    running = np.zeros((4, bound.n_atoms))
    shared = np.zeros(k, dtype=np.bool_)
    best = (-np.inf, -1, shared)
    for _ in range(k):
        fixed = constant[~shared].sum() - constant
        look = partial(search, sums, totals, running, shared, fixed)
        gain, atom, joins = max(threads.map(look, tasks), key=lambda found: found[0])
        shared = shared.copy()
        shared[joins] = True
        _join(sums[:, joins], totals[:, joins], running)
        if gain > best[0]:
            best = (gain, atom, shared)
    _, atom, shared = best
    inside = sums[:, shared, atom].sum(axis=1)
    outside = totals[:, shared].sum(axis=1) - inside
    alone = totals[0] / totals[1]
    yes = np.where(shared, _ratio(*inside), alone)
    return SharedStump(int(atom), yes, np.where(shared, _ratio(*outside), alone), shared)


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b > 0 else 0.0


def _join(own: np.ndarray, total: np.ndarray, running: np.ndarray) -> None:
    """Add a class to the sums of wz and of w of the subset, on both sides."""
    running[:2] += own
    running[2:] += total[:, None] - own


@compiled
def search(
    sums: Any, totals: Any, running: Any, shared: Any, fixed: Any, start: int
) -> tuple[float, int, int]:
    """Find the largest gain over a task's stumps and the classes outside the subset.

    Return the gain, the stump and the class that joins. ``fixed[c]`` is the gain of the classes
    that stay outside when c joins.
    """
    best, best_atom, best_class = -np.inf, -1, -1
    stop = min(start + TASK, sums.shape[2])
    for c in range(shared.size):
        if shared[c]:
            continue
        total_a, total_b = totals[0, c], totals[1, c]
        for t in range(start, stop):
            a = running[0, t] + sums[0, c, t]
            b = running[1, t] + sums[1, c, t]
            other_a = running[2, t] + total_a - sums[0, c, t]
            other_b = running[3, t] + total_b - sums[1, c, t]
            gain = fixed[c]
            if b > 1e-15:
                gain += a * a / b
            if other_b > 1e-15:
                gain += other_a * other_a / other_b
            if gain > best:
                best, best_atom, best_class = gain, t, c
    return best, best_atom, best_class

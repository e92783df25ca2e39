"""Branch and bound: find the best support for a price or a cap, with a proven gap at any time.

Notes
-----
A node fixes some columns in and some out. For the undecided columns the price is relaxed. Let M_j
bound |w_j| in every solution that could still be the best. Then
price · 1[w_j ≠ 0] ≥ (price / M_j) |w_j|, so that

    min  mean loss + l1 ‖w‖₁ + price · |in| + Σ_undecided (price / M_j) |w_j|

is a convex lower bound. It is solved only approximately. The bound that is used is the value of its
dual at the slopes a_i = −l′(margin_i) of that solution. In the dual, every violated column costs
M_j for each unit of violation:

    mean l + Σ_j w_j v_j − Σ_j M_j (|v_j| − c_j)₊ ,   v_j = Σ_i weight_i a_i y_i x_ij ,

where c_j is the price of one unit of w_j. The M_j come from the level set
(`laconic.subset.weight_bounds`). A solution of the node that uses j, and is at least as good as the
best known solution, pays for the columns that are in and for j. So its mean loss + l1 ‖w‖₁ is at
most best − price · (|in| + 1).

The same slopes bound the solutions that use an undecided column j. They pay its charge in full, and
a unit of w_j costs only l1. So the bound rises by price − M_j (|v_j| − l1)₊. If that reaches the
best known objective, the column is out in the whole node.

A cap on the number of columns adds a charge μ to the price of every column, and subtracts μ · cap
from the bound. If fewer columns than the cap are left, it subtracts μ times their number. No
support has more columns than the cap, so this is a lower bound for every μ ≥ 0. A good μ is the
slope of the best known values at the cap.

Other limits may forbid supports, as long as every part of an allowed support is allowed. A column
that no longer fits beside the columns that are in is out in the whole node. The bounds do not know
of these limits, so they stay valid.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from laconic.subset.at_every_size import local_search
from laconic.subset.contract import Fit
from laconic.subset.problem import SubsetProblem
from laconic.subset.weight_bounds import MISSED, LevelSet

# Relative gap at which a search counts as closed. The solves are accurate to about this.
CLOSED = 1e-8
# Predicted relative gain below which the solve of a node ends. It is tiny because the remaining
# slopes are multiplied by the bounds on the weights, and these are large if l1 is small.
SHARP = 1e-22
# Seconds between two progress reports.
TOLD = 0.1


class Proof(NamedTuple):
    """The best fit found, and the proven bound."""

    fit: Fit
    objective: float
    """Value of the fit plus the price of its columns."""
    bound: float
    """Proven lower bound on the objective of every allowed support."""
    nodes: int
    """Number of nodes that were solved."""


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    inside: tuple[int, ...] = field(compare=False)
    undecided: tuple[int, ...] = field(compare=False)
    start: np.ndarray = field(compare=False)


class _Relaxed(NamedTuple):
    weights: np.ndarray
    bound: float
    """Lower bound for all supports of the node."""
    with_each: np.ndarray
    """Lower bound for the supports that use a given undecided column, one for each column."""
    most: np.ndarray
    """Bounds on the weights of undecided columns."""


def branch_and_bound(
    problem: SubsetProblem,
    price: float,
    max_atoms: int | None = None,
    starts: Iterable[Iterable[int]] = (),
    known: list[Fit] | None = None,
    max_nodes: int | None = None,
    max_seconds: float | None = None,
    watch: Callable[[int, float, float], None] | None = None,
    told_every: float = TOLD,
    allows: Callable[[tuple[int, ...]], bool] | None = None,
) -> Proof:
    """Minimise value + price · |support| by branch and bound.

    Nodes with the lowest bound come first, so the bound rises all the time.

    Parameters
    ----------
    problem : SubsetProblem
    price : float
        λ for the mean loss. The paper's λ is for the sum of the losses, so it is m times this.
    max_atoms : int, optional
        Largest size of a support. None means no limit.
    starts : iterable of supports
        Supports for the local search that runs first.
    known : list of Fit, optional
        Fits to start from. If given, the local search does not run.
    max_nodes, max_seconds : optional
        Limits of the search. At a limit, the best fit so far is returned with the remaining gap.
        The seconds are for the whole call, but the local search always runs to its end.
    watch : callable, optional
        Called with the number of solved nodes, the best objective and the bound. It is called
        before the first node, every ``told_every`` seconds and at the end.
    told_every : float
    allows : callable, optional
        Returns whether a support is allowed. The empty support must be, and every part of an
        allowed support. The result is then at least as good as those ``starts`` that are allowed.
    """
    end = np.inf if max_seconds is None else perf_counter() + max_seconds

    def late() -> bool:
        return perf_counter() > end

    cap = problem.n_columns if max_atoms is None else min(max_atoms, problem.n_columns)
    if known is None:
        given = [tuple(sorted(start)) for start in starts]
        known = local_search(problem, cap, given)
        if allows is not None:  # the search may have replaced the starts by better forbidden fits
            known += [problem.fit(start) for start in given if len(start) <= cap]
    search = _Search(problem, price, cap, known, allows)
    nodes, told = 0, 0.0
    if watch is not None:
        watch(0, search.objective, search.bound())
    if max_nodes != 0 and not search.closed() and search.bound_weights(late):
        while search.open and not search.closed() and nodes != max_nodes and not late():
            search.visit(heapq.heappop(search.open))
            nodes += 1
            if watch is not None and perf_counter() - told > told_every:
                watch(nodes, search.objective, search.bound())
                told = perf_counter()
    proof = Proof(search.best, search.objective, search.bound(), nodes)
    if watch is not None:
        watch(nodes, proof.objective, proof.bound)
    return proof


class _Search:
    """The open nodes, and the best fit so far."""

    def __init__(
        self,
        problem: SubsetProblem,
        price: float,
        cap: int,
        known: list[Fit],
        allows: Callable[[tuple[int, ...]], bool] | None = None,
    ) -> None:
        self.problem = problem
        self.price = price
        self.cap = cap
        self._allows = allows
        known = [fit for fit in known if self._allowed(fit.support)]
        self.charge = price + _slope_at(cap, known, problem)
        self.best = min(known, key=lambda f: f.value + price * len(f.support))
        self.objective = self.best.value + price * len(self.best.support)
        every = tuple(j for j in range(problem.n_columns if cap else 0) if self._allowed((j,)))
        self._count = 0
        self._lowest_leaf = np.inf
        self._seen: set[tuple[int, ...]] = set()
        root = np.zeros(len(every) + int(problem.intercept))
        # A bound before any node is solved: use no column, or use all and pay for one.
        S, free = problem.matrix(every), np.full(len(every), problem.l1)
        _, value, promised = problem.solve(S, free, root)
        lowest = min(value - MISSED * promised + price, problem.fit(()).value)
        self.open = [_Node(lowest, 0, (), every, root)]

    def bound_weights(self, late: Callable[[], bool]) -> bool:
        """Prepare the bounds M_j. Return False if time runs out: no node can be visited."""
        levels = LevelSet.of(self.problem, self.objective - self.price, late)
        if levels is None:
            return False
        self._levels = levels
        return True

    def bound(self) -> float:
        """Return a proven lower bound on the objective of every support, at least 0."""
        lowest = min((node.bound for node in self.open), default=np.inf)
        return max(min(lowest, self._lowest_leaf, self.objective), 0.0)

    def closed(self) -> bool:
        """Return whether no open node can be better by more than the tolerance."""
        return bool(self._beaten(self.open[0].bound))

    def visit(self, node: _Node) -> None:
        """Bound a node, try the support that it suggests, and branch on one column."""
        relaxed = self._relax(node)
        bound = max(node.bound, relaxed.bound)
        if self._beaten(bound):
            self._lowest_leaf = min(self._lowest_leaf, bound)
            return
        inside, columns = len(node.inside), (*node.inside, *node.undecided)
        w, size = relaxed.weights, np.abs(relaxed.weights[inside : len(columns)])
        self._try(tuple(sorted((*node.inside, *np.array(node.undecided)[size > 0].tolist()))))
        if not node.undecided:
            self._lowest_leaf = min(self._lowest_leaf, bound)
            return
        with_each = np.maximum(bound, relaxed.with_each)
        hopeless = self._beaten(with_each)
        self._lowest_leaf = min(self._lowest_leaf, with_each[hopeless].min(initial=np.inf))
        if hopeless.all():
            self._push(bound, node.inside, (), np.delete(w, np.s_[inside : len(columns)]))
            return
        at = int(np.argmax(np.where(hopeless, -1.0, size / relaxed.most)))
        stay = ~hopeless
        stay[at] = False
        rest = tuple(np.array(node.undecided)[stay].tolist())
        gone = inside + np.flatnonzero(~stay)
        without = np.delete(w, gone)
        self._push(bound, node.inside, rest, without)
        moved = np.insert(without, inside, w[inside + at])
        grown = (*node.inside, node.undecided[at])
        fits = np.array([len(grown) < self.cap and self._allowed((*grown, j)) for j in rest], bool)
        moved = np.delete(moved, len(grown) + np.flatnonzero(~fits))
        rest = tuple(np.array(rest, dtype=int)[fits].tolist())
        self._push(float(with_each[at]), grown, rest, moved)

    def _relax(self, node: _Node) -> _Relaxed:
        """Solve the relaxation of a node and bound it by its dual."""
        problem, inside = self.problem, len(node.inside)
        columns = (*node.inside, *node.undecided)
        paid = self._levels.bounds(self.objective - self.price * inside)
        more = self._levels.bounds(self.objective - self.price * (inside + 1))
        most = more[list(node.undecided)]
        S = problem.matrix(columns)
        cost = problem.l1 + np.append(np.zeros(inside), self.charge / most)
        w, _, _ = problem.solve(S, cost, node.start, tol=SHARP)
        loss, first, _ = problem.derivatives(S, w)
        v = -(S @ first)
        n = len(columns)
        pull = v[:n] if problem.nonnegative else np.abs(v[:n])
        over = np.append(np.maximum(pull - cost, 0.0), np.abs(v[n:]))
        limits = np.concatenate([paid[list(node.inside)], most, paid[problem.n_columns :]])
        dual = loss + float(np.dot(w, v)) - float(np.dot(limits, over))
        bound = dual + self.charge * inside - (self.charge - self.price) * min(self.cap, n)
        rise = self.charge - most * np.maximum(pull[inside:] - problem.l1, 0.0)
        return _Relaxed(w, bound, bound + rise + most * over[inside:n], most)

    def _allowed(self, support: tuple[int, ...]) -> bool:
        return self._allows is None or self._allows(tuple(sorted(support)))

    def _beaten(self, bound: Any) -> Any:
        return bound >= self.objective * (1.0 - CLOSED)

    def _push(
        self, bound: float, inside: tuple[int, ...], undecided: tuple[int, ...], start: np.ndarray
    ) -> None:
        self._count += 1
        heapq.heappush(self.open, _Node(bound, self._count, inside, undecided, start))

    def _try(self, support: tuple[int, ...]) -> None:
        """Fit a support, and keep it if it is the best."""
        if support in self._seen or len(support) > self.cap or not self._allowed(support):
            return
        self._seen.add(support)
        fit = self.problem.fit(support)
        objective = fit.value + self.price * len(support)
        if objective < self.objective:
            self.best, self.objective = fit, objective


def _slope_at(cap: int, known: list[Fit], problem: SubsetProblem) -> float:
    """Return how much the best known value falls per column near the cap.

    The result is 0 if the cap does not bind.
    """
    if cap >= problem.n_columns:
        return 0.0
    by_size = {len(fit.support): fit for fit in known}
    if cap == 0 or cap - 1 not in by_size or cap not in by_size:
        return 0.0
    before, at = by_size[cap - 1].value, by_size[cap].value
    gain = max(float(problem.gains(by_size[cap]).max()), 0.0)
    return max(0.5 * (before - at + gain), 0.0)

"""Branch and bound: the best support for a price or a cap, with a proven gap at any time.

Notes
-----
A node fixes some columns in and some out. Between them the price is relaxed: with |w_j| ≤ M_j for
every solution that could still be the best, price · 1[w_j ≠ 0] ≥ (price / M_j) |w_j|, so that

    min  mean loss + l1 ‖w‖₁ + price · |in| + Σ_undecided (price / M_j) |w_j|

is a convex lower bound. It is solved nearly, not exactly; what counts is the value of its dual at
the slopes a_i = −l′(margin_i) found, in which every column not priced out costs M_j for each unit
of violation:

    mean l + Σ_j w_j v_j − Σ_j M_j (|v_j| − c_j)₊ ,   v_j = Σ_i weight_i a_i y_i x_ij ,

with c_j the price of a unit of w_j. The M_j come from the level set: a solution at least as good
as the best known has mean loss + l1 ‖w‖₁ ≤ R = best − price, and for every t > 0
w_j ≤ (R − min_w {mean loss + l1 ‖w‖₁ − t w_j}) / t.

A cap on the number of columns adds a charge μ on every column to the price, and takes μ · cap off
the bound (μ times the columns left, where those are fewer): as no support has more columns than
the cap, that is a bound for every μ ≥ 0. The slope of the best known values at the cap is a good
one.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from laconic.subset.local import local_search
from laconic.subset.problem import Fit, SubsetProblem

# Relative gap at which a search counts as closed: what the solves are good to.
CLOSED = 1e-8
# Largest bound on a weight that is believed; beyond, the level set is all but unbounded.
LARGEST = 1e6
# Smallest bound on a weight: a column that cannot be used gets a price beyond reach, not infinity.
SMALLEST = 1e-12


class Proof(NamedTuple):
    """The best fit found, and what is proven of it."""

    fit: Fit
    objective: float
    """Value of the fit plus the price of its columns."""
    bound: float
    """No support has an objective below this."""
    nodes: int
    """Nodes that were solved."""


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    inside: tuple[int, ...] = field(compare=False)
    undecided: tuple[int, ...] = field(compare=False)
    start: np.ndarray = field(compare=False)


def branch_and_bound(
    problem: SubsetProblem,
    price: float,
    max_atoms: int | None = None,
    known: list[Fit] | None = None,
    max_nodes: int | None = None,
    max_seconds: float | None = None,
) -> Proof:
    """Minimise value + price · |support|; best first, so that the bound rises all the time.

    Parameters
    ----------
    problem : SubsetProblem
    price : float
        λ for the mean loss; the paper's, for the sum, is m times this.
    max_atoms : int, optional
        Largest support; any if not given.
    known : list of Fit, optional
        Fits to start from; those of a local search if not given.
    max_nodes, max_seconds : optional
        Limits after which the best found is returned with the gap that is left.
    """
    began = time.perf_counter()
    cap = problem.n_columns if max_atoms is None else min(max_atoms, problem.n_columns)
    known = local_search(problem, cap) if known is None else known
    search = _Search(problem, price, cap, known)
    nodes = 0
    while search.open and not search.closed():
        spent = time.perf_counter() - began
        if nodes == max_nodes or (max_seconds is not None and spent > max_seconds):
            break
        search.visit(heapq.heappop(search.open))
        nodes += 1
    return Proof(search.best, search.objective, search.bound(), nodes)


class _Search:
    """The open nodes, and the best fit so far."""

    def __init__(self, problem: SubsetProblem, price: float, cap: int, known: list[Fit]) -> None:
        self.problem = problem
        self.price = price
        self.cap = cap
        self.charge = price + _slope_at(cap, known, problem)
        self.best = min(known, key=lambda f: f.value + price * len(f.support))
        self.objective = self.best.value + price * len(self.best.support)
        every = tuple(range(problem.n_columns)) if cap else ()
        self.largest = np.maximum(weight_bounds(problem, self.objective - price), SMALLEST)
        self._count = 0
        self._lowest_leaf = np.inf
        self._seen: set[tuple[int, ...]] = set()
        root = np.zeros(len(every) + int(problem.intercept))
        self.open = [_Node(-np.inf, 0, (), every, root)]

    def bound(self) -> float:
        """Proven lower bound on the objective of every support."""
        lowest = min((node.bound for node in self.open), default=np.inf)
        return min(lowest, self._lowest_leaf, self.objective)

    def closed(self) -> bool:
        """Whether no open node can be better by more than the tolerance."""
        return self.open[0].bound >= self.objective * (1.0 - CLOSED)

    def visit(self, node: _Node) -> None:
        """Bound a node; try the support it suggests; branch on one column."""
        problem, columns = self.problem, (*node.inside, *node.undecided)
        extra = np.append(np.zeros(len(node.inside)), self.charge / self._most(node.undecided))
        S, cost = problem.matrix(columns), problem.l1 + extra
        w, _ = problem.solve(S, cost, node.start)
        most = min(self.cap, len(columns))
        charged = self.charge * len(node.inside) - (self.charge - self.price) * most
        bound = max(node.bound, self._dual(S, columns, cost, w) + charged)
        if bound >= self.objective * (1.0 - CLOSED):
            self._lowest_leaf = min(self._lowest_leaf, bound)
            return
        inside = len(node.inside)
        size = np.abs(w[inside : len(columns)])
        used = tuple(sorted((*node.inside, *np.array(node.undecided)[size > 0].tolist())))
        self._try(used)
        if not node.undecided:
            self._lowest_leaf = min(self._lowest_leaf, bound)
            return
        at = int(np.argmax(size / self._most(node.undecided)))
        column = node.undecided[at]
        rest = node.undecided[:at] + node.undecided[at + 1 :]
        without = np.delete(w, inside + at)
        self._push(bound, node.inside, rest, without)
        moved = np.insert(without, inside, w[inside + at])
        if inside + 1 == self.cap:  # nothing else may come in
            rest, moved = (), np.delete(moved, np.s_[self.cap : len(columns)])
        self._push(bound, (*node.inside, column), rest, moved)

    def _most(self, columns: tuple[int, ...]) -> np.ndarray:
        return self.largest[list(columns)] if columns else np.empty(0)

    def _push(
        self, bound: float, inside: tuple[int, ...], undecided: tuple[int, ...], start: np.ndarray
    ) -> None:
        self._count += 1
        heapq.heappush(self.open, _Node(bound, self._count, inside, undecided, start))

    def _try(self, support: tuple[int, ...]) -> None:
        """Fit a support, and keep it if it is the best."""
        if support in self._seen or len(support) > self.cap:
            return
        self._seen.add(support)
        fit = self.problem.fit(support)
        objective = fit.value + self.price * len(support)
        if objective < self.objective:
            self.best, self.objective = fit, objective

    def _dual(
        self, S: np.ndarray, columns: tuple[int, ...], cost: np.ndarray, w: np.ndarray
    ) -> float:
        """Value of the dual at the slopes of ``w``: a lower bound on the relaxation."""
        loss, first, _ = self.problem.derivatives(S, w)
        v = -(S @ first)
        most = self.largest[[*columns, -1]] if self.problem.intercept else self._most(columns)
        n = len(columns)
        pull = v[:n] if self.problem.nonnegative else np.abs(v[:n])
        over = np.append(np.maximum(pull - cost, 0.0), np.abs(v[n:]))
        return loss + float(np.dot(w, v)) - float(np.dot(most, over))


def _slope_at(cap: int, known: list[Fit], problem: SubsetProblem) -> float:
    """How much the best known value falls a column around the cap; 0 where no cap binds."""
    if cap >= problem.n_columns:
        return 0.0
    by_size = {len(fit.support): fit for fit in known}
    if cap == 0 or cap - 1 not in by_size or cap not in by_size:
        return 0.0
    before, at = by_size[cap - 1].value, by_size[cap].value
    gain = max(float(problem.gains(by_size[cap]).max()), 0.0)
    return max(0.5 * (before - at + gain), 0.0)


def weight_bounds(problem: SubsetProblem, level: float) -> np.ndarray:
    """Bounds on |w_j| over all weights with mean loss + l1 ‖w‖₁ ≤ ``level``; the intercept last."""
    S = problem.matrix(range(problem.n_columns))
    price = np.full(problem.n_columns, problem.l1)
    out = np.empty(len(S))
    for j in range(len(S)):
        one_sided = problem.nonnegative and j < problem.n_columns
        signs = (1.0,) if one_sided else (1.0, -1.0)
        out[j] = max(_reach(problem, S, price, level, j, sign) for sign in signs)
    return out


def _reach(
    problem: SubsetProblem, S: np.ndarray, price: np.ndarray, level: float, j: int, sign: float
) -> float:
    """The least of the bounds (level − min_w {F(w) − t sign w_j}) / t over t, all but.

    The bound is tight at the t where F(w) reaches the level, so t is doubled until F does, and
    then halved in. Any t gives a bound.
    """
    tilt, w, least = np.zeros(len(S)), np.zeros(len(S)), LARGEST
    low, high, t = 0.0, np.inf, 1e-3
    for _ in range(24):
        tilt[j] = sign * t
        w, lowest = problem.solve(S, price, w, tilt)
        least = min(least, max(level - lowest, 0.0) / t)
        if lowest + t * sign * w[j] > level:
            high = t
        else:
            low = t
        t = 2.0 * t if np.isinf(high) else 0.5 * (low + high)
    return least * (1.0 + 1e-6)

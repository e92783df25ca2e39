"""Small loops, put together by hand."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from laconic.boost.correct_all import CorrectAll
from laconic.boost.loop import Loop
from laconic.boost.master import make_master
from laconic.boost.measures import Measure
from laconic.boost.propose import Admissible, ByRule, Violated
from laconic.boost.record import Recorder
from laconic.boost.rules import find_rule
from laconic.boost.search_subset import SearchSubset
from laconic.correct import Newton
from laconic.losses import BINARY_LOSSES, LOSSES
from laconic.numeric.threads import Threads
from laconic.penalties import find_penalty
from laconic.pools import Columns, Stumps
from laconic.pools.signs import Signs
from laconic.rows.rows import rows_in_memory


class Fixed(Measure):
    """Prices of atoms that do not depend on other atoms."""

    def __init__(self, prices):
        super().__init__(None)
        self.prices = np.asarray(prices)
        self.least = float(self.prices.min())

    def _measured(self, numbers):
        return float(self.prices[list(numbers)].sum())

    def added(self, chosen):
        return self.prices


def share_loop(max_atoms):
    """ShareBoost over the columns of the wines."""
    X, y = load_wine(return_X_y=True)
    weight, threads = np.full(len(y), 1 / len(y)), Threads(1)
    pool = Columns("max").bind(X, weight, threads)
    rows = rows_in_memory([pool], LOSSES["log"](), y, weight, 3, threads, True)
    penalty, corrector, record = find_penalty("l2", 1e-3, 1.0), Newton(), Recorder(rows)
    model = CorrectAll(record, corrector, penalty, max_atoms)
    rule = find_rule("gradient", penalty, corrector)
    return Loop(ByRule(rule, model, Admissible()), model, record)


def total_loop(max_rounds, intercept=True, costs=None, l1=1e-4, **settings):
    """TotalQBoost over stumps."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :6], y[:150]
    weight, threads = np.full(len(y), 1 / len(y)), Threads(1)
    pool = Signs(Stumps(bins=16).bind(X, weight, threads))
    loss = BINARY_LOSSES["exponential"]()
    rows = rows_in_memory([pool], loss, y, weight, 1, threads, intercept)
    fixed = len(settings.get("include", ()))
    master, record = make_master(rows, l1, fixed), Recorder(rows, costs)
    settle = SearchSubset(record, master, **{"price": 0.01, "max_rounds": max_rounds, **settings})
    return Loop(Violated(rows, l1, 5e-4, Admissible(costs=costs)), settle, record)

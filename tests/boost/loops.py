"""Small loops, put together by hand."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from laconic.boost.correct_all import CorrectAll
from laconic.boost.loop import Loop
from laconic.boost.master import make_master
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


def total_loop(max_rounds, **settings):
    """TotalQBoost over stumps."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :6], y[:150]
    weight, threads = np.full(len(y), 1 / len(y)), Threads(1)
    pool = Signs(Stumps(bins=16).bind(X, weight, threads))
    loss = BINARY_LOSSES["exponential"]()
    rows = rows_in_memory([pool], loss, y, weight, 1, threads, True)
    master, record = make_master(rows, y, weight, 1e-4), Recorder(rows)
    settings = {"price": 0.01, "max_atoms": max_rounds, "max_rounds": max_rounds, **settings}
    settle = SearchSubset(record, master, **settings)
    return Loop(Violated(rows, 1e-4, 5e-4, Admissible()), settle, record)

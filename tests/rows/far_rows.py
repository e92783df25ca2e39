"""Shards that are far away, without a network: questions and answers are pickled."""

import pickle

import numpy as np

from laconic.estimators.training import TrainingInMemory
from laconic.pools import bind_parts
from laconic.pools.signs import as_signs
from laconic.rows.carrier import FarRows
from laconic.rows.exchanges import Exchanges
from laconic.rows.far import Far
from laconic.rows.keeper import Keeper
from laconic.rows.rows import Rows
from laconic.rows.shard import in_memory
from laconic.rows.tree import size_of, tree_sum


class Forgetful:
    """A carrier whose keepers are lost now and then, with all that they know."""

    def __init__(self, keepers, share, seed=0):
        self.keepers, self.share = keepers, share
        self.exchanges, self.asked, self.lost = Exchanges(), [], 0
        self._rng = np.random.default_rng(seed)

    def ask(self, recipe, calls):
        question = pickle.dumps((recipe, list(calls)))
        answers = []
        for at, keeper in enumerate(self.keepers):
            if self._rng.random() < self.share:
                self.keepers[at] = keeper = pickle.loads(pickle.dumps(keeper))
                self.lost += 1
            answers.append(keeper.answer(*pickle.loads(question)))
        sums = tree_sum(answers)
        self.asked.append([call.method for call in calls])
        self.exchanges.count += 1
        self.exchanges.sent += len(question) * len(self.keepers)
        self.exchanges.received += size_of(sums)
        return sums


class FarTraining(TrainingInMemory):
    """Rows in memory that answer as if they were far away."""

    share = 0.0
    carrier = None

    def rows(self, asked):
        pool, signs, loss, n_outputs, threads, intercept, limits, _ = asked
        bounds = bind_parts(pool, limits.parts(self.X, self.codes, self.weight), threads)
        bounds = [as_signs(bound) if signs else bound for bound in bounds]
        parts = zip(bounds, limits.parts(self.codes, self.weight), strict=True)
        shards, first = [], 0
        for bound, (y, w) in parts:
            shards.append(in_memory(bound, loss, y, w, n_outputs, threads, limits, first))
            first += len(y)
        shares = tree_sum([shard.class_shares() for shard in shards])
        carrier = Forgetful([Keeper(shard) for shard in shards], self.share)
        type(self).carrier = carrier
        far = FarRows(carrier, bounds[0], loss, n_outputs, len(self.codes), shares, limits)
        return Rows(Far(far), intercept, threads)

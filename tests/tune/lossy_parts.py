"""Parts that are far away, without a network: questions are pickled, and parts are lost."""

import pickle
from types import SimpleNamespace

import numpy as np

from laconic.beyond.given import GivenParts
from laconic.beyond.in_parts import shard_of
from laconic.numeric.threads import Threads
from laconic.rows.carrier import FarRows
from laconic.rows.far import Far
from laconic.rows.keeper import Keeper
from laconic.rows.tree import tree_sum
from rows.far_rows import Forgetful


class LossyParts:
    """Parts that are lost now and then, and made again from those that they were made of."""

    def __init__(self, before, makes, fate):
        self._before, self._makes, self._fate = before, makes, fate
        self._made, self.threads, self.lengths = [None] * len(before), Threads(1), None

    @classmethod
    def of(cls, items, share, seed=0):
        """Return parts of which each is lost with a given probability at each question."""
        fate = SimpleNamespace(share=share, random=np.random.default_rng(seed), lost=0, asked=[])
        return cls([lambda item=item: item for item in items], None, fate)

    @property
    def n_parts(self):
        return len(self._before)

    def part(self, number):
        if self._made[number] is None:
            before = self._before[number]()
            if self._makes is not None:
                make, shared, each = pickle.loads(self._makes)
                own = [] if each is None else [each[number]]
                before = make(before, self.threads, *shared, *own)
            self._made[number] = before
        return self._made[number]

    def ask(self, question, shared=(), each=None):
        self._fate.asked.append(question.__name__)
        packed, answers = pickle.dumps((question, shared, each)), []
        for number in range(self.n_parts):
            if self._fate.random.random() < self._fate.share:
                self._made[number], self._fate.lost = None, self._fate.lost + 1
            ask, common, own = pickle.loads(packed)
            own = [] if own is None else [own[number]]
            answers.append(
                pickle.loads(pickle.dumps(ask(self.part(number), Threads(1), *common, *own)))
            )
        return answers

    def become(self, make, shared=(), each=None):
        before = [lambda n=n: self.part(n) for n in range(self.n_parts)]
        out = LossyParts(before, pickle.dumps((make, shared, each)), self._fate)
        out.lengths = self.lengths
        return out

    seen_as = become

    def chosen(self, numbers):
        out = LossyParts([lambda n=n: self.part(n) for n in numbers], None, self._fate)
        out.lengths = self.lengths and [self.lengths[n] for n in numbers]
        return out

    def given(self):
        """Return these parts as those that a user gave, for a fit."""
        return GivenParts(self, [f"part {n}" for n in range(self.n_parts)], self._joined)

    def _joined(self, bound, pattern, loss, n_outputs, limits):
        lengths = [len(bound.part(n)[-1]) for n in range(bound.n_parts)]
        firsts = np.cumsum([0, *lengths])
        keepers = [
            Keeper(shard_of(bound.part(n), Threads(1), loss, n_outputs, limits, int(firsts[n])))
            for n in range(bound.n_parts)
        ]
        shares = tree_sum([keeper.class_shares() for keeper in keepers])
        carrier = Forgetful(keepers, self._fate.share)
        rows = FarRows(carrier, pattern(), loss, n_outputs, sum(lengths), shares, limits)
        return Far(rows)

"""The loop: propose an atom, settle what is in, leave a path.

Column generation in three stages, each an object of its own (`laconic.boost.stages`). ShareBoost
and TotalQBoost are the same loop with other stages. Its state is explicit, so that it can be looked
at every round, interrupted, written to a file and taken up again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder
from laconic.boost.stages import Propose, Settle, State

Hook = Callable[[State], "bool | None"]
"""Called after every round with the state; a true answer ends the loop."""


@dataclass
class Loop:
    """One fit's stages and hooks.

    Attributes
    ----------
    propose : Propose
        Which atom next.
    settle : Settle
        What is in, and with which weights.
    record : Recorder
        Writes models down.
    watch : callable or None
        Asked with every new entry of the growing path; a true answer ends its growth (not the
        refinement that may follow).
    hooks : list of Hook
    """

    propose: Propose
    settle: Settle
    record: Recorder
    watch: Callable[[PathEntry], bool] | None = None
    hooks: list[Hook] = field(default_factory=list)

    def begin(self) -> State:
        """The state before the first round."""
        return State(self.settle.begin())

    def grow(self, state: State) -> bool:
        """Run from wherever ``state`` stands; false if a hook ended it."""
        state.status = "running"
        self.record.start(state.last.seconds if state.entries else 0.0)
        if state.entries:
            enough = self._replay(state)
            self.settle.take_up(state)
        else:
            state.entries.append(self.settle.first())
            enough = self._enough(state.entries[-1])
            if self.told(state):
                return False
        while not enough and (entry := self._next(state)) is not None:
            state.entries.append(entry)
            enough = self._enough(entry)
            if self.told(state):
                return False
        if enough:
            state.status = "held-out loss no longer falls"
        self.propose.certify(state)
        return True

    def _next(self, state: State) -> PathEntry | None:
        """The next model: of a search that is due, or with one more atom; none at the end."""
        if not self.settle.due(state, last=False):
            atom = None if self.settle.full(state) else self.propose.next(state)
            if atom is not None:
                return self.settle.add(state, atom)
            if not self.settle.due(state, last=True):
                return None
        self.propose.certify(state)  # the search moves the rows
        return self.settle.search_again(state)

    def _enough(self, entry: PathEntry) -> bool:
        return self.watch is not None and self.watch(entry)

    def _replay(self, state: State) -> bool:
        """Show the watch the entries of a resumed state, and drop those it would not have seen."""
        for seen, entry in enumerate(state.entries, 1):
            if self._enough(entry):
                if seen < len(state.entries):
                    self.settle.cut(state, seen)
                return True
        return False

    def told(self, state: State) -> bool:
        """Call every hook; whether one of them wants to stop."""
        answers = [hook(state) for hook in self.hooks]
        stop = any(bool(a) for a in answers)
        if stop:
            state.status = "stopped by a callback"
        return stop

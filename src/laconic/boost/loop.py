"""The loop: propose an atom, settle the model, record the path.

This is column generation in three stages, and each stage is an object (`laconic.boost.stages`).
ShareBoost and TotalQBoost use the same loop with different stages. The state of the loop is
explicit. So it can be inspected every round, interrupted, written to a file and resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from laconic.boost.path import PathEntry
from laconic.boost.record import Recorder
from laconic.boost.stages import Propose, Settle, State

Hook = Callable[[State], "bool | None"]
"""A function that is called with the state after every round. A true result ends the loop."""


@dataclass
class Loop:
    """The stages and hooks of one fit.

    Attributes
    ----------
    propose : Propose
        Chooses the next atom.
    settle : Settle
        Chooses which atoms are in the model, and their weights.
    record : Recorder
        Turns models into path entries.
    watch : callable or None
        Called with every new entry of the growing path. A true result ends the growth, but not the
        refinement that may follow.
    hooks : list of Hook
    """

    propose: Propose
    settle: Settle
    record: Recorder
    watch: Callable[[PathEntry], bool] | None = None
    hooks: list[Hook] = field(default_factory=list)

    def begin(self) -> State:
        """Return the state before the first round."""
        return State(self.settle.begin())

    def grow(self, state: State) -> bool:
        """Run the loop from ``state`` to its end. Return False if a hook ended it."""
        state.status = "running"
        self.record.start(state.last.seconds if state.entries else 0.0)
        if state.entries:
            enough = self._replay(state)
            self.settle.take_up(state)
        else:
            state.entries.append(self.settle.first(state))
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
        """Return the next model, or None at the end.

        It comes from a search if one is due. Otherwise it has one more atom.
        """
        if not self.settle.due(state, last=False):
            atom = None if self.settle.full(state) else self.propose.next(state)
            if atom is not None:
                return self.settle.add(state, atom)
            if not self.settle.due(state, last=True):
                return None
        self.propose.certify(state)  # the search changes where the rows are evaluated
        return self.settle.search_again(state)

    def _enough(self, entry: PathEntry) -> bool:
        return self.watch is not None and self.watch(entry)

    def _replay(self, state: State) -> bool:
        """Call the watch with the entries of a resumed state. Drop those after its stop.

        Return whether the watch ended the growth.
        """
        for seen, entry in enumerate(state.entries, 1):
            if self._enough(entry):
                if seen < len(state.entries):
                    self.settle.cut(state, seen)
                return True
        return False

    def told(self, state: State) -> bool:
        """Call every hook. Return whether one of them ends the loop."""
        answers = [hook(state) for hook in self.hooks]
        stop = any(bool(a) for a in answers)
        if stop:
            state.status = "stopped by a callback"
        return stop

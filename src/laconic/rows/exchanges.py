"""How often shards that are far away were asked, and how many bytes went over the network."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass
class Exchanges:
    """Questions to shards that are far away.

    An exchange is a broadcast of a question to all shards, and a gathering of the sum of their
    answers.
    """

    count: int = 0
    """Number of exchanges."""
    sent: int = 0
    """Bytes of all questions. A question counts once for every shard."""
    received: int = 0
    """Bytes of the answers that came to the client, after those that workers added up."""

    def taken(self) -> Exchanges:
        """Return what was counted since the last call, and count from zero again."""
        out = replace(self)
        self.count = self.sent = self.received = 0
        return out

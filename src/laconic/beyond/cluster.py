"""Parts and shards on the workers of a Dask cluster.

Everything on the cluster is the result of a task. So if a worker dies, the scheduler makes what was
lost again on another worker, from the user's own tasks on: the part, the bound pool and the shard.
The next question brings the new shard to the state of the others (`laconic.rows.keeper`).
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

import cloudpickle
import numpy as np
from distributed import Client, Future, rejoin, secede, wait
from distributed.worker import thread_state

from laconic.beyond.cluster_errors import clear_errors, named_errors
from laconic.beyond.in_parts import Pattern, shard_of
from laconic.beyond.moved import Moved, in_own_memory
from laconic.data.doubts import stacklevel_of_user
from laconic.losses import Loss
from laconic.numeric.parts import Parts, Question, Step, steps
from laconic.numeric.threads import Threads
from laconic.rows.carrier import FarRows
from laconic.rows.exchanges import Exchanges
from laconic.rows.far import Far
from laconic.rows.keeper import Keeper
from laconic.rows.limits import Limits
from laconic.rows.recipe import Call, Recipe
from laconic.rows.tree import added, groups, size_of, tree_sum

# Arguments for all parts that are larger than this are sent once, and not with every task.
LARGE = 1 << 16
# Answers of fewer bytes in all are added up where the loop runs. Others are added on the workers.
SMALL = 1 << 22
# Seconds after which a missing answer makes us ask whether there are workers at all.
PATIENCE = 20.0
# Seconds between two steps of a progress bar.
TICK = 0.25


class OnCluster:
    """Parts on the workers of a cluster; see `laconic.numeric.parts.Parts`.

    Parameters
    ----------
    client : Client
    futures : list of Future
        The parts.
    threads : Threads, optional
        Threads for work on this side.
    lengths : list of int, optional
        Number of rows of every part.
    names : sequence of str, optional
        What messages call the parts, if these are the parts as the user gave them.
    """

    def __init__(
        self,
        client: Client,
        futures: Sequence[Future],
        threads: Threads | None = None,
        lengths: list[int] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.client, self.futures = client, list(futures)
        self.threads = threads or Threads(1)
        self.lengths, self._names = lengths, names

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.futures)

    def ask(
        self, question: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return the answers of all parts."""
        with steps(question, self.n_parts) as step:
            futures = self._map(question, shared, each, _answered)
            with named_errors(self.futures, self._names):
                return gathered(self.client, futures, step)

    def become(
        self, make: Question, shared: Sequence[Any] = (), each: Sequence[Any] | None = None
    ) -> OnCluster:
        """Return what ``make`` makes of every part. It stays on the workers."""
        futures = self._map(make, shared, each, _made)
        return OnCluster(self.client, futures, self.threads, self.lengths)

    seen_as = become

    def chosen(self, numbers: Sequence[int]) -> OnCluster:
        """Return only some of the parts."""
        futures = [self.futures[number] for number in numbers]
        lengths = self.lengths and [self.lengths[number] for number in numbers]
        return OnCluster(self.client, futures, self.threads, lengths)

    def _map(
        self, question: Question, shared: Sequence[Any], each: Sequence[Any] | None, work: Any
    ) -> list[Future]:
        own = [] if each is None else [list(each)]
        name = f"laconic-{question.__name__.strip('_')}"
        asked = sent(self.client, cloudpickle.dumps((question, tuple(shared)), protocol=5))
        return mapped(self.client, work, name, self.futures, *own, asked=asked)


def _answered(part: Any, *own: Any, asked: bytes) -> Any:
    question, shared = pickle.loads(asked)
    with Threads(1) as threads:
        return question(in_own_memory(part), threads, *shared, *own)


def _made(part: Any, *own: Any, asked: bytes) -> Moved:
    return Moved(_answered(part, *own, asked=asked))


def mapped(client: Client, work: Any, name: str, *items: Any, **common: Any) -> list[Future]:
    """Return the futures of a function of some items."""
    with clear_errors():
        futures: list[Future] = client.map(work, *items, key=name, pure=False, **common)
    return futures


def sent(client: Client, packed: bytes) -> Any:
    """Return packed arguments for all parts, or a future of them if they are large.

    It is the result of a task and not scattered, so that it is not lost with a worker.
    """
    if len(packed) < LARGE:
        return packed
    with clear_errors():
        return client.submit(_same, packed, key=f"laconic-shared-{uuid4()}", pure=False)


def _same(item: Any) -> Any:
    return item


def gathered(client: Client, futures: Sequence[Future], step: Step | None = None) -> list[Any]:
    """Return the results of some futures. Warn if there is no worker to wait for.

    ``step`` is called for each that is done. It is called here and not by another thread, so that
    a progress bar is open.
    """
    since, told = monotonic(), 0
    with clear_errors(futures), _room_for_others():
        while not _done(futures, PATIENCE if step is None else min(TICK, PATIENCE)):
            told = _told(futures, told, step)
            if monotonic() - since < PATIENCE:
                continue
            since = monotonic()
            if not client.nthreads():
                warnings.warn(
                    "the cluster has no workers; the fit goes on when one joins",
                    stacklevel=stacklevel_of_user(),
                )
        answers: list[Any] = client.gather(list(futures))
    _told(futures, told, step)
    return answers


@contextmanager
def _room_for_others() -> Iterator[None]:
    """Give the thread of this worker to other tasks, if the fit itself runs inside a task.

    Otherwise the fit could wait for tasks that wait for its thread.
    """
    inside = hasattr(thread_state, "execution_state")
    if inside:
        secede()
    try:
        yield
    finally:
        if inside:
            rejoin()


def _told(futures: Sequence[Future], told: int, step: Step | None) -> int:
    """Call ``step`` for each future that is done and was not told. Return how many are told."""
    if step is None:
        return 0
    done = sum(future.status == "finished" for future in futures)
    for _ in range(done - told):
        step()
    return max(done, told)  # a worker that died may have held some


def _done(futures: Sequence[Future], seconds: float) -> bool:
    """Wait for some futures for a while. Return whether all are done, or one has an error."""
    try:
        wait(list(futures), timeout=seconds)
    except TimeoutError:
        return any(future.status == "error" for future in futures)
    return True


# -- shards ----------------------------------------------------------------------------------------


class ClusterCarrier:
    """Brings questions to the shards of a cluster; see `laconic.rows.carrier.Carrier`.

    Parameters
    ----------
    client : Client
    keepers : list of Future
        A `laconic.rows.keeper.Keeper` for every part, as something `Moved`.
    """

    def __init__(self, client: Client, keepers: Sequence[Future]) -> None:
        self._client, self._keepers = client, list(keepers)
        self._sizes: dict[tuple[str, ...], int] = {}
        self.exchanges = Exchanges()

    def ask(self, recipe: Recipe, calls: Sequence[Call]) -> list[Any]:
        """Bring all shards to the state of a recipe. Return the sums of their answers there."""
        question = pickle.dumps((recipe, list(calls)), protocol=5)
        asked, name = sent(self._client, question), f"laconic-{calls[0].method}"
        found = mapped(self._client, _sums, name, self._keepers, asked=asked)
        methods = tuple(call.method for call in calls)
        # Each answer that comes here costs bytes, and each sum on the workers costs time.
        while len(found) > 1 and self._sizes.get(methods, SMALL) * len(found) >= SMALL:
            found = mapped(self._client, added, "laconic-added", list(map(list, groups(found))))
        answers = gathered(self._client, found)
        self._sizes[methods] = size_of(answers[0])
        self.exchanges.count += 1
        self.exchanges.sent += len(question) * len(self._keepers)
        self.exchanges.received += sum(map(size_of, answers))
        return list(tree_sum(answers))


def _sums(keeper: Moved, asked: bytes) -> list[Any]:
    recipe, calls = pickle.loads(asked)
    with Threads(1):
        answers: list[Any] = keeper.item.answer(recipe, calls)
    return answers


def joined_far(bound: Parts, pattern: Pattern, loss: Loss, n_outputs: int, limits: Limits) -> Far:
    """Return the shards of parts that are on a cluster as one shard."""
    assert isinstance(bound, OnCluster)
    lengths = bound.lengths or bound.ask(_length)
    firsts = np.cumsum([0, *lengths])[:-1].tolist()
    keepers = bound.become(_keeper, (loss, n_outputs, limits), firsts)
    shares = tree_sum(keepers.ask(_shares))
    carrier = ClusterCarrier(bound.client, keepers.futures)
    return Far(FarRows(carrier, pattern(), loss, n_outputs, sum(lengths), shares, limits))


def _length(part: Any, threads: Threads) -> int:
    return len(part[-1])


def _keeper(
    part: Any, threads: Threads, loss: Loss, n_outputs: int, limits: Limits, first: int
) -> Keeper:
    return Keeper(shard_of(part, threads, loss, n_outputs, limits, first))


def _shares(keeper: Keeper, threads: Threads) -> np.ndarray:
    return keeper.class_shares()

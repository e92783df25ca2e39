"""Tuning of the atoms of a fitted path, for the boosters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laconic.boost.held_out import HeldOut
from laconic.boost.path import PathEntry
from laconic.data.doubts import stacklevel_of_user
from laconic.data.fingerprint import digest_of, plain
from laconic.data.labels import held_out_rows
from laconic.estimators.moves import check_moves
from laconic.estimators.training import TrainingInMemory
from laconic.numeric.namespaces import to_host
from laconic.numeric.parts import watched
from laconic.pools import make_pool
from laconic.tune.batches import copied
from laconic.tune.settings import Tuning

if TYPE_CHECKING:
    from laconic.beyond.to_tune import JudgedParts
    from laconic.boost.moved import Mover
    from laconic.tune.path import Held, Tuner, TuningGiven
    from laconic.tune.rows import RowsToTune


# Settings that count what an atom may take more of when its place or its width changes.
COUNTED = ("costs", "max_features", "max_operations", "max_bytes")


def asked_tuning(estimator: Any) -> Tuning | None:
    """Return the settings of ``tune``, or None. Refuse what cannot be tuned.

    The data need not be known.
    """
    tune = estimator.tune
    if tune is False:
        return None
    if tune is not True and not isinstance(tune, Tuning):
        raise TypeError(f"tune must be True, False or a laconic.tune.Tuning, not {tune!r}")
    pool = make_pool(estimator._pool_object(), estimator.scale, estimator.groups, [])
    if not getattr(pool, "tunable", False):
        why = f"the atoms of {type(pool).__name__} have no parameters to tune"
        raise TypeError(
            f"{getattr(pool, 'not_tunable', why)}; leave tune out, or use "
            'pool="hinges", pool="bumps", or Patches or Pieces(soft=True) of laconic.pools'
        )
    tuning = Tuning() if tune is True else tune
    if tuning.at_selection:
        check_moves(estimator, pool)
    _check_places(estimator, tuning)
    _check_sizes(estimator, tuning)
    return tuning


def _check_places(estimator: Any, tuning: Tuning) -> None:
    counted = [name for name in COUNTED if getattr(estimator, name) is not None]
    if tuning.places and counted:
        raise ValueError(
            f"with places=True, tuned atoms may read more inputs and take more operations and "
            f"bytes, and {counted[0]} counts them; leave places out, or set {counted[0]}=None"
        )
    if tuning.places and estimator.exclude:
        raise ValueError(
            "with places=True, tuned atoms may read inputs that exclude forbids; leave places out, "
            "or set exclude=None"
        )


def _check_sizes(estimator: Any, tuning: Tuning) -> None:
    most = estimator._largest()[0]
    if tuning.sizes is None or isinstance(tuning.sizes, str):
        return
    if (largest := max(tuning.sizes, default=0)) > most:
        name = "max_rounds" if estimator.max_atoms is None else "max_atoms"
        raise ValueError(
            f"the path has no model of {largest} atoms to tune, because "
            f"{name}={getattr(estimator, name)}"
        )


def asked_sizes(tuning: Tuning, path: list[PathEntry], used: int) -> list[int]:
    """Return the sizes to tune, smallest first. Warn of sizes that the path does not have."""
    known = [entry.size for entry in path if entry.size]
    if tuning.sizes is None:
        return [used] if used else []
    if isinstance(tuning.sizes, str):
        return known
    asked = sorted(set(tuning.sizes))
    if missing := [str(size) for size in asked if size not in known]:
        warnings.warn(
            f"the path has no model of {', '.join(missing)} atoms to tune; its sizes are "
            f"{path[0].size} to {path[-1].size}",
            stacklevel=stacklevel_of_user(),
        )
    return [size for size in asked if size in known]


def tuned_path(
    tuner: Tuner, path: list[PathEntry], sizes: list[int], found: dict[int, PathEntry]
) -> None:
    """Tune some sizes of a path, and add the accepted entries to ``found``."""
    for entry in path:
        if entry.size in sizes:
            tuned = tuner.tuned(entry)
            if tuned is not None:
                found[entry.size] = tuned


class JudgedHere(NamedTuple):
    """All rows, and those of them that judge whether tuned atoms are better."""

    every: Any
    held: HeldOut

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of all rows, also those that judge."""
        digest: str = self.every.fingerprint({**settings, "judged": True})
        return digest


def judged_rows(estimator: Any, ready: Any) -> tuple[Any, JudgedHere | JudgedParts | None]:
    """Hold rows out. Return what is left to grow the path on, and what knows of all rows.

    Rows that judge must not choose atoms: chosen atoms fit the rows that chose them, and would win
    against tuned ones. So they are held out before the path is grown. The second is None if the fit
    holds out rows anyway, or does not tune. Rows that cannot be tuned, and what cannot make copies
    of them, are refused at once.
    """
    tuning, training = asked_tuning(estimator), ready.training
    if tuning is None:
        return ready, None
    if tuning.at_selection and not isinstance(training, TrainingInMemory):
        raise TypeError(
            "at_selection=True needs rows in the memory of the processor; give X as an array of "
            "NumPy, or leave at_selection out"
        )
    if not tuning.joint:
        return ready, None
    if not hasattr(training, "X"):
        from laconic.beyond.to_tune import JudgedParts

        _check_copies(tuning)
        parts = JudgedParts(estimator, training)
        return _to_grow(ready, parts.to_grow(), parts.numbers), parts
    if ready.held is not None:
        _try_copies(tuning, training.X)
        return ready, None
    codes, weight = to_host(training.codes), to_host(training.weight)
    fitted, *_, (kept, *_) = held_out_rows(estimator, np.arange(len(codes)), codes, weight)
    X, codes, weight = _part(training, fitted)
    _try_copies(tuning, X)
    held = HeldOut(*_part(training, kept), ready.loss, estimator.n_iter_no_change)
    grown = training._replace(X=X, codes=codes, weight=weight)
    return _to_grow(ready, grown, kept), JudgedHere(training, held)


def _to_grow(ready: Any, training: Any, absent: np.ndarray) -> Any:
    """Return what is ready, with the rows to grow a path on. Atoms that number rows number all."""
    pool = ready.pool
    if hasattr(pool, "numbered_with"):
        pool = pool.numbered_with(absent)
    return ready._replace(training=training, pool=pool)


def _check_copies(tuning: Tuning) -> None:
    """Refuse copies of rows in parts. A copy would depend on how the rows are cut."""
    if tuning.copies is not None:
        raise ValueError(
            f"copies are made of all rows together, and X is in parts, so "
            f"{type(tuning.copies).__name__} cannot make them; give X as an array in memory, or "
            "write copies beside the rows (laconic.deform.Deform has enlarge) and leave copies out"
        )


def _try_copies(tuning: Tuning, X: Any) -> None:
    """Make the copies of the first epoch, so that an error comes before the path is grown."""
    if tuning.copies is not None:
        copied(tuning.copies, X, 0)


def mark_of_tuning(estimator: Any) -> str:
    """Return a digest of the settings of tuning, by which a checkpoint knows what it has.

    Sizes are left out, because a size that is asked for twice is tuned once. Settings that cannot
    be compared are refused if there is a checkpoint.
    """
    tuning = asked_tuning(estimator)
    if tuning is None or estimator.checkpoint is None:
        return ""
    names = [field.name for field in fields(tuning) if field.name != "sizes"]
    settings = {name: plain(getattr(tuning, name)) for name in names}
    return digest_of({**settings, "places": may_grow(estimator, tuning)})


def given_to_tuner(
    estimator: Any,
    ready: Any,
    judged: JudgedHere | JudgedParts | None,
    loop: Any,
    threads: Any,
) -> TuningGiven:
    """Return what the tuner must know."""
    from laconic.tune.path import TuningGiven

    seed = estimator.random_state
    drawn = np.random.default_rng(int(seed) if isinstance(seed, Integral) else 0)
    given = TuningGiven(
        *_divided(estimator, ready, judged, threads),
        ready.loss,
        loop.settle.penalty,
        loop.settle.corrector,
        estimator._minimal,
        loop.record.rows.n_outputs,
        estimator.fit_intercept,
        _operations_count(estimator),
        threads,
        estimator._limits,
        int(drawn.integers(2**31)),
    )
    return judged_as_shipped(estimator, ready, given)


def _operations_count(estimator: Any) -> bool:
    priced = isinstance(estimator.costs, str) and estimator.costs == "operations"
    return priced or estimator.max_operations is not None


def judged_as_shipped(estimator: Any, ready: Any, given: TuningGiven) -> TuningGiven:
    """Let integer models be compared, if a budget in bytes says the word length."""
    target, training = ready.target, ready.training
    if target is None or target.bits is None or not hasattr(training, "X"):
        return given
    from laconic.tune.in_integers import HeldOutInIntegers, Shipped

    assert isinstance(given.held, HeldOut)
    X, weight = to_host(training.X), to_host(training.weight)
    own = X, weight, len(estimator.classes_), estimator.loss_
    shipped = Shipped(target.bits, target.inputs, *own)
    return given._replace(held=HeldOutInIntegers(given.held, shipped))


def _divided(
    estimator: Any, ready: Any, judged: JudgedHere | JudgedParts | None, threads: Any
) -> tuple[RowsToTune, RowsToTune, Held]:
    """Return all rows, those that are fitted, and those that are held out."""
    from laconic.tune.rows import RowsHere

    if judged is None:
        every = RowsHere(ready.training, threads)
        return every, every, ready.held
    if isinstance(judged, JudgedHere):
        return RowsHere(judged.every, threads), RowsHere(ready.training, threads), judged.held
    return judged.rows(ready.loss, threads)


def _part(training: Any, numbers: np.ndarray) -> tuple[Any, Any, Any]:
    """Return some rows, their class codes, and weights that sum to one."""
    weight = training.weight[numbers]
    return training.X[numbers], training.codes[numbers], weight / weight.sum()


def moving(estimator: Any) -> Tuning | None:
    """Return the settings of ``tune`` if atoms are moved when they are chosen, or None."""
    tuning = asked_tuning(estimator)
    return tuning if tuning is not None and tuning.at_selection else None


def mover(estimator: Any, ready: Any) -> Mover | None:
    """Return what moves atoms when they are chosen, or None."""
    if (tuning := moving(estimator)) is None:
        return None
    from laconic.tune.at_selection import AtSelection

    free, projection = may_grow(estimator, tuning), estimator.rule == "projection"
    return AtSelection(ready.training.X, ready.pool.scale, projection, free)


def mark_of_moves(estimator: Any) -> dict[str, Any]:
    """Return what the path depends on if atoms are moved when they are chosen."""
    tuning = moving(estimator)
    return {} if tuning is None else {"at_selection": may_grow(estimator, tuning)}


def tuning_of_a_fold(estimator: Any) -> Tuning | bool:
    """Return the setting ``tune`` of the fits that compare sizes: only what changes the path."""
    tuning = moving(estimator)
    return False if tuning is None else replace(tuning, sizes=[])


def may_grow(estimator: Any, tuning: Tuning) -> bool:
    """Return whether atoms may read more inputs and take more than when they were chosen."""
    if tuning.places is not None:
        return tuning.places
    return not estimator.exclude and all(getattr(estimator, name) is None for name in COUNTED)


@contextmanager
def shown(verbose: int) -> Iterator[Callable[[int, float, float], bool]]:
    """Give a function that moves a progress bar, or does nothing at ``verbose=0``.

    Parts of the rows, which are asked again and again, have no bars of their own meanwhile.
    """
    if not verbose:
        yield lambda size, share, loss: False
        return
    from laconic.look.bars import progress_bar

    with watched(None), progress_bar("{task.fields[says]}") as bar:
        tasks: dict[int, Any] = {}

        def told(size: int, share: float, loss: float) -> bool:
            if size not in tasks:
                tasks[size] = bar.add_task("tuning", total=100, says="")
            says = f"%  {size} atoms  loss {loss:.4f}"
            bar.update(tasks[size], completed=int(100 * share), says=says)
            return False

        yield told

"""How atoms are tuned: the settings of the parameter ``tune`` of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from laconic.tune.batches import Copies

# Batches have at most so many rows, and at least so many if there are as many rows.
MOST_ROWS, FEWEST_ROWS = 512, 32
# Every row is looked at so often, and more often if there are fewer steps than these.
EPOCHS, STEPS = 30, 2000
# Small tables get at least this many batches in an epoch.
BATCHES = 100


@dataclass(frozen=True)
class Tuning:
    """Settings for tuning atoms; see `laconic.ShareBoostClassifier` and its parameter ``tune``.

    Parameters
    ----------
    sizes : sequence of int, "all" or None, default=None
        Sizes of the path to tune. Each starts from the next smaller one that was accepted. A size
        that the path does not reach is left out, with a warning. ``None`` means only the size that
        the model uses. An empty list means none, for tuning at selection alone.
    epochs : int or None, default=None
        How often every row is looked at. ``None`` means 30 times, and more often if that gives less
        than 2,000 steps.
    batch_size : int or None, default=None
        Rows of a step. ``None`` means a hundredth of the rows, at least 32 and at most 512. Rows in
        files or in Dask collections have no such upper limit, because a step there takes long
        however few rows it has.
    rate : float, default=0.03
        Length of the first steps, as a share of what they move. It falls to zero.
    places : bool or None, default=None
        Whether places and widths of patches are tuned, too, and whether each patch gets a template
        of its own. ``None`` means yes, unless pixels, operations or bytes cost something or have a
        cap, or ``exclude`` forbids atoms: moved and wider masks may read other pixels, and more
        templates take more operations and bytes. With such a cost or cap, or with ``exclude``,
        ``True`` is refused. For pieces and bumps, it says whether each has a centre of its own and
        may grow. Hinges ignore this setting.
    copies : object, optional
        What makes new copies of the rows for every epoch, such as `laconic.deform.Deform`. It has a
        method ``copies_of(X, number)``. Give it if the rows are images. It needs all rows in one
        memory or on a GPU.
    at_selection : bool, default=False
        Whether the best atom of every round is moved to a local maximum of its score before it
        comes in. This needs ``rule="gradient"`` or ``"projection"``, an intercept, and rows in the
        memory of the processor. An atom of a round is not moved if the model would then cost more.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laconic import ShareBoostClassifier
    >>> from laconic.pools import Patches
    >>> from laconic.tune import Tuning
    >>> X, y = load_digits(return_X_y=True)
    >>> pool = Patches(n_templates=30, template_size=3, mask_grid=2, mask_sigma=2.0)
    >>> model = ShareBoostClassifier(8, pool=pool, tune=Tuning(epochs=20)).fit(X[:1000], y[:1000])
    >>> chosen = model.path_.chosen[8]
    >>> model.path_[8].loss < chosen.loss
    True
    """

    sizes: Sequence[int] | str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    rate: float = 0.03
    places: bool | None = None
    copies: Copies | None = None
    at_selection: bool = False

    def __post_init__(self) -> None:
        """Refuse wrong settings."""
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and not _is(value, Integral, 1):
                raise ValueError(f"{name} must be a positive integer or None, not {value!r}")
        if not _is(self.rate, Real, 0) or not 0 < self.rate < 1:
            raise ValueError(f"rate must be above 0 and below 1, not {self.rate!r}")
        if not (self.places is None or isinstance(self.places, bool)):
            raise ValueError(f"places must be True, False or None, not {self.places!r}")
        if not isinstance(self.at_selection, bool):
            raise ValueError(f"at_selection must be True or False, not {self.at_selection!r}")
        if not (self.sizes is None or self.sizes == "all" or _are_sizes(self.sizes)):
            raise ValueError(
                f'sizes must be a list of positive integers, "all" or None, not {self.sizes!r}'
            )
        if not (self.joint or self.at_selection):
            raise ValueError("sizes=[] tunes nothing; name some sizes, or set at_selection=True")
        if self.copies is not None and not hasattr(self.copies, "copies_of"):
            raise TypeError(
                f"copies must have a method copies_of(X, number), as laconic.deform.Deform has; "
                f"{type(self.copies).__name__} has none"
            )

    @property
    def joint(self) -> bool:
        """Whether some sizes are tuned after the path is grown."""
        return self.sizes is None or len(self.sizes) > 0

    def rows_of_a_batch(self, n_rows: int, most: int = MOST_ROWS) -> int:
        """Return how many rows a batch has."""
        if self.batch_size is not None:
            return self.batch_size
        return min(max(n_rows // BATCHES, FEWEST_ROWS), most)

    def epochs_of(self, n_batches: int) -> int:
        """Return the number of epochs, each of so many steps."""
        return self.epochs or max(EPOCHS, -(-STEPS // n_batches))


def _are_sizes(sizes: Any) -> bool:
    if isinstance(sizes, str):
        return False
    return all(_is(size, Integral, 1) for size in sizes)


def _is(value: Any, kind: Any, least: float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and bool(value >= least)

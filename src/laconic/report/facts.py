"""The facts of a report on clumps: error rates, each clump, and all clumps together."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laconic.clumping.score import ClumpScore
from laconic.files.whole import whole_file
from laconic.notebook import frame
from laconic.report.balls import LARGEST, ErrorBall
from laconic.report.conditions import ErrorRule
from laconic.report.features import FeatureGap, NamedTable
from laconic.report.fix import LocalFix
from laconic.report.rules import MOST
from laconic.report.search import HARD, SURPRISING

# A clump is confirmed if the chance of so many errors by luck, adjusted for the number of clumps in
# the report, is smaller than this.
CONFIRMED = 0.01
# If a hard clump has so many errors with a smaller chance, it may be a surprising one.
DOUBTFUL = 0.05


@dataclass(frozen=True)
class Rate:
    """Errors among rows, or the sum of their losses."""

    errors: float
    rows: int

    @property
    def share(self) -> float:
        """Share of the rows that are misclassified, or the mean loss; NaN without rows."""
        return self.errors / self.rows if self.rows else float("nan")


@dataclass(frozen=True, repr=False)
class ClumpFacts:
    """What the report says about one clump."""

    kind: str
    """``"surprising"`` (more errors than the model's probabilities predict), ``"hard"`` (many
    errors, as expected) or ``"plain"`` (many errors or high losses, and no probabilities)."""
    shape: ErrorBall | ErrorRule
    rows: np.ndarray
    """Numbers of the rows inside, nearest to the centre first."""
    searched: Rate
    """Errors inside on the rows that the clump was found on. The search flatters them."""
    inside: Rate
    """Errors inside on fresh rows."""
    outside: Rate
    """Errors on fresh rows in none of the clumps that the search found. All clumps share this rate,
    so that a small clump need not stand out from larger ones."""
    expected: float | None
    """Errors on the fresh rows inside that the model's probabilities predict, after recalibration
    on the searched rows. None without probabilities."""
    chance: float
    """Chance of at least as many errors inside by luck. For a surprising clump: if rows failed as
    expected (Poisson-binomial). For others: if the errors of ``inside`` and ``outside`` were spread
    evenly over their rows (hypergeometric). For losses: if the losses were (rank sum)."""
    own: float | None
    """The same before recalibration: what the model itself says."""
    beyond: float | None
    """For a hard clump: chance of at least as many errors inside if rows failed as expected. If it
    is small, the clump may be a surprising one that has too few rows to be sure."""
    adjusted: float
    """``chance`` adjusted for the number of clumps that the search found (Holm)."""
    mistakes: list[tuple[Any, Any, int]]
    """True label, predicted label and number, most common mistakes first."""
    gaps: list[FeatureGap]
    """Features, ranked by how much their distribution inside differs. Empty for pictures."""
    fix: LocalFix
    shared: int = 0
    """Number of rows that the shape holds too, but that belong to clumps found before."""

    @property
    def confirmed(self) -> bool:
        """Whether fresh rows fail here more often than luck explains."""
        return self.adjusted < CONFIRMED

    @property
    def as_expected(self) -> bool:
        """Whether the model's probabilities explain the errors inside, as far as we can tell."""
        doubtful = self.beyond is not None and self.beyond < DOUBTFUL
        return self.kind == HARD and not doubtful and not self.too_sure

    @property
    def too_sure(self) -> bool:
        """Whether the model itself expects less than half of the errors of the recalibration."""
        if self.own is None or self.expected is None:
            return False
        return self.own < self.expected / 2

    def __repr__(self) -> str:
        return (
            f"ClumpFacts({self.kind}, {self.shape!r}, {len(self.rows):,} rows, fresh rows: "
            f"{self.inside.errors:,.5g} of {self.inside.rows:,}, confirmed={self.confirmed})"
        )

    @property
    def rule(self) -> ErrorRule | None:
        """The rule that describes the clump, or None if it is a ball."""
        return self.shape if isinstance(self.shape, ErrorRule) else None

    @property
    def centre(self) -> int:
        """Number of the row nearest to the centre."""
        return int(self.rows[0])

    @property
    def excess(self) -> float:
        """Errors on fresh rows inside beyond those expected, or those that the rate outside gives.

        For losses, the sum of the losses inside beyond the mean outside.
        """
        if self.kind == SURPRISING and self.expected is not None:
            return self.inside.errors - self.expected
        rate = self.outside.share if self.outside.rows else 0.0
        return self.inside.errors - self.inside.rows * rate


@dataclass
class HolesReport:
    """The clumps of a classifier's errors: surprising ones first, then by excess errors.

    ``print(report)`` shows it as text. ``report.save(file)`` writes it as one HTML page that needs
    no network.
    """

    title: str
    table: NamedTable
    truth: np.ndarray
    predicted: np.ndarray
    fresh: np.ndarray
    """Whether each row was kept out of the search."""
    clumps: list[ClumpFacts]
    fixed: Rate
    """Errors on all fresh rows if every fix that looked useful in the search were applied."""
    found: int
    """Number of clumps that the search found. ``clumps`` leaves out those in which fresh rows fail
    no more often than outside."""
    places: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    """Places of the rows of ``shown`` on a map of two principal components."""
    shown: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    source: str | None = None
    """Where the rows come from, for example the name of a file."""
    first_row: int = 0
    """Number of the first row in the report."""
    min_rows: int = 1
    """Smallest number of searched rows in a clump."""
    ignored: list[str] = field(default_factory=list)
    """Columns that distances and sentences ignore on request."""
    known: np.ndarray | None = None
    """Labels that the model knows, or None if it does not tell."""
    probability: np.ndarray | None = None
    """Probability that the model gives to the label that it predicts, if it has any."""
    losses: np.ndarray | None = None
    """Loss of every row, if losses were given. ``truth`` then says which losses are high, and
    ``predicted`` is False everywhere."""
    nearness: ClumpScore | None = None
    """How clumped all errors are, if they are too few for the search."""

    @property
    def headline(self) -> str:
        """The title of the page."""
        return f"Where {self.title} fails" + (f" on {self.source}" if self.source else "")

    @property
    def rows_needed(self) -> int:
        """Smallest number of rows in which a clump can be found."""
        return 2 * math.ceil(self.min_rows / (MOST if self.table.image_shape is None else LARGEST))

    @property
    def strange(self) -> np.ndarray:
        """Whether the true label of each row is one that the model neither knows nor predicts."""
        told = np.unique(self.predicted)
        if self.known is not None:
            known = self.known.astype(str) if self.truth.dtype.kind == "U" else self.known
            told = np.concatenate([told, known])
        return ~np.isin(self.truth, told)

    @property
    def few_errors(self) -> bool:
        """Whether the searched half has fewer errors than a clump must have rows."""
        return 0 < self.overall.errors - self.on_fresh.errors < self.min_rows

    @property
    def wrong(self) -> np.ndarray:
        """Whether each row is misclassified."""
        return self.truth != self.predicted

    @property
    def overall(self) -> Rate:
        """Errors on all rows."""
        return Rate(int(self.wrong.sum()), len(self.truth))

    @property
    def on_fresh(self) -> Rate:
        """Errors on fresh rows."""
        return Rate(int(self.wrong[self.fresh].sum()), int(self.fresh.sum()))

    def text(self, width: int = 88) -> str:
        """Return the report as plain text."""
        from laconic.report.words import report_text

        return report_text(self, width)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        confirmed = sum(clump.confirmed for clump in self.clumps)
        wrong = self.overall
        what = f"{wrong.errors:,} of {wrong.rows:,} rows are wrong"
        if self.losses is not None:
            what = f"{len(self.losses):,} losses"
        return (
            f"HolesReport({self.headline}: {what}, {len(self.clumps)} clumps, {confirmed} of them "
            "confirmed)"
        )

    def _repr_html_(self) -> str:
        return frame(self.html())

    def html(self, rows: bool = True) -> str:
        """Return the report as one HTML page, which loads nothing from elsewhere.

        With ``rows=False``, the page has no rows of the data, only counts and summaries.
        """
        from laconic.report.page import report_page

        return report_page(self, rows)

    def save(self, file: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the HTML page, with or without rows of the data."""
        page = self.html(rows).encode()
        with whole_file(file) as stream:
            stream.write(page)

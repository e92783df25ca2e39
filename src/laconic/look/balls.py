"""What is inside the balls of a model: sizes, errors and nearest examples, as text or pictures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from laconic.model.distances import squared_distances
from laconic.model.mixed import maps_of
from laconic.model.pieces import PiecesMap


class Ball(NamedTuple):
    """Facts of one ball on some rows."""

    radius: float
    rows: int
    """Number of rows inside."""
    error: float
    """Share of wrong predictions inside, or NaN without labels or rows."""
    nearest: np.ndarray
    """Numbers of the rows nearest to the centre, nearest first."""


def ball_facts(model: Any, X: Any, y: Any = None, examples: int = 5) -> list[Ball]:
    """Return the size, error and nearest rows of every ball of a fitted model.

    Parameters
    ----------
    model : ShareBoostClassifier or Predictor
        Fitted with ``pool=Pieces(...)``, or with a list of pools that has pieces.
    X : ndarray of shape (n_rows, n_features)
        Rows to look at: training rows, or others.
    y : array-like of shape (n_rows,), optional
        Their labels, which the errors need.
    examples : int, default=5
        Number of nearest rows to return.
    """
    predictor = getattr(model, "predictor_", model)
    maps = list(maps_of(predictor.map, PiecesMap))
    if not maps:
        kind = predictor.map.kind
        raise ValueError(f"only models of pieces have balls. This one has {kind}.")
    first = [column for _, columns in maps for column in columns[:: np.shape(X)[1] + 1].tolist()]
    centres = np.concatenate([balls.centre for balls, _ in maps])
    radii = np.concatenate([balls.radius for balls, _ in maps])
    X = np.asarray(X)
    wrong = None if y is None else predictor.predict(X) != np.asarray(y)
    out = []
    for ball in np.argsort(first, kind="stable"):
        centre, radius = centres[ball], radii[ball]
        d2 = squared_distances(X, centre[None])[:, 0]
        inside = d2 < radius**2
        known = wrong is not None and inside.any()
        missed = float(wrong[inside].mean()) if known and wrong is not None else np.nan
        nearest = np.argsort(d2, kind="stable")[:examples]
        out.append(Ball(float(radius), int(inside.sum()), missed, nearest))
    return out


def plot_balls(
    model: Any,
    X: Any,
    images: Any,
    y: Any = None,
    *,
    balls: int = 10,
    examples: int = 10,
) -> Any:
    """Draw a line of pictures for each of the first balls: the rows nearest to its centre.

    Parameters
    ----------
    model, X, y
        See `ball_facts`.
    images : ndarray of shape (n_rows, height, width)
        The rows as pictures.
    balls, examples : int, default=10
        Numbers of lines, and of pictures in a line.

    Returns
    -------
    Figure
        Needs the ``plot`` extra.
    """
    from laconic.look.plots import INK, pyplot

    images = np.asarray(images)
    if len(images) != len(np.asarray(X)):
        raise ValueError(f"images must be one for each of the {len(X)} rows, not {len(images)}.")
    facts = ball_facts(model, X, y, examples)[:balls]
    size = 0.55
    sheet, axes = pyplot().subplots(
        max(len(facts), 1),
        examples,
        figsize=(size * examples + 2.2, size * max(len(facts), 1)),
        squeeze=False,
        layout="constrained",
    )
    for ax in axes.reshape(-1):
        ax.set_axis_off()
    for number, (ball, line) in enumerate(zip(facts, axes, strict=False), 1):
        for ax, row in zip(line, ball.nearest, strict=False):
            ax.imshow(images[row], cmap="gray_r", interpolation="nearest")
        text = f"ball {number}: {100 * ball.rows / len(images):.0f} % of rows"
        if np.isfinite(ball.error):
            text += f", {100 * ball.error:.2g} % wrong"
        line[0].text(
            -0.15, 0.5, text, transform=line[0].transAxes, ha="right", va="center",
            fontsize=7, color=INK,
        )  # fmt: skip
    return sheet

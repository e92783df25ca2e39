"""Axes that a notebook does not echo.

A notebook draws a figure by itself. If a cell ends with ``model.plot()``, it would also print the
axes below the figure, as ``<Axes: xlabel='atoms'>``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Panels(np.ndarray):
    """An array of axes that a notebook does not echo."""

    def _ipython_display_(self) -> None:
        """Show nothing, as the notebook draws the figure."""


def quiet(axes: Any) -> Any:
    """Return the same axes, or array of axes, such that a notebook does not echo them."""
    for ax in np.atleast_1d(axes):
        ax._ipython_display_ = _nothing
    return axes.view(Panels) if isinstance(axes, np.ndarray) else axes


def _nothing() -> None:
    """Show nothing. It is a function of a module, so figures can still be pickled."""

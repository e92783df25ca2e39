"""Looking at models: the card in plain text, and the plot of the path."""

from __future__ import annotations

from laconic.look.card import card
from laconic.look.plots import plot_path

__all__ = ["card", "plot_path"]

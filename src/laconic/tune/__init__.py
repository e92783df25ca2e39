"""Tuning: re-optimise the parameters of chosen atoms together with their weights."""

from laconic.tune.settings import Tuning

__all__ = ["Tuning"]

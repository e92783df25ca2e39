"""Correctors: the best weights of the columns in, and how far from the best they can be."""

from laconic.correct.nesterov import Nesterov
from laconic.correct.newton import Newton, conjugate_gradients
from laconic.correct.orthant import Orthant

__all__ = ["Nesterov", "Newton", "Orthant", "conjugate_gradients"]

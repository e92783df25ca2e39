"""Correctors: they find the best weights of the chosen columns and bound what is left to gain."""

from laconic.correct.conjugate import conjugate_gradients
from laconic.correct.nesterov import Nesterov
from laconic.correct.newton import Newton
from laconic.correct.orthant import Orthant

__all__ = ["Nesterov", "Newton", "Orthant", "conjugate_gradients"]

"""Deformed copies of training images."""

from __future__ import annotations

from laconic.deform.deform import Deform

__all__ = ["Deform"]

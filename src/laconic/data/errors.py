"""Errors that users can correct."""

from __future__ import annotations

# Longest part of another library's message that is shown, in characters.
LONGEST = 120


class UserError(Exception):
    """A problem that the user can correct. Its message is all that the user needs to see."""


def cause(error: Exception) -> str:
    """Return the first line of another library's message.

    A message of one word or none is preceded by the type of the error.
    """
    said = str(error).strip().splitlines() or [""]
    few = said[0] if len(said[0]) <= LONGEST else said[0][:LONGEST] + "…"
    return few if " " in few else f"{type(error).__name__} {few}".strip()

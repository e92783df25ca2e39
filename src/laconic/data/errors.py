"""Errors that people can put right."""

from __future__ import annotations

# Characters of another library's message that are worth a line.
LONGEST = 120


class UserError(Exception):
    """Something the user can put right; its message is all they need to see."""


def cause(error: Exception) -> str:
    """The first line of what another library says, with its kind where it says little."""
    said = str(error).strip().splitlines() or [""]
    few = said[0] if len(said[0]) <= LONGEST else said[0][:LONGEST] + "…"
    return few if " " in few else f"{type(error).__name__} {few}".strip()

"""Text on the page of a report."""

from __future__ import annotations

import re
from html import escape

NO_BREAK = "\N{NO-BREAK SPACE}"


def told(text: str) -> str:
    """Escape a sentence, and keep its numbers together with their per cent signs.

    Text to copy must stay as it is. It is only escaped.

    Examples
    --------
    >>> told("5 % of <b>") == "5\N{NO-BREAK SPACE}% of &lt;b&gt;"
    True
    """
    return re.sub(r"(?<=\d) %", f"{NO_BREAK}%", escape(text))

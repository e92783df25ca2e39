"""Numbers as people write them."""

from __future__ import annotations

import math


def percent(share: float, digits: int = 2) -> str:
    """Return a share in per cent, to ``digits`` significant digits or at least to whole per cent.

    Examples
    --------
    >>> percent(0.354), percent(0.0498), percent(0.0004), percent(1), percent(0.1267, digits=3)
    ('35 %', '5 %', '0.04 %', '100 %', '12.7 %')
    >>> percent(float("nan"))
    '-'
    """
    if math.isnan(share):
        return "-"
    value = 100.0 * share
    return f"{value:.0f} %" if value >= 10 ** (digits - 1) else f"{value:.{digits}g} %"


def percents(before: float, after: float) -> tuple[str, str]:
    """Return two shares in per cent, with as many digits (at most four) as tell them apart.

    Examples
    --------
    >>> percents(0.14, 0.11), percents(0.1215, 0.1204)
    (('14 %', '11 %'), ('12.2 %', '12 %'))
    """
    pairs = [(percent(before, digits), percent(after, digits)) for digits in (2, 3, 4)]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def number(value: float) -> str:
    """Return a number with three significant digits, or as a whole number from 1,000 on.

    Examples
    --------
    >>> number(0.12345), number(38.0), number(12345.6)
    ('0.123', '38', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

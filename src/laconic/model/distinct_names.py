"""Names that differ if their atoms differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

# With this many digits, any two different float64 numbers are written differently.
ALL_DIGITS = 17


def fewest_digits(write: Callable[[int], list[str]], different: int, least: int) -> list[str]:
    """Return the names from ``write(digits)``, with the fewest digits that tell them apart.

    ``different`` is how many names must differ, and ``least`` is the fewest digits to try.

    Examples
    --------
    >>> values = [1.25, 1.2502, 3.0]
    >>> fewest_digits(lambda digits: [f"{v:.{digits}g}" for v in values], 3, 3)
    ['1.25', '1.2502', '3']
    """
    for digits in range(least, ALL_DIGITS + 1):
        names = write(digits)
        if len(set(names)) >= different:
            break
    return names


def written_apart(values: Iterable[float], words: Any = None) -> dict[float, str]:
    """Write every number in words or with six digits. Use more digits if two look the same.

    Examples
    --------
    >>> written_apart([1234567890.5, 1234567891.5, 2.0])
    {1234567890.5: '1234567890', 1234567891.5: '1234567892', 2.0: '2'}
    """
    known = list(dict.fromkeys(values))

    def write(digits: int) -> list[str]:
        plain = [f"{v:.{digits}g}" for v in known]
        if words is None:
            return plain
        finer = words.finer(digits) if hasattr(words, "finer") else words
        return [finer.get(v, text) for v, text in zip(known, plain, strict=True)]

    return dict(zip(known, fewest_digits(write, len(known), 6), strict=True))


def quoted_if_alike(
    write: Callable[[Callable[[str], str]], list[str]], different: int
) -> list[str]:
    """Return the names from ``write``. Quote the features if fewer than ``different`` names differ.

    Examples
    --------
    >>> pairs = [("a", "b * c"), ("a * b", "c")]
    >>> quoted_if_alike(lambda name: [f"{name(i)} * {name(j)}" for i, j in pairs], 2)
    ["'a' * 'b * c'", "'a * b' * 'c'"]
    """
    names = write(str)
    return names if len(set(names)) >= different else write(repr)

"""A progress bar for work on rows in parts: reading files, or asking the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

from laconic.look.bars import share_bar
from laconic.numeric.parts import Step, watched

# What questions to parts do, for people.
_WORDS = {
    "look": "looking at the rows",
    "count": "counting values",
    "survey": "surveying the rows",
    "digest": "recognising the rows",
}


def parts_progress(verbose: int) -> AbstractContextManager[None]:
    """Show how far the parts are whenever all of them are asked, or nothing at ``verbose=0``."""
    return watched(_bar if verbose else None)


@contextmanager
def _bar(question: str, n_parts: int) -> Iterator[Step]:
    done = count(1)
    with share_bar(1, _WORDS.get(question, "reading the rows")) as tell:
        yield (lambda: None) if tell is None else (lambda: tell(next(done) / n_parts))

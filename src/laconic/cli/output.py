"""Standard output of the commands. An error such as a full disk is reported once, by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

INTERRUPTED = 130  # 128 + SIGINT, what shells report
SEED = 0  # of everything that the commands draw at random
NAME = "standard output"


@contextmanager
def standard_output() -> Iterator[None]:
    """Name standard output in errors of writing to it, and raise the first of them at the end.

    Such an error counts even if the code that wrote ignored it, as the parser does after
    ``--help``. Other errors take precedence.
    """
    if sys.stdout is None:  # closed by the process that started us
        yield
        return
    out = _Output(sys.stdout)
    sys.stdout = out
    try:
        yield
    except SystemExit:
        out.finish()
        raise
    except BaseException:
        with suppress(OSError):
            out.finish()
        raise
    else:
        out.finish()
    finally:
        sys.stdout = out.stream


class _Output:
    """Stream that names itself in errors and remembers the first one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        with self._naming():
            return self.stream.write(text)

    def flush(self) -> None:
        with self._naming():
            self.stream.flush()

    def finish(self) -> None:
        """Write what is left, and raise the first error."""
        with suppress(OSError):
            self.flush()
        if self.failure is not None:
            # Python flushes once more when it exits. What is left must then go nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
            raise self.failure

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            named = OSError(error.errno, error.strerror, NAME)
            self.failure = self.failure or named
            raise named from error

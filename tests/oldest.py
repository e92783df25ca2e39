"""The lower bounds that pyproject.toml declares, as constraints for pip.

``make test-oldest`` installs exactly these and runs the tests.

    python tests/oldest.py > constraints.txt
"""

from __future__ import annotations

import re
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Tools that judge the code, not run it: their newest versions.
TOOLS = ("ruff", "mypy")


def bounds(text: str) -> list[str]:
    """``name==version`` for every ``name>=version`` of the package and its tests."""
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"]]
    for extra in re.findall(r"[a-z]+", extras["test"][0].partition("[")[2]):
        wanted += extras[extra]
    pairs = [re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in wanted]
    return [f"{p[1]}=={p[2]}" for p in pairs if p is not None and p[1] not in TOOLS]


if __name__ == "__main__":
    print("\n".join(bounds(PYPROJECT.read_text())))

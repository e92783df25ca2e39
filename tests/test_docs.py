"""Every Python block of the README and the docs runs as it stands."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), {})
        said = capsys.readouterr().out.strip()
        promised = re.search(r"print\(.*\)  # (.*)\n$", block)
        if promised:
            assert said == promised[1]

"""Every code block of the documentation runs, every link leads somewhere, every picture is true."""

import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from laconic import ShareBoostClassifier
from laconic.cli.main import main

ROOT = Path(__file__).resolve().parents[1]


def name_of(page):
    return str(page.relative_to(ROOT))


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
WITH_BLOCKS = [page for page in PAGES if "```" in page.read_text()]
MOST_WORDS = 600  # of the README
MADE_HERE = re.compile(r"!\[[^]]*\]\(((?:docs/)?images/(\w+\.png))\)")
SCREENSHOTS = {"holes_report.png": "report.html"}  # and the file that a block writes


# Pages whose blocks take more than five seconds.
LONG = ("README.md", "compact.md", "shareboost.md", "totalqboost.md", "tuning.md")


def long_or_not(page):
    return pytest.param(page, marks=pytest.mark.long) if page.name in LONG else page


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """An empty directory with the tables and the model that shell commands speak of."""
    import joblib

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(0, 1, (300, 3)), columns=["a", "b", "c"])
    hard = np.hypot(rows["a"] - 0.8, rows["b"] - 0.8) < 0.2
    label = np.where((rows["a"] > 0.5) ^ hard, "yes", "no")
    rows.to_csv(tmp_path / "new.csv", index=False)
    for name in ("table.csv", "rows.csv"):
        rows.assign(label=label).to_csv(tmp_path / name, index=False)
    model = LogisticRegression().fit(rows, label)
    joblib.dump(model, tmp_path / "model.joblib")
    given = rows.assign(label=label, said=model.predict(rows))
    chances = model.predict_proba(rows)
    given.assign(sure=chances.max(axis=1)).to_csv(tmp_path / "scored.csv", index=False)
    given.assign(p_no=chances[:, 0], p_yes=chances[:, 1]).to_csv(
        tmp_path / "probabilities.csv", index=False
    )
    if find_spec("pyarrow"):
        (tmp_path / "rows").mkdir()
        for number in range(2):
            half = rows.assign(label=label)[number::2]
            half.to_parquet(tmp_path / "rows" / f"{number}.parquet")
    rows.assign(absolute_error=1 - chances.max(axis=1)).to_csv(tmp_path / "losses.csv", index=False)
    digits = load_digits(as_frame=True).frame[:400].rename(columns={"target": "digit"})
    digits.to_csv(tmp_path / "digits.csv", index=False)
    reader = ShareBoostClassifier(5).fit(digits.drop(columns="digit"), digits["digit"])
    reader.predictor_.save(tmp_path / "digits.laconic")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", [*map(long_or_not, WITH_BLOCKS)], ids=name_of)
def test_blocks_run(page, tables, capsys):
    """Python and ``laconic`` commands as they stand; of others, that what they name is there.

    Text is what the block before it prints.
    """
    mpl.use("Agg")
    for name, needed in ((".parquet", "pyarrow"), ("import torch", "torch")):
        if name in page.read_text():
            pytest.importorskip(needed)
    said = ""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", page.read_text(), flags=re.DOTALL):
        if language == "python":
            exec(compile(block, page.name, "exec"), {})
            said = capsys.readouterr().out.strip()
            promised = re.search(r"print\(.*\)  # (.*)\n$", block)
            if promised:
                assert said.splitlines()[-1] == promised[1]
        elif language == "c":
            _compile(block, tables)
        elif language == "text":
            assert set(block.splitlines()) <= set(said.splitlines())
        else:
            assert language == "sh", f"{page.name} has a block of {language}, which nothing runs"
            for line in block.replace("\\\n", " ").splitlines():
                _run(shlex.split(line, comments=True))
    for link, picture in MADE_HERE.findall(page.read_text()):
        if picture in SCREENSHOTS:
            assert (tables / SCREENSHOTS[picture]).is_file()
        else:
            _is_same_picture(tables / picture, page.parent / link)


def _compile(block, folder):
    """Compile C as it stands, with the headers that blocks before it wrote."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    (folder / "main.c").write_text(block)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "main.c", "-o", "main"], cwd=folder, check=True)


def _run(words):
    if not words:
        return
    if words[0] == "laconic":
        assert main(words[1:]) == 0, words
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(words[1:]) <= set(targets), words
    elif Path(words[0]).name == "python":  # a script that takes long, or needs data
        assert (ROOT / words[1]).is_file() or words[1] == "-m", words
    else:
        assert words[0] == "pip", words


def _is_same_picture(made, shown):
    """Compare pixels where this matplotlib drew both; another one draws letters differently."""
    from matplotlib.image import imread
    from PIL import Image

    assert made.is_file(), f"no block of the page makes {made.name}"
    assert shown.is_file()
    if Image.open(made).info["Software"] == Image.open(shown).info["Software"]:
        new, old = imread(made), imread(shown)
        assert new.shape == old.shape
        assert np.abs(new - old).mean() < 0.002


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name_of(page)} links to {link}"
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), flags=re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert heading in slugs, f"{name_of(page)} links to {link}"


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(ROOT / 'docs').as_posix()})" in index, page


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_has_a_placeholder(page):
    """A line of capital letters stands for text that is still to be written."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    assert re.findall(r"^[A-Z][A-Z_ ]+$", text, flags=re.MULTILINE) == []

"""A notebook, run from top to bottom: what cells show, and what they do not say twice."""

import os
import re
import textwrap
from pathlib import Path

import pytest

import laconic

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

CELLS = {
    "data": """
        import contextlib, io, warnings
        from sklearn.datasets import load_iris, make_moons
        from sklearn.linear_model import LogisticRegression
        import sklearn
        from laconic import (CompactClassifier, ErrorClumpingClassifier, HolePunchingClassifier,
                             ShareBoostClassifier, TotalQBoostClassifier, report_holes)
        iris = load_iris(as_frame=True)
        X = iris.data.set_axis(["<script>alert(1)</script>", "b", "c", "d"], axis=1)
        y = iris.target.map(str)
        moons = make_moons(300, noise=0.2, random_state=0)""",
    "share": "model = ShareBoostClassifier(4, verbose=1, alpha=1e-3).fit(X, y)",
    "totalq": "priced = TotalQBoostClassifier(max_atoms=3, verbose=1).fit(*moons)",
    "clumps": "clumped = ErrorClumpingClassifier(verbose=1).fit(*moons)",
    "holes": "punched = HolePunchingClassifier(LogisticRegression(), 2, verbose=1).fit(*moons)",
    "compact": """
        compact = CompactClassifier(2000, pools=["columns"], alphas=[1e-2], max_atoms=4, cv=2,
                                    verbose=1, random_state=0).fit(X, y)""",
    "model": "model",
    "punched": "punched",
    "chosen": "compact",
    "predictor": "model.predictor_",
    "path": "model.path_",
    "describe": "model.describe(); priced.describe()",
    "redirected": """
        with contextlib.redirect_stdout(io.StringIO()) as kept:
            model.describe()
        assert "always in" in kept.getvalue()""",
    "forked": """
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=model.describe)
        child.start(); child.join(); assert child.exitcode == 0""",
    "text": """
        with sklearn.config_context(display="text"):
            display(model)""",
    "plot": "model.plot()",
    "panels": "model.plot(X, y)",
    "plot holes": "punched.plot()",
    "pareto": "compact.plot_pareto()",
    "title": """
        ax = model.plot()
        ax.set_title("my title")
        assert ax.get_title() == "my title" """,
    "report": """
        flat = LogisticRegression().fit(*moons)
        report = report_holes(flat, *make_moons(1000, noise=0.2, random_state=1))
        report""",
    "repr": "print(repr(report))",
}
FITS = {"share": "growing", "totalq": "growing", "holes": "punching", "compact": "searching"}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The outputs of every cell."""
    notebook = nbformat.v4.new_notebook()
    for code in CELLS.values():
        notebook.cells.append(nbformat.v4.new_code_cell(textwrap.dedent(code).strip()))
    source = str(Path(laconic.__file__).resolve().parents[1])
    folder = str(tmp_path_factory.mktemp("jupyter"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", source, prepend=os.pathsep)
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(name, folder)
        patch.delenv("MPLBACKEND", raising=False)
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=folder)
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def _html(output):
    return output["data"]["text/html"]


def test_no_cell_warns_or_prints_what_is_shown(outputs):
    streams = {(name, o.name) for name, said in outputs.items() for o in said if "name" in o}
    # The solver of clumps prints its steps. A forked process can only print.
    assert streams == {("repr", "stdout"), ("clumps", "stdout"), ("forked", "stdout")}
    assert outputs["forked"][0].text.startswith("4 columns")
    assert outputs["data"] == outputs["redirected"] == []


@pytest.mark.parametrize(("cell", "task"), FITS.items())
def test_a_fit_shows_one_bar(outputs, cell, task):
    (bar,) = [o for o in outputs[cell] if o.data.get("text/html")]
    assert bar.output_type == "display_data"
    assert "<progress value=" in _html(bar)
    assert task in bar.data["text/plain"]
    done = re.search(r"(\d+)/(\d+)", bar.data["text/plain"])
    assert done[1] == done[2]


@pytest.mark.parametrize("cell", ["model", "punched", "chosen", "predictor", "path", "report"])
def test_a_last_line_is_shown_as_html_and_short_text(outputs, cell):
    (shown,) = outputs[cell]
    assert shown.output_type == "execute_result"
    assert "laconic" in _html(shown).lower()
    assert len(shown.data["text/plain"]) < 300
    assert "<script>alert" not in _html(shown)


def test_a_classifier_shows_its_diagram_and_what_it_learned(outputs):
    html = _html(outputs["model"][0])
    assert html.index("sk-top-container") < html.index('class="laconic"')
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert list(outputs["text"][0].data) == ["text/plain"]


def test_describe_shows_a_card_for_every_call(outputs):
    one, other = outputs["describe"]
    assert {one.output_type, other.output_type} == {"display_data"}
    assert "training loss" in one.data["text/plain"]
    assert "<table>" in _html(one)


@pytest.mark.parametrize("cell", ["plot", "panels", "plot holes", "pareto", "title"])
def test_a_plot_is_drawn_once_and_echoes_nothing(outputs, cell):
    (drawn,) = outputs[cell]
    assert drawn.output_type == "display_data"
    assert "image/png" in drawn.data


def test_a_report_is_a_page_in_a_frame(outputs):
    html = _html(outputs["report"][0])
    assert html.startswith('<iframe sandbox="allow-scripts allow-downloads" srcdoc="&lt;!doctype')
    assert html.count("<") == 2
    said = outputs["repr"][0].text
    assert len(said) < 300
    assert "of 1,000 rows are wrong" in said

"""Cards, paths and holes as HTML: small, escaped, and readable in light and dark themes."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import HolePunchingClassifier, ShareBoostClassifier, TotalQBoostClassifier
from laconic.boost.path import Path
from laconic.model.html_card import MOST_CLASSES
from laconic.notebook import MOST_ROWS, frame

HARM = "<script>document.title='harm'</script>"


def lines(html, tag="tbody"):
    (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html)
    return re.findall(r"<tr>(.*?)</tr>", body)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return ShareBoostClassifier(25, alpha=1e-3).fit(X[:500], y[:500])


@pytest.fixture(scope="module")
def harmful():
    """A model whose names of features and classes are HTML."""
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:, :3], columns=[HARM, "a & b", '"c"'])
    return TotalQBoostClassifier(max_atoms=5).fit(frame, np.array(["<i>", "</div>"])[y])


def test_a_card_has_a_line_for_every_atom_up_to_a_cap(digits):
    html = digits.predictor_._repr_html_()
    names = [re.search(r'class="name">(.*?)<', line)[1] for line in lines(html)]
    assert names == digits.get_feature_names_out()[:MOST_ROWS].tolist()
    assert f"… and {25 - MOST_ROWS} more lines. describe() shows up to 200 lines." in html
    assert len(lines("".join(digits.predictor_._html(200)))) == 25
    assert "more lines" not in digits.at(3).predictor_._repr_html_()


def test_a_card_shows_the_weights_and_tints_the_largest(digits):
    line = lines(digits.predictor_._repr_html_())[0]
    cells = re.findall(r'<td(?: class="(.\d)")?>(-?[\d.]+)</td>', line)
    weights = digits.predictor_.weights[0]
    assert np.allclose([float(text) for _, text in cells], weights, atol=5e-3)
    tints = [tint for tint, _ in cells]
    assert tints[int(np.abs(weights).argmax())][1] == "3"
    for weight, tint in zip(weights, tints, strict=True):
        assert not tint or tint[0] == ("p" if weight > 0 else "n")


def test_many_classes_are_capped_and_the_html_stays_small():
    rng = np.random.default_rng(0)
    y = np.repeat([f"class {c}" for c in range(50)], 4)
    X = rng.standard_normal((200, 40))
    model = ShareBoostClassifier(30, alpha=1.0).fit(X, y)
    html = model.predictor_._repr_html_()
    assert len(re.findall("<td", lines(html)[0])) == 2 + MOST_CLASSES
    assert "30 more classes" in html
    assert len(html) < 25_000


def test_names_are_escaped(harmful):
    assert HARM in harmful.feature_names_in_
    for shown in (harmful.predictor_._repr_html_(), harmful._repr_html_()):
        assert "<script>document" not in shown
        assert "<i>" not in shown
        assert "&lt;script&gt;document" in shown


def test_integers_and_paths(digits):
    X = load_digits().data[:500].astype(np.uint8)
    html = digits.predictor_.quantise(X)._repr_html_()
    assert "<details><summary>Integers, bounds and ranges</summary><pre>Weights are" in html
    html = digits.path_._repr_html_()
    assert len(lines(html)) == MOST_ROWS
    assert "20 of 26 sizes are shown" in html
    first, *_, last = ([*re.findall("<td>(.*?)</td>", line)] for line in lines(html))
    assert (first[0], last[0]) == ("0", "25")
    assert float(last[1]) == pytest.approx(digits.path_.losses[-1], rel=1e-3)
    assert "sizes are shown" not in Path(digits.path_.entries[:4])._repr_html_()


def test_the_cost_of_a_path_is_shown_if_it_is_not_the_number_of_atoms():
    X, y = load_digits(return_X_y=True)
    model = ShareBoostClassifier(2, costs=[3.0] * 64, alpha=1e-3).fit(X[:300], y[:300])
    assert "<th>cost</th>" in model.path_._repr_html_()


def test_holes_are_a_table():
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = HolePunchingClassifier(LogisticRegression(), 2).fit(X, y)
    html = model._repr_html_()
    assert "LogisticRegression with 2 holes" in html
    assert "always 1" in html or "always 0" in html
    assert "No hole" in model.at(0)._repr_html_()


def test_only_fitted_classifiers_have_a_card(digits):
    assert 'class="laconic"' not in ShareBoostClassifier()._repr_html_()
    assert 'class="laconic"' in digits._repr_html_()
    assert digits._repr_mimebundle_()["text/html"].count('class="laconic"') == 1


def test_scikit_learns_settings_and_pipelines_stay_as_they_are(digits):
    with sklearn.config_context(display="text"):
        assert not hasattr(digits, "_repr_html_")
        assert set(digits._repr_mimebundle_()) == {"text/plain"}
    X, y = load_digits(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), ShareBoostClassifier(2)).fit(X[:300], y[:300])
    assert 'class="laconic"' not in pipe._repr_html_()
    assert "ShareBoostClassifier" in pipe._repr_html_()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_and_names_do_no_harm(browser, digits, harmful, theme):
    """Contrast of at least 4.5 (WCAG AA) on every tint, and no script of a name runs."""
    paper, ink = {"light": ("#fff", "#222"), "dark": ("#111", "#ddd")}[theme]
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    shown = digits.predictor_._repr_html_() + harmful.predictor_._repr_html_()
    page.set_content(
        f"<!doctype html><title>fine</title><body style='background:{paper};color:{ink}'>{shown}"
    )
    assert page.title() == "fine"
    assert asked == []
    assert page.locator("td.name", has_text=HARM).count() > 0
    for kind in ("p1", "p3", "n1", "n3", "name"):
        styles = "(at) => [getComputedStyle(at).color, getComputedStyle(at).backgroundColor]"
        front, tint = page.locator(f"td.{kind}").first.evaluate(styles)
        *colour, strength = _channels(tint)
        base = _channels(page.locator("body").evaluate(styles)[1])[:3]
        back = np.array(colour) * strength + np.array(base) * (1 - strength)
        bright = sorted((_luminance(_channels(front)[:3]), _luminance(back)))
        assert (bright[1] + 0.05) / (bright[0] + 0.05) >= 4.5, (kind, front, tint)
    page.close()


@pytest.mark.browser
def test_a_framed_page_runs_its_scripts_but_cannot_reach_the_notebook(browser):
    inner = "<!doctype html><p id=a></p><script>try { parent.document.title = 'harm' } catch (e) "
    inner += "{ a.textContent = 'kept out' }</script>"
    page = browser.new_page()
    page.set_content(f"<!doctype html><title>fine</title>{frame(inner)}")
    page.frame_locator("iframe").get_by_text("kept out").wait_for()
    assert page.title() == "fine"
    page.close()


def _channels(colour):
    """Red, green, blue and opacity of a colour, as browsers write it."""
    numbers = [float(n) for n in re.findall(r"[\d.]+", colour)]
    return numbers if len(numbers) == 4 else [*numbers, 1.0]


def _luminance(channels):
    parts = np.array(channels) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])

"""The bar of a notebook, without a notebook."""

import pytest

from laconic.look.notebook_bar import NotebookBar

display = pytest.importorskip("IPython.display")


class Place:
    """A place of a bar that is lost after it was made."""

    updates = 0

    def update(self, *given, **settings):
        self.updates += 1
        raise OSError("the notebook is gone")


@pytest.mark.parametrize("transient", [False, True])
@pytest.mark.parametrize("made", [False, True])
def test_work_goes_on_if_its_bar_cannot_be_shown(made, transient, monkeypatch):
    place, calls = Place(), []

    def broken(*given, **settings):
        calls.append(given)
        if not made:
            raise RuntimeError("no display")
        return place

    monkeypatch.setattr(display, "display", broken)
    monkeypatch.setattr("laconic.look.notebook_bar.EVERY_SECONDS", 0.0)
    with NotebookBar("%", transient) as bar:
        task = bar.add_task("growing", total=3)
        for done in (1, 2, 3):
            bar.update(task, completed=done)
    assert calls
    assert place.updates == (3 if made else 0)


def test_an_interruption_is_not_ignored(monkeypatch):
    def stopped(*given, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(display, "display", stopped)
    bar = NotebookBar("%")
    task = bar.add_task("growing", total=3)
    with pytest.raises(KeyboardInterrupt):
        bar.update(task, completed=1)

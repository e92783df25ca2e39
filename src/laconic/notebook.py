"""HTML for notebooks: escaped tables that suit light and dark themes, and a page in a frame.

Nothing here is fetched from a network. Text keeps the colour of the notebook's theme. Lines and
tints are transparent, so they suit any background.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from html import escape
from multiprocessing import parent_process
from typing import Any

# Most lines of a table in a notebook. `describe` shows more.
MOST_ROWS = 20
# Height of a page in a notebook, in pixels.
FRAME_HEIGHT = 640

STYLE = """<style>
.laconic{font-size:13px;line-height:1.45;max-width:100%;color:inherit}
.laconic p{margin:.3em 0;max-width:60em}
.laconic .wide{overflow-x:auto}
.laconic table{border-collapse:collapse;border:0;margin:.4em 0;font-size:inherit;
  font-variant-numeric:tabular-nums}
.laconic tr,.laconic tr:nth-child(even){background:none}
.laconic th,.laconic td{padding:.15em .7em;border:0;text-align:right;white-space:nowrap;
  font-weight:normal;color:inherit}
.laconic .name{text-align:left}
.laconic .place{padding-right:0;opacity:.75}
.laconic .in{padding-left:2em}
.laconic thead th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.6)}
.laconic tfoot td{border-top:1px solid rgba(128,128,128,.6)}
.laconic .p1{background:rgba(0,114,178,.10)}.laconic .n1{background:rgba(213,94,0,.10)}
.laconic .p2{background:rgba(0,114,178,.20)}.laconic .n2{background:rgba(213,94,0,.20)}
.laconic .p3{background:rgba(0,114,178,.32)}.laconic .n3{background:rgba(213,94,0,.32)}
.laconic pre{margin:.4em 0;white-space:pre-wrap;background:none;color:inherit}
.laconic progress{width:16em;vertical-align:middle;margin-right:.6em}
</style>"""


def box(parts: Iterable[str]) -> str:
    """Return parts of HTML as one piece, with its style."""
    return f'{STYLE}<div class="laconic">{"".join(parts)}</div>'


def sentences(text: str, strong: bool = False) -> str:
    """Return text as a paragraph."""
    told = escape(text)
    return f"<p><b>{told}</b></p>" if strong else f"<p>{told}</p>"


def folded(title: str, text: str) -> str:
    """Return text that a click on its title shows. Lines stay as they are."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def cell(text: str, kind: str = "", tag: str = "td") -> str:
    """Return a cell of a table. ``kind`` is one or more classes of the style, such as "name"."""
    opened = f'{tag} class="{kind}"' if kind else tag
    return f"<{opened}>{escape(text)}</{tag}>"


def table(head: list[str], body: list[str], foot: str = "") -> str:
    """Return a table of cells that are HTML already. ``body`` has one text for each line."""
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    foot = f"<tfoot><tr>{foot}</tr></tfoot>" if foot else ""
    top = f"<thead><tr>{''.join(head)}</tr></thead>"
    return f'<div class="wide"><table>{top}<tbody>{lines}</tbody>{foot}</table></div>'


def frame(page: str, height: int = FRAME_HEIGHT) -> str:
    """Return a whole HTML page in a frame.

    The page may run its scripts and save files. It cannot reach the notebook around it.
    """
    allowed = "allow-scripts allow-downloads"
    style = f"width:100%;height:{height}px;border:1px solid rgba(128,128,128,.4);resize:vertical"
    return f'<iframe sandbox="{allowed}" srcdoc="{escape(page)}" style="{style}"></iframe>'


def in_notebook() -> bool:
    """Return whether what is printed now appears in a notebook.

    It does not if standard output is a file or a text in memory, even in a notebook. Nor does it in
    a process that the notebook started, as such a process cannot reach it.
    """
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    redirected = isinstance(sys.stdout, (io.StringIO, io.TextIOWrapper))
    return hasattr(shell, "kernel") and not redirected and parent_process() is None


def show(text: str, html: Callable[[], str], file: Any = None) -> None:
    """Print text. In a notebook, show HTML instead, unless a file is given."""
    if file is not None or not in_notebook():
        print(text, file=file)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": html()}, raw=True)

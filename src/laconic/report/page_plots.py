"""Small plots on the page: how the rows of a clump and all others are distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laconic.look.numbers import percent
from laconic.report.features import CATEGORIES
from laconic.report.page_text import told

if TYPE_CHECKING:
    from laconic.report.features import FeatureGap

# Width and height of a histogram, in units of its SVG drawing.
WIDTH, HEIGHT = 220, 64


def plots(gaps: list[FeatureGap]) -> str:
    """Draw a plot for every feature that sets the clump apart."""
    if not gaps:
        return ""
    drawn = "".join(_plot(gap) for gap in gaps)
    return (
        '<h3>What sets its rows apart</h3><p class="key"><i class="in"></i>rows of the clump '
        '<i class="out"></i>all other rows, each in per cent of its rows</p>'
        f'<div class="plots">{drawn}</div>'
    )


def _plot(gap: FeatureGap) -> str:
    draw = _kinds if len(gap.bars) <= CATEGORIES else _histogram
    return f'<figure class="plot"><figcaption>{told(gap.sentence)}</figcaption>{draw(gap)}</figure>'


def _kinds(gap: FeatureGap) -> str:
    """Draw a bar for each category, below its whole name, and a mark for the other rows."""
    rows = "".join(
        f'<li><span class="kind">{told(what)}</span>'
        f"<span>{told(percent(here))} <small>{told(percent(there))}</small></span>"
        f'<span class="track"><i class="in" style="width:{100 * here:.1f}%"></i>'
        f'<i class="out" style="left:{100 * there:.1f}%"></i></span></li>'
        for what, here, there in gap.bars
    )
    return f'<p class="axis name">{told(gap.name)}</p><ul class="kinds">{rows}</ul>'


def _histogram(gap: FeatureGap) -> str:
    """Draw bars for the clump and a line for the other rows."""
    top = max([*(b[1] for b in gap.bars), *(b[2] for b in gap.bars), 1e-9])
    step = WIDTH / len(gap.bars)
    parts, line = [], []
    for i, (what, here, there) in enumerate(gap.bars):
        tall, other = (HEIGHT - 4) * here / top, (HEIGHT - 4) * there / top
        said = told(f"{what}: {percent(here)} of the clump, {percent(there)} elsewhere")
        parts.append(
            f'<rect class="in" x="{i * step + 1:.1f}" y="{HEIGHT - tall:.1f}" '
            f'width="{step - 2:.1f}" height="{tall:.1f}"><title>{said}</title></rect>'
        )
        line += [f"{x * step:.1f},{HEIGHT - other:.1f}" for x in (i, i + 1)]
    ends = gap.bars[0][0].split(" to ")[0], gap.bars[-1][0].split(" to ")[-1]
    ticks = "".join(f"<i>{told(end)}</i>" for end in ends)
    return (
        f'<div class="chart"><span class="axis up"><i>{told(percent(top))}</i><i>0</i></span>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told(gap.sentence)}">'
        f'{"".join(parts)}<polyline class="out" points="{" ".join(line)}"/></svg>'
        f'<span class="axis ticks">{ticks}</span><span class="axis name">{told(gap.name)}</span>'
        "</div>"
    )

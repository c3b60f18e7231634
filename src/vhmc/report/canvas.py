"""What all pictures of a page share: their style, and how they get into the page."""

import base64
import io
from typing import Any, Literal, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

INK, BLUE, ORANGE, GREEN = "#808890", "#3f8fd9", "#e07b1a", "#3a9d5d"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "vhmc",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Picture(NamedTuple):
    """An image in the page itself.

    source: as an `img` takes it.
    width: in pixels, where there is room.
    """

    source: str
    width: int


def blank(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """A figure without a background, in inches."""
    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    figure.patch.set_alpha(0.0)
    return figure


def picture(figure: Figure, *, is_painted: bool = False) -> Picture:
    """Drawn, or painted if there are thousands of points: a drawing would be large."""
    for axis in figure.axes:
        axis.patch.set_alpha(0.0)
    kind, stream = "svg+xml", io.BytesIO()
    if is_painted:
        kind, raw = "png", io.BytesIO()
        figure.savefig(raw, format="png", dpi=150)
        with Image.open(raw) as image:
            image.quantize(64).save(stream, format="png", optimize=True)
    else:
        figure.savefig(stream, format="svg", metadata={"Date": None})
    data = base64.b64encode(stream.getvalue()).decode()
    width = round(96 * figure.get_size_inches()[0])
    return Picture(f"data:image/{kind};base64,{data}", width)


def short(name: str) -> str:
    """A name as a picture can show it."""
    # Dollars would be taken for mathematics.
    name = name.replace("$", r"\$")
    return name if len(name) <= 16 else f"{name[:15]}…"

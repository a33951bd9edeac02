"""Figures as inline SVG: equal bytes for equal input, for light and dark pages.

Matplotlib's SVG is parsed and rewritten. Text stays text (it can be searched, copied and scaled). Ids are kept only if
they are referenced, and begin with the figure's prefix, so that they cannot clash. Each colour of the palette becomes a
class, whose rule belongs to the page: one drawing serves light, dark and print. Two drawings switched by a rule would
need twice the size. Styles become attributes, so that the page may forbid inline styles.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from html import escape
from io import BytesIO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tornpage.reports.palette import COLOURS, GRID, INK, MUTED
from tornpage.reports.text import visible

__all__ = ["WIDE_IN", "WIDTH_IN", "inline_svg"]

WIDTH_IN = 4.8
"""The width of figures (inches); their text can still be read on a telephone."""
WIDE_IN = 9.6
"""The width of figures with a long time axis."""

_STYLE: dict[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED.light,
    "axes.grid": True,
    "axes.labelcolor": INK.light,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": GRID.light,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.9,
    "legend.columnspacing": 1.2,
    "legend.fontsize": 8,
    "legend.handlelength": 2.2,
    "legend.labelspacing": 0.35,
    "legend.title_fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tornpage",
    "text.color": INK.light,
    "text.parse_math": False,
    "xtick.color": MUTED.light,
    "xtick.labelcolor": INK.light,
    "xtick.labelsize": 8,
    "ytick.color": MUTED.light,
    "ytick.labelcolor": INK.light,
    "ytick.labelsize": 8,
}
_NAMES = {colour.light: colour.name for colour in COLOURS}
_DROPPED_ATTRIBUTES = frozenset({"version", "width", "height", "font-family"})
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG_FRACTION = re.compile(r"-?\d+\.\d{3,}")


def inline_svg(
    draw: Callable[[Axes], object], *, prefix: str, title: str, height_in: float, width_in: float = WIDTH_IN
) -> str:
    """Return the figure that `draw` makes as an `svg` element for an HTML page.

    `prefix` begins all its ids.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Signs that the font lacks are measured wrongly here; the reader's browser has its own fonts.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)  # type: ignore[arg-type]
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        draw(figure.add_subplot())
        written = BytesIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(written.getvalue())
    referred = {name for element in root.iter() for name in _references(element)}
    ids = {name: f"{prefix}-{number}" for number, name in enumerate(sorted(referred))}
    head = {"role": "img", "aria-labelledby": f"{prefix}-title", "viewBox": root.attrib["viewBox"]}
    head |= {
        "class": "figure wide" if width_in > WIDTH_IN else "figure",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    inside = "".join(_written(child, ids) for child in root)
    return f'<svg{_attributes(head)}><title id="{prefix}-title">{escape(visible(title))}</title>{inside}</svg>'


def _references(element: Element) -> list[str]:
    values = [*element.attrib.values()]
    found = [name for value in values for name in _REFERENCE.findall(value)]
    return found + [value[1:] for name, value in element.attrib.items() if _local(name) == "href"]


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _written(element: Element, ids: Mapping[str, str]) -> str:
    """Return an element of the SVG as HTML; metadata and style elements are left out."""
    name = _local(element.tag)
    if name in ("metadata", "style"):
        return ""
    inside = "".join(_written(child, ids) for child in element)
    text = (element.text or "").strip()
    if not inside and not text and name in ("g", "defs"):
        return ""
    attributes = _attributes(_rewritten(element, ids))
    if name == "g" and not attributes:
        return inside
    return f"<{name}{attributes}>{escape(visible(text))}{inside}</{name}>"


def _rewritten(element: Element, ids: Mapping[str, str]) -> dict[str, str]:
    given = {_local(name): value for name, value in element.attrib.items()}
    for declaration in given.pop("style", "").split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            given[name.strip()] = value.strip()
    found: dict[str, str] = {}
    classes = []
    for name, value in given.items():
        if name == "id":
            if value in ids:
                found[name] = ids[value]
        elif name == "href":
            found[name] = f"#{ids[value[1:]]}"
        elif name in ("fill", "stroke") and value in _NAMES:
            classes.append(f"{name[0]}-{_NAMES[value]}")
        elif name == "transform" and value.startswith("rotate(-0 "):
            continue
        elif name not in _DROPPED_ATTRIBUTES or element.tag.endswith(("}rect", "}pattern")):
            found[name] = _short(_REFERENCE.sub(lambda match: f"url(#{ids[match[1]]})", value))
    return found | ({"class": " ".join(classes)} if classes else {})


def _short(value: str) -> str:
    """Return a value with two decimals, on one line."""
    value = _LONG_FRACTION.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
    return " ".join(value.split())


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in values.items())

"""Draw the diagrams of the mathematics page: schemes, lifting, filter bank, pyramid.

python tools/dataflow.py            writes docs/images/diagrams/*.svg
python tools/dataflow.py --check    tells whether they are up to date

Everything is drawn from the algebra: a scheme from the matrices of its stages, so any wavelet will do. In
the diagram of a scheme every multiply-accumulate is one arrow (or one ring, where a sample reads itself)
and every barrier one dashed line; ``arrows`` and ``barriers`` count them in the finished text.

    >>> svg = draw_scheme("cdf53", "monolithic")
    >>> arrows(svg), barriers(svg)
    (24, 2)

The pictures are text without identifiers, styles or backgrounds, so that several may stand in one page, and
they take lines and letters from the colour of the text around them.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import undula
from undula.schemes import Factor, Scheme

TARGET = Path(__file__).parents[1] / "docs" / "images" / "diagrams"
TEAL, ORANGE, VIOLET, GREEN = "#1098ad", "#f76707", "#7048e8", "#2f9e44"
KINDS = {"predict": TEAL, "update": ORANGE, "both": VIOLET, "filter": GREEN}
"""What a term does: low samples to high ones, high to low, both composed, or a tap of a plain filter."""
COMPONENTS = ("LL", "HL", "LH", "HH")
WIDTH = 800  # of a picture, in pixels; rows of panels are broken to fit
TITLES = {"cdf53": "CDF 5/3", "cdf97": "CDF 9/7", "dd137": "DD 13/7"}

Point = tuple[float, float]
Place = tuple[int, int]


# --- terms: what there is to draw -------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """One multiply-accumulate: ``target += weight · source``, the source ``offset`` quadruples away."""

    target: int
    source: int
    offset: Place
    weight: str
    size: float
    kind: str

    def __str__(self) -> str:
        m, n = (
            f"{letter}{value:+d}" if value else letter
            for letter, value in zip("mn", self.offset, strict=True)
        )
        source = f"{COMPONENTS[self.source]}[{m}, {n}]".replace("-", "−")
        sign = "=" if self.target == self.source and self.offset == (0, 0) else "+="
        return f"{COMPONENTS[self.target]}[m, n] {sign} {self.weight} · {source}"


def terms(factor: Factor) -> tuple[Term, ...]:
    """The terms of the matrix of a factor, except ones on the diagonal: as many as its operations."""
    return tuple(
        Term(i, j, offset, number(value), abs(float(value)), _kind(factor, i, j))
        for i, row in enumerate(factor.matrix.rows)
        for j, entry in enumerate(row)
        if not (i == j and entry.is_one)
        for offset, value in entry.items()
    )


def _kind(factor: Factor, i: int, j: int) -> str:
    """The kind of an entry, from its symbol if it has one, else from its components."""
    if factor.label == "C":
        return "filter"
    if factor.symbols:
        letters = set(factor.symbols[i][j]) & set("PUV")
        return {"P": "predict", "U": "update"}.get("".join(sorted(letters)), "both")
    rises, falls = i & ~j, j & ~i
    return "both" if bool(rises) == bool(falls) else "predict" if rises else "update"


def places(scheme: Scheme) -> tuple[Place, ...]:
    """Column and row of the four samples of quadruple (0, 0) in the image."""
    coordinates = []
    for row in scheme.before.rows:
        ((phase, entry),) = ((j, entry) for j, entry in enumerate(row) if entry)
        (((m, n), _),) = entry.items()
        coordinates.append((2 * m + phase % 2, 2 * n + phase // 2))
    return tuple(coordinates)


def number(value: object) -> str:
    """A coefficient as text, floats with four digits."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("-", "−")


# --- routes: how arrows find their way past nodes ---------------------------------------------------


@dataclass(frozen=True)
class Arrow:
    """A term on the page: a curve with one control point, or a ring (``control`` is None) around a node."""

    term: Term
    start: Point
    control: Point | None
    tip: Point
    radius: float = 0.0
    stub: bool = False

    def points(self, count: int = 40) -> list[Point]:
        """Points along the curve; none for a ring."""
        if self.control is None:
            return []
        steps = (k / count for k in range(count + 1))
        return [_bezier(self.start, self.control, self.tip, t) for t in steps]


def _bezier(a: Point, b: Point, c: Point, t: float) -> Point:
    u = 1 - t
    x, y = (u * u * p + 2 * t * u * q + t * t * r for p, q, r in zip(a, b, c, strict=True))
    return x, y


def _toward(a: Point, b: Point, length: float) -> Point:
    """The point ``length`` from ``a`` in the direction of ``b``."""
    d = math.dist(a, b) or 1.0
    return a[0] + (b[0] - a[0]) * length / d, a[1] + (b[1] - a[1]) * length / d


@dataclass(frozen=True)
class Style:
    """Sizes of a panel: distance of nodes, their radius, that of the nodes arrows lead to."""

    pitch: float = 50
    radius: float = 13
    target: float = 13
    head: float = 6.5

    @property
    def pad(self) -> float:
        """From the middle of a node to the box around its quadruple."""
        return self.pitch / 2 - 3

    @property
    def margin(self) -> float:
        """From the middle of an outer node to the edge of the panel."""
        return self.pitch / 2 + 1


PLAIN = Style()
DENSE = Style(pitch=76, radius=13, target=17, head=6)
CROWDED = Style(pitch=44, radius=13, target=13, head=5)
SPLIT_ABOVE = 16  # terms of a factor, above which each of its targets has a panel of its own
STUBS_ABOVE = 32  # terms of a target, above which only the beginnings of arrows are drawn


def route(style: Style, goal: Point, sources: dict[Term, Point], nodes: Iterable[Point]) -> list[Arrow]:
    """Arrows from the sources to one goal that pass no other node and do not end on each other.

    Where there is no way between the nodes, or where arrows are very many, only the beginning of an arrow is
    drawn: it points to where it leads.
    """
    drawn = []
    reach = style.target + 2
    for term in (term for term, point in sources.items() if point == goal):
        drawn.append(Arrow(term, goal, None, goal, style.target + 3))
        reach = style.target + 5.5
    others = {term: point for term, point in sources.items() if point != goal}
    obstacles = [point for point in nodes if point != goal]
    if len(others) > STUBS_ABOVE:
        return drawn + [_stub(style, goal, term, point) for term, point in others.items()]
    ways: dict[Term, tuple[float, float]] = {}
    for term, point in sorted(others.items(), key=lambda item: (math.dist(item[1], goal), item[1])):
        taken = [angle for angle, _ in ways.values()]
        way = _free_way(style, goal, reach, point, obstacles, taken)
        if way is None:
            drawn.append(_stub(style, goal, term, point))
        else:
            ways[term] = way
    angles = _spread({term: angle for term, (angle, _) in ways.items()}, 4.5 / reach)
    for term, (angle, bend) in ways.items():
        tries = (_bent(style, goal, reach, others[term], a, bend) for a in (angles[term], angle))
        clear = (path for path in tries if _clear(style, path, others[term], obstacles, 1.5))
        found = next(clear, None)
        drawn.append(replace(found, term=term) if found else _stub(style, goal, term, others[term]))
    return drawn


NOTHING = Term(0, 0, (0, 0), "", 0, "")


def _stub(style: Style, goal: Point, term: Term, source: Point) -> Arrow:
    start = _toward(source, goal, style.radius + 2)
    tip = _toward(start, goal, min(style.pitch - 2 * style.radius - 5, 28))
    return Arrow(term, start, _toward(start, tip, math.dist(start, tip) / 2), tip, stub=True)


def _bent(style: Style, goal: Point, reach: float, source: Point, angle: float, bend: float) -> Arrow:
    """The arrow that arrives at an angle; straight where that is where it comes from."""
    far = bend * math.dist(source, goal)
    control = (goal[0] + far * math.cos(angle), goal[1] + far * math.sin(angle))
    tip = (goal[0] + reach * math.cos(angle), goal[1] + reach * math.sin(angle))
    return Arrow(NOTHING, _toward(source, control, style.radius + 2), control, tip)


def _clear(style: Style, arrow: Arrow, source: Point, obstacles: list[Point], room: float) -> bool:
    """True if an arrow avoids all nodes except its source."""
    path = arrow.points(24)
    return all(math.dist(p, q) > style.radius + room for q in obstacles if q != source for p in path)


def _free_way(
    style: Style, goal: Point, reach: float, source: Point, obstacles: list[Point], taken: list[float]
) -> tuple[float, float] | None:
    """The angle nearest to straight, and a bend, that pass clear of nodes and of other tips."""
    straight = math.atan2(source[1] - goal[1], source[0] - goal[0])
    for bend in (0.8, 0.6, 1.0):
        for step in range(50):
            for side in (1, -1):
                angle = straight + side * math.radians(step)
                if any(abs(math.remainder(angle - other, math.tau)) < 0.1 for other in taken):
                    continue
                if _clear(style, _bent(style, goal, reach, source, angle, bend), source, obstacles, 3.5):
                    return angle, bend
    return None


def _spread(angles: dict[Term, float], least: float) -> dict[Term, float]:
    """The angles moved apart until no two are nearer than ``least``, in their order around the circle."""
    order = sorted(angles, key=lambda term: angles[term] % math.tau)
    spread, least = dict(angles), min(least, 0.97 * math.tau / max(1, len(angles)))
    for _ in range(300):
        pushes = dict.fromkeys(order, 0.0)
        for first, second in zip(order, order[1:] + order[:1], strict=True):
            gap = (spread[second] - spread[first]) % math.tau
            if first is not second and gap < least - 1e-6:
                pushes[first] -= (least - gap) / 3
                pushes[second] += (least - gap) / 3
        if not any(pushes.values()):
            break
        for term, push in pushes.items():
            spread[term] += push
    return spread


# --- panels: one factor, or one row of it -----------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """The samples around one quadruple and the arrows of one factor among them.

    ``nodes`` has the component at each place of the image, ``marked`` those that are read or changed,
    ``boxes`` the quadruples with their first and last columns and rows, the own one first.
    """

    title: str
    style: Style
    nodes: dict[Place, int]
    marked: frozenset[Place]
    changed: frozenset[Place]
    boxes: tuple[tuple[int, int, int, int], ...]
    arrows: tuple[Arrow, ...]
    columns: tuple[int, int]
    rows: tuple[int, int]

    @property
    def size(self) -> Point:
        """Width and height, without the title."""
        p, m = self.style.pitch, 2 * self.style.margin
        width, height = ((last - first) * p + m for first, last in (self.columns, self.rows))
        return width, height

    @property
    def clearance(self) -> float:
        """The smallest distance between an arrow and the rim of a node that it does not belong to."""
        p = self.style.pitch
        least = math.inf
        for arrow in self.arrows:
            path = arrow.points()
            for place in self.nodes:
                centre = (place[0] * p, place[1] * p)
                ends = math.dist(path[0], centre) < self.style.radius + 4 if path else False
                ends = ends or math.dist(arrow.tip, centre) < self.style.target + 8
                radius = self.style.target if place in self.changed else self.style.radius
                if not ends:
                    least = min([least, *(math.dist(point, centre) - radius for point in path)])
        return least


def panel(title: str, scheme: Scheme, drawn: Sequence[Term], style: Style = PLAIN) -> Panel:
    """Lay out terms around the quadruple that they change."""
    at = places(scheme)

    def place(component: int, offset: Place = (0, 0)) -> Place:
        return at[component][0] + 2 * offset[0], at[component][1] + 2 * offset[1]

    goals = {place(term.target) for term in drawn}
    read = {place(term.source, term.offset) for term in drawn}
    centre = {place(component) for component in range(4)}
    columns, rows = (
        (min(p[axis] for p in read | centre), max(p[axis] for p in read | centre)) for axis in (0, 1)
    )
    nodes = {
        (x, y): next(c for c in range(4) if (x - at[c][0]) % 2 == 0 and (y - at[c][1]) % 2 == 0)
        for y in range(rows[0], rows[1] + 1)
        for x in range(columns[0], columns[1] + 1)
    }
    points = {p: (p[0] * style.pitch, p[1] * style.pitch) for p in nodes}
    arrows: list[Arrow] = []
    for component in range(4):
        mine = [term for term in drawn if term.target == component]
        sources = {term: points[place(term.source, term.offset)] for term in mine}
        if mine:
            arrows += route(style, points[place(component)], sources, points.values())
    left, top = min(x for x, _ in centre), min(y for _, y in centre)
    boxes = [(left, top, left + 1, top + 1)]
    for y in range(top - 2 * ((top - rows[0] + 1) // 2), rows[1] + 1, 2):
        for x in range(left - 2 * ((left - columns[0] + 1) // 2), columns[1] + 1, 2):
            if (x, y) != (left, top):
                boxes.append((x, y, x + 1, y + 1))
    return Panel(
        title,
        style,
        nodes,
        frozenset(goals | read),
        frozenset(goals),
        tuple(boxes),
        tuple(arrows),
        columns,
        rows,
    )


def panels(scheme: Scheme) -> list[list[list[Panel]]]:
    """The stages of a scheme as columns, each a list of panels one above the other.

    A factor has one panel, or one for each component it changes where it has many terms; two neighbouring
    factors that stay within the quadruple share a column.
    """
    stages: list[list[list[Panel]]] = []
    for stage in scheme.stages:
        columns: list[list[Panel]] = []
        waiting = False
        for factor in stage.factors:
            factor_terms = terms(factor)
            if len(factor_terms) > SPLIT_ABOVE:
                for target in sorted({term.target for term in factor_terms}):
                    mine = [term for term in factor_terms if term.target == target]
                    style = DENSE if len(mine) <= STUBS_ABOVE else CROWDED
                    columns.append([panel(f"{factor.label} → {COMPONENTS[target]}", scheme, mine, style)])
                waiting = False
            elif factor.local and waiting:
                columns[-1].append(panel(factor.label, scheme, factor_terms))
                waiting = False
            else:
                columns.append([panel(factor.label, scheme, factor_terms)])
                waiting = factor.local
        stages.append(columns)
    return stages


# --- text: SVG, piece by piece ----------------------------------------------------------------------


def _n(value: float) -> str:
    """A coordinate: one decimal, no negative zero."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _attributes(given: dict[str, object]) -> str:
    """Attributes by keyword: ``stroke_width=2`` is ``stroke-width="2"``; None is omitted."""
    return "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_n(value) if isinstance(value, float) else value}"'
        for key, value in given.items()
        if value is not None
    )


def _line(a: Point, b: Point, **more: object) -> str:
    given: dict[str, object] = {"x1": float(a[0]), "y1": float(a[1]), "x2": float(b[0]), "y2": float(b[1])}
    return f"<line{_attributes({**given, 'stroke': 'currentColor', **more})}/>"


def _circle(centre: Point, radius: float, **more: object) -> str:
    given: dict[str, object] = {"cx": float(centre[0]), "cy": float(centre[1]), "r": float(radius)}
    return f"<circle{_attributes({**given, **more})}/>"


def _rect(x: float, y: float, width: float, height: float, **more: object) -> str:
    given: dict[str, object] = {
        "x": float(x),
        "y": float(y),
        "width": float(width),
        "height": float(height),
        "stroke": "currentColor",
    }
    return f"<rect{_attributes({**given, **more})}/>"


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 13, **more: object) -> str:
    """Text that stands on ``y``; it may hold tags, so special characters are escaped before."""
    given: dict[str, object] = {"x": float(x), "y": float(y), "font_size": size, "text_anchor": anchor}
    return f"<text{_attributes({**given, 'fill': 'currentColor', **more})}>{text}</text>"


def _label(label: str) -> str:
    """A label such as ``T^H_P₁`` with its indices raised and lowered."""
    level, text = 0, ""
    for part in re.findall(r"[\^_]?[^\^_ ]+| [^\^_]*", label):
        wanted = {"^": -6, "_": 4}.get(part[0], 0)
        size = ' font-size="13"' if wanted else ""
        text += f'<tspan dy="{wanted - level}"{size}>{_escape(part.lstrip("^_"))}</tspan>'
        level = wanted
    return text


def _head(tip: Point, back: Point, size: float, colour: str) -> str:
    """The head of an arrow that arrives at ``tip`` from ``back``."""
    base = _toward(tip, back, size)
    dx, dy = (base[0] - tip[0]) * 0.42, (base[1] - tip[1]) * 0.42
    corners = [tip, (base[0] - dy, base[1] + dx), (base[0] + dy, base[1] - dx)]
    return f'<polygon points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in corners)}" fill="{colour}"/>'


def _svg(width: float, height: float, title: str, body: Iterable[str]) -> str:
    """A complete SVG image."""
    w, h = math.ceil(width), math.ceil(height)
    shown = (w, h) if w <= WIDTH else (WIDTH, round(h * WIDTH / w))
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{shown[0]}" height="{shown[1]}"'
        f' viewBox="0 0 {w} {h}" role="img" aria-label="{_escape(title)}" font-family="inherit" fill="none"'
        f' style="max-width:100%;height:auto">\n{lines}\n</svg>\n'
    )


def _draw_arrow(arrow: Arrow, move: Point, largest: float, style: Style) -> str:
    """A term of a scheme, with its description as a tooltip."""
    colour = KINDS[arrow.term.kind]
    width = 1.1 + 1.1 * math.sqrt(arrow.term.size / largest)
    title = f"<title>{_escape(str(arrow.term))}</title>"

    def moved(point: Point) -> Point:
        return point[0] + move[0], point[1] + move[1]

    if arrow.control is None:
        ring = _circle(moved(arrow.tip), arrow.radius, stroke=colour, stroke_width=width + 0.4)
        return f'<g class="arrow">{title}{ring}</g>'
    # The shaft is the curve up to where the head begins: a part of a curve has the same kind of curve.
    path = arrow.points(100)
    cut = max(k for k, point in enumerate(path) if math.dist(point, arrow.tip) >= 0.9 * style.head)
    (a, b, c), t = (arrow.start, arrow.control, path[cut]), cut / 100
    b = (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t)
    straight = abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) < 0.5 * math.dist(a, c)
    points = [f"{_n(x)} {_n(y)}" for x, y in map(moved, (a, b, c))]
    curve = f"M{points[0]}L{points[2]}" if straight else f"M{points[0]}Q{points[1]} {points[2]}"
    shaft = f'<path d="{curve}" stroke="{colour}" stroke-width="{_n(width)}"/>'
    return f'<g class="arrow">{title}{shaft}{_head(moved(arrow.tip), moved(c), style.head, colour)}</g>'


def _draw_box(given: Panel, box: tuple[int, int, int, int], move: Point, centre: bool) -> str:
    """A quadruple: a box, open towards samples that are not shown."""
    p, pad = given.style.pitch, given.style.pad
    left, top, right, bottom = box
    x0, x1 = move[0] + left * p - pad, move[0] + right * p + pad
    y0, y1 = move[1] + top * p - pad, move[1] + bottom * p + pad
    if centre:
        return _rect(x0, y0, x1 - x0, y1 - y0, rx=9, stroke_width=1.6)
    cut = [left < given.columns[0], right > given.columns[1], top < given.rows[0], bottom > given.rows[1]]
    x0 = move[0] + given.columns[0] * p - pad - 3 if cut[0] else x0
    x1 = move[0] + given.columns[1] * p + pad + 3 if cut[1] else x1
    y0 = move[1] + given.rows[0] * p - pad - 3 if cut[2] else y0
    y1 = move[1] + given.rows[1] * p + pad + 3 if cut[3] else y1
    corners = [(x0, y0), (x0, y1), (x1, y0), (x1, y1)]
    ends = [(0, 1), (2, 3), (0, 2), (1, 3)]
    path = "".join(
        f"M{_n(corners[a][0])} {_n(corners[a][1])}L{_n(corners[b][0])} {_n(corners[b][1])}"
        for (a, b), gone in zip(ends, cut, strict=True)
        if not gone
    )
    return f'<path d="{path}" stroke="currentColor" {DOTTED}/>'


DOTTED = 'stroke-opacity="0.5" stroke-dasharray="1.5 3.5" stroke-linecap="round"'


def _draw_panel(given: Panel, move: Point, largest: float) -> list[str]:
    """A panel with the place (0, 0) at ``move``."""
    p, style = given.style.pitch, given.style
    body = [_draw_box(given, box, move, centre=not k) for k, box in enumerate(given.boxes)]
    for place, component in given.nodes.items():
        at = (move[0] + place[0] * p, move[1] + place[1] * p)
        changed, faint = place in given.changed, place not in given.marked
        if changed:
            rim: dict[str, object] = {"fill": "currentColor", "fill_opacity": "0.12", "stroke_width": 2}
        else:
            rim = {"stroke_opacity": "0.3" if faint else None}
        body.append(_circle(at, style.target if changed else style.radius, stroke="currentColor", **rim))
        weight, opacity = 600 if changed else None, "0.4" if faint else None
        name = COMPONENTS[component]
        body.append(_text(at[0], at[1] + 4.5, name, font_weight=weight, fill_opacity=opacity))
    return body + [_draw_arrow(arrow, move, largest, style) for arrow in given.arrows]


# --- pictures ---------------------------------------------------------------------------------------

TITLE, GAP, WALL = 30.0, 8.0, 20.0  # height of a panel's title; between columns; where a barrier stands


def draw_scheme(wavelet: undula.Wavelet | undula.Lifting | str, name: str) -> str:
    """A scheme: its stages from left to right, a dashed line for each barrier, an arrow for each term.

    Parameters
    ----------
    wavelet : Wavelet, Lifting or str
        What the scheme computes.
    name : str
        One of :data:`undula.SCHEMES`.

    Returns
    -------
    str
        The SVG.
    """
    scheme = undula.scheme(wavelet, name)
    stages = panels(scheme)
    everything = [given for stage in stages for column in stage for given in column]
    largest = max((arrow.term.size for given in everything for arrow in given.arrows), default=1.0)
    rows, walls, width = _rows(scheme, stages)
    body: list[str] = []
    spans: list[Point] = []
    y = 40.0
    for row in rows:
        pieces, height = _draw_row(row, y, largest)
        body += pieces
        spans.append((y, y + height))
        y += height + 14
    for x, first, last in walls:
        ends = ((x, spans[first][0]), (x, spans[last][1]))
        body.append(_line(*ends, class_="barrier", stroke_width=1.8, stroke_dasharray="7 5"))
    counts = [len(given.arrows) for given in everything]
    total = f"{' + '.join(map(str, counts))} = {sum(counts)}" if len(counts) > 1 else str(sum(counts))
    plural = "" if scheme.barriers == 1 else "s"
    caption = f" of {TITLES.get(scheme.wavelet, scheme.wavelet)}: {scheme.barriers} barrier{plural}, "
    caption = _escape(f"{caption}{total} operations")
    head = _text(2, 20, f'<tspan font-weight="700">{scheme.name}</tspan>{caption}', "start", 16)
    legend, legend_width = _legend(everything, bool(walls), y + 12)
    width = max(width + 2, legend_width, 7.8 * len(scheme.name + caption) + 8)
    label = f"Data flow of the scheme {scheme.name}{caption}"
    return _svg(width, y + 54, label, [head, *body, *legend])


Row = list[tuple[float, list[Panel]]]


def _rows(
    scheme: Scheme, stages: list[list[list[Panel]]]
) -> tuple[list[Row], list[tuple[float, int, int]], float]:
    """Columns set into rows that fit the page; the barriers (x, first and last row); the width."""
    rows: list[Row] = [[]]
    walls: list[tuple[float, int, int]] = []
    x = width = 0.0
    for stage, columns in zip(scheme.stages, stages, strict=True):
        for k, column in enumerate(columns):
            column_width = max(given.size[0] for given in column)
            lead = WALL if stage.barrier and k == 0 else GAP if rows[-1] else 0.0
            if rows[-1] and x + lead + column_width > WIDTH:
                rows.append([])
                x, lead = 0.0, WALL if stage.barrier else 0.0
            if stage.barrier and k == 0:
                walls.append((x + WALL / 2, len(rows) - 1, len(rows) - 1))
            elif stage.barrier and walls[-1][0] == WALL / 2:
                walls[-1] = (*walls[-1][:2], len(rows) - 1)  # a stage of several rows
            rows[-1].append((x + lead, column))
            x += lead + column_width
            width = max(width, x)
    return rows, walls, width


def _draw_row(row: Row, y: float, largest: float) -> tuple[list[str], float]:
    """The panels of a row below ``y``, and its height; the central quadruples are aligned."""
    single = [column[0] for _, column in row if len(column) == 1] or [row[0][1][0]]
    first, last = min(g.rows[0] for g in single), max(g.rows[1] for g in single)
    style = single[0].style
    inner = (last - first) * style.pitch + 2 * style.margin
    height = max(TITLE + inner, *(sum(g.size[1] + TITLE for g in column) for _, column in row))
    body: list[str] = []
    for left, column in row:
        tall = sum(g.size[1] + TITLE for g in column)
        top = y if len(column) == 1 else y + (height - tall) / 2
        for given in column:
            p, margin = given.style.pitch, given.style.margin
            head = top + TITLE
            above = given.rows[0]
            if len(column) == 1:
                head, above = y + TITLE + (height - TITLE - inner) / 2, first
            move = (left + margin - given.columns[0] * p, head + margin - above * p)
            body.append(_text(left + given.size[0] / 2, top + 16, _label(given.title), size=16))
            body += _draw_panel(given, move, largest)
            top += given.size[1] + TITLE
    return body, height


def _legend(drawn: Sequence[Panel], walls: bool, y: float) -> tuple[list[str], float]:
    """The legend of colours and lines, in two lines, and its width."""
    drawn_arrows = [arrow for given in drawn for arrow in given.arrows]
    words = {
        "predict": "predict: low to high",
        "update": "update: high to low",
        "both": "both in one",
        "filter": "tap of a filter",
    }
    body: list[str] = []
    x = 2.0
    for kind in (kind for kind in KINDS if any(arrow.term.kind == kind for arrow in drawn_arrows)):
        body.append(_line((x, y), (x + 20, y), stroke=KINDS[kind], stroke_width=2))
        body.append(_head((x + 27, y), (x, y), 8, KINDS[kind]))
        body.append(_text(x + 34, y + 4.5, words[kind], "start"))
        x += 50 + 7.2 * len(words[kind])
    rings = [arrow for arrow in drawn_arrows if arrow.control is None]
    if rings:
        body.append(_circle((x + 9, y), 8, stroke=KINDS[rings[0].term.kind], stroke_width=2))
        body.append(_text(x + 25, y + 4.5, "the sample itself", "start"))
        x += 41 + 7.2 * 17
    if any(arrow.stub for arrow in drawn_arrows):
        body.append(_text(x, y + 4.5, "a short arrow points to where it leads", "start"))
        x += 7.2 * 38
    width, x, y = x, 2.0, y + 26
    body.append(_rect(x, y - 8, 20, 16, rx=4, stroke_width=1.6))
    body.append(_text(x + 27, y + 4.5, "own quadruple", "start"))
    body.append(f'<path d="M{_n(x + 140)} {_n(y - 8)}h20v16h-20z" stroke="currentColor" {DOTTED}/>')
    body.append(_text(x + 167, y + 4.5, "neighbours", "start"))
    if walls:
        body.append(_line((x + 264, y - 9), (x + 264, y + 9), stroke_width=1.8, stroke_dasharray="5 3"))
        body.append(_text(x + 275, y + 4.5, "barrier", "start"))
    return body, max(width, x + 330)


def draw_lifting(wavelet: undula.Wavelet | str, samples: int = 9) -> str:
    """Lifting of a line, sample by sample: the line on top, one row below for each step.

    Parameters
    ----------
    wavelet : Wavelet or str
        Whose steps to draw.
    samples : int
        How many samples of the line.

    Returns
    -------
    str
        The SVG.
    """
    lifting = undula.lifting(wavelet)
    pitch, drop, radius, left, top = 71.0, 92.0, 15.0, 180.0, 34.0
    low, high = lifting.places
    edges = (left - 30, left + (samples - 1) * pitch + 30)
    body: list[str] = []
    names = [str(place) for place in range(samples)]
    colours: dict[int, str] = {}

    def point(place: int, row: int) -> Point:
        return left + place * pitch, top + row * drop

    def nodes(row: int) -> None:
        for place in range(samples):
            x, y = point(place, row)
            colour = colours.get(place)
            tint: dict[str, object] = {"stroke": colour or "currentColor"}
            if colour:
                tint |= {"fill": colour, "fill_opacity": "0.2", "stroke_width": 1.8}
            body.append(_circle((x, y), radius, **tint))
            body.append(_text(x, y + 5, names[place], size=14))

    nodes(0)
    for row, step in enumerate(lifting.steps, 1):
        colour = KINDS[step.kind]
        to, of = (high, low) if step.is_predict else (low, high)
        y = top + (row - 0.5) * drop
        body.append(_text(2, y - 4, step.kind, "start", 16, fill=colour, font_weight=600))
        body.append(_text(2, y + 15, f"changes {'odd' if to % 2 else 'even'} samples", "start"))
        for place in range(samples):
            (x, above), (_, below) = point(place, row - 1), point(place, row)
            line = _line((x, above + radius + 3), (x, below - radius - 3))
            body.append(line.replace("/>", f" {DOTTED}/>"))
            if (place - to) % 2:
                continue
            names[place], colours[place] = "H" if step.is_predict else "L", colour
            for exponent, value in step.filter.items():
                source = place + of - to + 2 * exponent
                shown = len(step.filter) <= 2 and 0 <= source < samples
                goal = point(place, row)
                body += _flow(point(source, row - 1), goal, edges, radius, colour, number(value) * shown)
        nodes(row)
    y = top + len(lifting.steps) * drop
    body.append(_text(2, top + 5, "samples", "start", 16, font_weight=600))
    body.append(_text(2, y + 5, "bands", "start", 16, font_weight=600))
    scale = [number(value) for value in lifting.scaling]
    words = f"then L times {scale[0]}, H times {scale[1]}; dotted: carried on as it is"
    body.append(_text(left - radius, y + 46, words, "start"))
    label = f"Lifting steps of {_name(wavelet)} on a line of samples"
    return _svg(edges[1] + 4, y + 58, label, body)


def _name(wavelet: undula.Wavelet | str) -> str:
    name = wavelet if isinstance(wavelet, str) else wavelet.name
    return TITLES.get(name, name)


def _flow(a: Point, b: Point, edges: Point, radius: float, colour: str, weight: str) -> list[str]:
    """An arrow down from one row to the next, truncated if it starts beyond the samples shown."""
    start, tip = _toward(a, b, radius + 3), _toward(b, a, radius + 3)
    cut = min(max(start[0], edges[0]), edges[1])
    dashes = None if cut == start[0] else "4 4"
    if dashes:
        start = (cut, start[1] + (cut - start[0]) * (tip[1] - start[1]) / (tip[0] - start[0]))
    parts = [
        _line(start, _toward(tip, start, 6), stroke=colour, stroke_width=1.8, stroke_dasharray=dashes),
        _head(tip, start, 8, colour),
    ]
    if weight:
        x, y = start[0] + 0.68 * (tip[0] - start[0]), start[1] + 0.27 * (tip[1] - start[1])
        parts.append(_text(x, y + 2, weight, fill=colour))
    return parts


def draw_ladder(wavelet: undula.Wavelet | str) -> str:
    """Lifting as two rails, low samples above and high ones below, forward and back.

    Parameters
    ----------
    wavelet : Wavelet or str
        Whose steps to draw.

    Returns
    -------
    str
        The SVG.
    """
    lifting = undula.lifting(wavelet)
    steps, letters = lifting.steps, _numbered(lifting.steps)
    scales = [(number(value), number(1 / value)) for value in lifting.scaling]
    wide = max(46, *(9 * len(text) + 12 for pair in scales for text in pair))
    upper, lower, pitch = 74.0, 204.0, 80.0 if len(steps) <= 2 else 58.0
    middle, begin = (upper + lower) / 2, 62.0
    forward = [begin + 60 + k * pitch for k in range(len(steps))]
    scale_at = begin + 60 + len(steps) * pitch
    band = scale_at + wide / 2 + 48
    unscale_at = band + wide / 2 + 48
    back = [unscale_at + (k + 1) * pitch for k in range(len(steps))]
    end = unscale_at + len(steps) * pitch + 60
    body: list[str] = []

    def block(x: float, y: float, text: str, colour: str = "currentColor", width: float = 38) -> None:
        fill = {"stroke": colour, "stroke_width": 1.6, "fill": colour, "fill_opacity": "0.1"}
        body.append(_rect(x - width / 2, y - 15, width, 30, rx=6, **fill))
        body.append(_text(x, y + 5, text, size=15))

    def rung(x: float, kind: str, text: str, sign: str) -> None:
        pen: dict[str, object] = {"stroke": KINDS[kind], "stroke_width": 1.8}
        source, goal = (upper, lower) if kind == "predict" else (lower, upper)
        way = 1 if goal > source else -1
        body.append(_line((x, source), (x, middle - way * 15), **pen))
        body.append(_line((x, middle + way * 15), (x, goal - way * 17), **pen))
        body.append(_head((x, goal - way * 11), (x, source), 9, KINDS[kind]))
        body.append(_circle((x, source), 3.2, fill=KINDS[kind]))
        body.append(_circle((x, goal), 10, **pen))
        body.append(_line((x - 5, goal), (x + 5, goal), **pen))
        if sign == "+":
            body.append(_line((x, goal - 5), (x, goal + 5), **pen))
        block(x, middle, text, KINDS[kind])

    def rail(y: float, start: float, stops: list[Point], stop: float) -> None:
        """A line that leaves out circles and boxes: their places and half their widths."""
        for x, room in stops:
            body.append(_line((start, y), (x - room, y), stroke_width=1.5))
            start = x + room
        body.append(_line((start, y), (stop, y), stroke_width=1.5))

    for row, y in enumerate((upper, lower)):
        kind = "predict" if row else "update"
        met = [(x, 10.0) for x, step in zip(forward, steps, strict=True) if step.kind == kind]
        rail(y, begin, [*met, (scale_at, wide / 2)], band - 16)
        met = [(x, 10.0) for x, step in zip(back, reversed(steps), strict=True) if step.kind == kind]
        rail(y, band + 16, [(unscale_at, wide / 2), *met], end)
        block(scale_at, y, scales[row][0], width=wide)
        block(unscale_at, y, scales[row][1], width=wide)
        body.append(_circle((band, y), 15, stroke="currentColor", stroke_width=1.6))
        body.append(_text(band, y + 5, "LH"[row], size=15, font_weight=600))
        name = "odd" if lifting.places[row] % 2 else "even"
        beside = y + 24 if row else y - 14
        body += [_text(begin, beside, name, "start"), _text(end, beside, name, "end")]
    for x, step, letter in zip(forward, steps, letters, strict=True):
        rung(x, step.kind, letter, "+")
    for x, step, letter in zip(back, reversed(steps), reversed(letters), strict=True):
        rung(x, step.kind, letter, "−")
    for x, way in ((begin, 1), (end, -1)):
        fork = (x - way * 22, middle)
        body += [_line((x, y), fork, stroke_width=1.5) for y in (upper, lower)]
        body.append(_circle(fork, 3.2, fill="currentColor"))
        body.append(_text(x - way * 38, middle + 5, "x", size=17, font_style="italic"))
    titles = ((begin + scale_at) / 2, "forward"), ((unscale_at + end) / 2, "back: the same, last step first")
    body += [_text(x, 24, text, size=16, font_weight=600) for x, text in titles]
    label = f"Lifting of {_name(wavelet)}: two rails with predict and update steps, forward and back"
    return _svg(end + 62, lower + 36, label, body)


def _numbered(steps: Sequence[undula.LiftingStep]) -> list[str]:
    """P and U, with numbers where there are several."""
    letters = ["P" if step.is_predict else "U" for step in steps]
    if len(steps) <= 2:
        return letters
    return [f"{letter}{letters[:k].count(letter) + 1}".translate(LOWERED) for k, letter in enumerate(letters)]


LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def draw_filters() -> str:
    """The filter bank: two filters with downsampling, and the synthesis."""
    upper, lower, left = 56.0, 156.0, 62.0
    middle = (upper + lower) / 2
    total = left + 560
    body: list[str] = []

    def box(x: float, y: float, text: str, colour: str) -> None:
        fill = {"stroke": colour, "stroke_width": 1.6, "fill": colour, "fill_opacity": "0.1"}
        body.append(_rect(x, y - 18, 84, 36, rx=7, **fill))
        body.append(_text(x + 42, y + 5, text, size=14))

    def pipe(a: Point, b: Point, head: bool = True) -> None:
        body.append(_line(a, _toward(b, a, 6) if head else b, stroke_width=1.5))
        if head:
            body.append(_head(b, a, 8, "currentColor"))

    def disc(x: float, y: float, text: str) -> None:
        body.append(_circle((x, y), 17, stroke="currentColor", stroke_width=1.5))
        body.append(_text(x, y + 5, text, size=14))

    body.append(_text(left - 34, middle + 5, "x", size=17, font_style="italic"))
    pipe((left - 22, middle), (left, middle), head=False)
    for y, name, colour, band in ((upper, "lo", ORANGE, "L"), (lower, "hi", TEAL, "H")):
        pipe((left, middle), (left, y), head=False)
        pipe((left, y), (left + 34, y))
        box(left + 34, y, f"dec_{name}", colour)
        pipe((left + 118, y), (left + 156, y))
        disc(left + 173, y, "↓2")
        pipe((left + 190, y), (left + 262, y))
        body.append(_text(left + 278, y + 6, band, size=17, font_weight=600))
        pipe((left + 294, y), (left + 366, y))
        disc(left + 383, y, "↑2")
        pipe((left + 400, y), (left + 438, y))
        box(left + 438, y, f"rec_{name}", colour)
        pipe((left + 522, y), (total, y), head=False)
        pipe((total, y), (total, middle + (-11 if y < middle else 11)))
    body.append(_circle((total, middle), 10, stroke="currentColor", stroke_width=1.6))
    body.append(_line((total - 5, middle), (total + 5, middle), stroke_width=1.6))
    body.append(_line((total, middle - 5), (total, middle + 5), stroke_width=1.6))
    pipe((total + 10, middle), (total + 46, middle))
    body.append(_text(total + 60, middle + 5, "x", size=17, font_style="italic"))
    for x, text in ((left + 112, "analysis"), (left + 444, "synthesis")):
        body.append(_text(x, 22, text, size=16, font_weight=600))
    label = "A filter bank: two filters, every other number left out, and the way back"
    return _svg(total + 76, lower + 30, label, body)


def signal() -> list[int]:
    """The line of ``draw_split``: a smooth curve with one edge, in integers."""
    curve = [40 + 34 * math.sin(k / 9.0) + 0.35 * k for k in range(64)]
    return [round(value) + (44 if k >= 41 else 0) for k, value in enumerate(curve)]


def draw_split(wavelet: undula.Wavelet | str = "cdf53") -> str:
    """A line of 64 samples and its low and high halves, in integers, to one scale.

    Parameters
    ----------
    wavelet : Wavelet or str
        Whose transform to draw.

    Returns
    -------
    str
        The SVG.
    """
    line = signal()
    low, high = (band.tolist() for band in undula.lwt(line, wavelet, backend="reference"))
    pitch, right = 11.0, 4 + 34.5 * 11
    body: list[str] = []

    def plot(values: Sequence[int], x: float, y: float, colour: str) -> None:
        body.append(_line((x, y), (x + pitch * (len(values) - 1), y), stroke_opacity="0.35"))
        for k, value in enumerate(values):
            foot, top = (x + k * pitch, y), (x + k * pitch, y - 1.05 * value)
            body.extend([_line(foot, top, stroke=colour, stroke_width=2.2)] if value else [])
            body.append(_circle(top, 2.8, fill=colour))

    plot(line, 8, 156, "currentColor")
    plot(low, 8, 344, ORANGE)
    plot(high, right + 4, 344, TEAL)
    body.append(_text(4, 18, "a line: 64 samples", "start", 16, font_weight=600))
    body.append(_text(4, 198, "low: 32 numbers, the line at half its length", "start", 15))
    body.append(_text(right, 198, "high: 32 numbers, small but for the edge", "start", 15))
    label = "A line, its low half that looks like it, and its high half that is nearly zero"
    return _svg(right + 32 * pitch, 354, label, body)


def draw_pyramid(levels: int = 3) -> str:
    """Where the bands of several levels lie when they are put together as one image.

    Parameters
    ----------
    levels : int
        How many levels.

    Returns
    -------
    str
        The SVG.
    """
    size, edge = 384.0, 4.0
    tints = {"LL": GREEN, "HL": TEAL, "LH": ORANGE, "HH": VIOLET}
    words = {
        "LL": ("low both ways: the picture, small", f"cA, of level {levels} alone"),
        "HL": ("high along a row: upright edges", "cV of each level"),
        "LH": ("high down a column: level edges", "cH of each level"),
        "HH": ("high both ways: corners, slants", "cD of each level"),
    }
    body: list[str] = []

    def square(x: float, y: float, side: float, name: str, level: int) -> None:
        tint = {"fill": tints[name], "fill_opacity": f"{0.1 + 0.07 * level:.2f}", "stroke_width": 1.2}
        body.append(_rect(x, y, side, side, **tint))
        font = 18 if side > 150 else 16 if side > 80 else 14
        text = f"{name}{level}".translate(LOWERED)
        body.append(_text(x + side / 2, y + side / 2 + 0.35 * font, text, size=font))

    side = size
    for level in range(1, levels + 1):
        side /= 2
        square(edge + side, edge, side, "HL", level)
        square(edge, edge + side, side, "LH", level)
        square(edge + side, edge + side, side, "HH", level)
    square(edge, edge, side, "LL", levels)
    x = edge + size + 34
    for k, (name, (what, key)) in enumerate(words.items()):
        y = edge + 60 + k * 88
        tint = {"fill": tints[name], "fill_opacity": "0.24", "stroke_width": 1.2}
        body.append(_rect(x, y - 18, 36, 36, rx=5, **tint))
        body.append(_text(x + 18, y + 5, name, size=14))
        body.append(_text(x + 50, y - 3, what, "start", 15))
        body.append(_text(x + 50, y + 17, key, "start", 14, fill_opacity="0.75"))
    label = f"The bands of {levels} levels, each a quarter of the one before"
    return _svg(x + 312, 2 * edge + size, label, body)


# --- counting and writing ---------------------------------------------------------------------------


def arrows(svg: str) -> int:
    """The number of terms (arrows and rings) in the diagram of a scheme: ``Scheme.operations``."""
    return svg.count('class="arrow"')


def barriers(svg: str) -> int:
    """The number of barriers in the diagram of a scheme: ``Scheme.barriers``."""
    return svg.count('class="barrier"')


def clearance(wavelet: undula.Wavelet | undula.Lifting | str, name: str) -> float:
    """The smallest gap between an arrow and a node that it passes, in pixels; negative if it is hidden."""
    stages = panels(undula.scheme(wavelet, name))
    return min(
        (given.clearance for stage in stages for column in stage for given in column), default=math.inf
    )


def file_name(name: str) -> str:
    """The file name of the diagram of a scheme, such as ``monolithic-star.svg``."""
    return f"{name.replace('*', '-star')}.svg"


def pictures() -> dict[str, str]:
    """All diagrams of the page: file name → SVG."""
    return {
        "split.svg": draw_split("cdf53"),
        "filters.svg": draw_filters(),
        "lifting.svg": draw_lifting("cdf53"),
        "ladder.svg": draw_ladder("cdf53"),
        "pyramid.svg": draw_pyramid(3),
        **{file_name(name): draw_scheme("cdf53", name) for name in undula.SCHEMES},
    }


def main() -> int:
    """Write the diagrams, or compare them with the existing files."""
    diagrams = pictures()
    if "--check" in sys.argv[1:]:
        there = {name: TARGET / name for name in diagrams if (TARGET / name).is_file()}
        stale = [
            name for name in diagrams if name not in there or there[name].read_text("utf-8") != diagrams[name]
        ]
        for name in stale:
            print(f"{name} is out of date: run python tools/dataflow.py")
        return int(bool(stale))
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in diagrams.items():
        (TARGET / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(diagrams)} diagrams in {TARGET}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

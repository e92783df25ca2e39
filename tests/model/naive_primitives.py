"""Primitives as their definitions say: one row, one column and one number at a time."""

import math

import numpy as np
from scipy import sparse

from laconic.model.balls import Balls, Heights
from laconic.model.hinges import Hinge
from laconic.model.primitives import Compare, Filled, Gather, LookUp, Multiply
from laconic.model.route import Route
from laconic.model.rules import Both
from laconic.model.windows import WindowMaximum


def naive(primitives, X):
    """Return the columns of a list of primitives in float64, by loops."""
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    width = sum(primitive.n_columns for primitive in primitives)
    found = [one_row(primitives, [float(v) for v in row]) for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), width)


def one_row(primitives, x):
    out = []
    for primitive in primitives:
        out += OF[type(primitive)](primitive, x)
    return out


def gather(p, x):
    return [x[f] for f in p.feature]


def filled(p, x):
    return [v if math.isnan(x[f]) else x[f] for f, v in zip(p.feature, p.value, strict=True)]


def compare(p, x):
    out = []
    for f, value, test in zip(p.feature, p.value, p.test, strict=True):
        out.append(float((x[f] <= value, x[f] == value, math.isnan(x[f]))[test]))
    return out


def both(p, x):
    out = []
    for i, v, s, j, w, t in zip(*(getattr(p, name) for name in p.fields), strict=True):
        held = [
            (a <= b, a == b, math.isnan(a), a > b)[test]
            for a, b, test in ((x[i], v, s), (x[j], w, t))
        ]
        out.append(float(all(held)))
    return out


def multiply(p, x):
    return [x[i] * x[j] for i, j in zip(p.first, p.second, strict=True)]


def hinge(p, x):
    out, at = [], 0
    for length, knot in zip(p.length, p.knot, strict=True):
        value = 0.0
        for t in range(at, at + length):
            value += float(p.value[t]) * x[p.feature[t]]
        out.append(0.0 if value - knot < 0 else value - knot)
        at += length
    return out


def look_up(p, x):
    out = []
    for f, line in zip(p.feature, p.table, strict=True):
        known = math.isfinite(x[f]) and x[f] == int(x[f]) and 0 <= x[f] < len(line)
        out.append(line[int(x[f])] if known else 0.0)
    return out


def balls(p, x):
    out = []
    for j, (centre, radius) in enumerate(zip(p.centre, p.radius, strict=True)):
        squared = sum((v - c) ** 2 for v, c in zip(x, centre, strict=True))
        origin = p.origin[j] if len(p.origin) > 1 else p.origin[0]
        height = float(squared < radius**2)
        if p.soft and height:
            height = 1.0 - squared / radius**2
        out += [height * (v - o) for v, o in zip(x, origin, strict=True)] + [height]
    return out


def bumps(p, x):
    out = []
    for centre, radius in zip(p.centre, p.radius, strict=True):
        squared = sum((v - c) ** 2 for v, c in zip(x, centre, strict=True))
        out.append(max(0.0, 1.0 - squared / radius**2))
    return out


def window_maximum(p, x):
    height, width = p.shape
    image = np.array(x).reshape(height, width)
    ends = np.cumsum([0, *(size**2 for size in p.size)])
    out = []
    for t, (row, column), sigma in zip(p.template, p.centre, p.sigma, strict=True):
        size = p.size[t]
        template = p.values[ends[t] : ends[t + 1]].reshape(size, size).astype(float)
        largest = 0.0
        for top in range(height - size + 1):
            for left in range(width - size + 1):
                middle = (size - 1) / 2
                squared = (top + middle - row) ** 2 + (left + middle - column) ** 2
                if squared <= (2.0 * sigma) ** 2:
                    response = (template * image[top : top + size, left : left + size]).sum()
                    largest = max(largest, math.exp(-squared / (2.0 * sigma**2)) * response)
        out.append(largest)
    return out


def route(p, x):
    region = 0
    for j, (centre, radius) in enumerate(zip(p.centre, p.radius, strict=True), start=1):
        if sum((v - c) ** 2 for v, c in zip(x, centre, strict=True)) <= radius**2:
            region = j
    out = []
    for j, part in enumerate(p.parts):
        width = sum(primitive.n_columns for primitive in part)
        out += [*one_row(part, x), 1.0] if j == region else [0.0] * (width + 1)
    return out


OF = {
    Gather: gather,
    Filled: filled,
    Compare: compare,
    Both: both,
    Multiply: multiply,
    Hinge: hinge,
    LookUp: look_up,
    Balls: balls,
    Heights: bumps,
    WindowMaximum: window_maximum,
    Route: route,
}

"""Integer programs as C computes them: one row, one atom and one whole number at a time.

Every number is compared with the bound that is proven for it, and with the C type that holds it.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from laconic.model.integers import FALL_BITS, HEIGHT_BITS, MASK_BITS
from laconic.model.proof import bounds


def fixed(x, shift):
    """Return x · 2^shift, rounded half away from zero. It saturates at 2^30.

    Infinity counts as 2^128, and NaN as 1.5 times that.
    """
    size, most = 1.5 * 2.0**128 if math.isnan(x) else min(abs(float(x)), 2.0**128), 1 << 30
    if size < 2.0**-126:  # subnormal
        return 0
    found = most
    if size < math.ldexp(most, -shift):
        found = math.floor(Fraction(size) * Fraction(2) ** shift + Fraction(1, 2))
    return int(math.copysign(found, x))


def rescaled(value, bits):
    """Return value / 2^bits, rounded half away from zero. Only positive numbers are shifted."""
    half = (1 << bits) >> 1
    return -down(half - value, bits) if value < 0 else down(value + half, bits)


def down(value, bits):
    """Return value / 2^bits, rounded down. C leaves open what that is below zero."""
    assert value >= 0
    return value >> bits


class Naive:
    """An integer program, evaluated by loops over Python's own integers.

    ``largest`` holds the largest size of every kind of number that was met.
    """

    def __init__(self, integers):
        self.integers, self.inputs, self.program = integers, integers.inputs, integers.program
        self.largest = {}
        self.bounds = {}
        proven = bounds(self.program, self.inputs, integers.bits, integers.accumulator)
        for bound in proven:
            assert bound.fits, str(bound)
            self.bounds[bound.what] = max(bound.largest, self.bounds.get(bound.what, 0))
        self.tables = [
            {name: table.tolist() for name, table in segment.tables.items()}
            for segment in self.program.segments
        ]

    def scores(self, rows):
        """Return the scores of rows of what the device hands over, (n_rows, n_features)."""
        return np.array([self.row_scores(self.codes(row)) for row in rows], dtype=np.int64)

    # -- checks --------------------------------------------------------------------------------

    def fits(self, value, kind):
        """Return a number that must fit a C type."""
        limits = np.iinfo(kind)
        assert limits.min <= value <= limits.max, f"{value} does not fit {kind}"
        return value

    def proven(self, what, value, kind):
        """Return a number that must keep to its bound and fit a C type."""
        size = abs(value)
        assert size <= self.bounds[what], f"{what} {value} is beyond {self.bounds[what]}"
        self.largest[what] = max(self.largest.get(what, 0), size)
        return self.fits(value, kind)

    def score(self, value):
        return self.proven("score", value, f"int{self.integers.accumulator}")

    def weight(self, value):
        return self.fits(value, f"int{self.integers.bits}")

    # -- inputs --------------------------------------------------------------------------------

    def codes(self, row):
        """Return the codes of the features that are read."""
        inputs = self.inputs
        out = []
        for place, feature in enumerate(inputs.features.tolist()):
            low, high = int(inputs.low[place]), int(inputs.high[place])
            if inputs.given == "float":
                code = self.scaled(row[feature], place, low, high)
            elif inputs.missing is not None and row[feature] == inputs.missing:
                code = inputs.missing
            else:
                code = min(max(int(row[feature]), low), high)
            out.append(self.fits(code, inputs.dtype.name))
        return out

    def scaled(self, given, place, low, high):
        if math.isnan(given) and self.inputs.missing is not None:
            return self.inputs.missing
        whole = fixed(given, int(self.inputs.shift[place]))
        steps = self.fits(whole - int(self.inputs.base[place]), "int32")
        return low + min(max(steps, 0), high - low)

    # -- scores --------------------------------------------------------------------------------

    def row_scores(self, q):
        leaf = self.leaf(q)
        scores = [self.score(b) for b in self.program.bias[leaf].tolist()]
        for segment, tables in zip(self.program.segments, self.tables, strict=True):
            for j in range(segment.starts[leaf], segment.starts[leaf + 1]):
                getattr(self, segment.kind)(segment, tables, j, q, scores)
        return scores

    def leaf(self, q):
        routing, place = self.program.routing, 0
        if routing is None:
            return 0
        while place >= 0:
            target = int(routing.outside[place])
            for hole in range(routing.first[place], routing.first[place + 1]):
                limit = self.fits(int(routing.limit[hole]), f"int{self.integers.distance}")
                if self.squared(q, routing.centre[hole].tolist()) <= limit:
                    target = int(routing.inside[hole])
            place = target
        return -1 - place

    def squared(self, q, centre):
        kind, total = f"int{self.integers.distance}", 0
        for code, c in zip(q, centre, strict=True):
            gap = self.fits(code - c, kind)
            total = self.proven("squared distance", total + gap * gap, kind)
        return total

    def add(self, segment, tables, j, value, scores, kind):
        """Add weight times value. With powers of two, the value gets its own first."""
        self.fits(value, kind)
        if any(tables["shift"]):
            value = self.fits(value << tables["shift"][j], f"int{self.integers.accumulator}")
        for c, weight in enumerate(segment.weights[j].tolist()):
            scores[c] = self.score(scores[c] + self.score(self.weight(weight) * value))

    def add_if(self, segment, tables, j, yes, scores):
        if yes:
            for c, weight in enumerate(segment.weights[j].tolist()):
                scores[c] = self.score(scores[c] + (self.weight(weight) << tables["shift"][j]))

    # -- kinds ---------------------------------------------------------------------------------

    def gather(self, segment, tables, j, q, scores):
        self.add(segment, tables, j, q[tables["feature"][j]], scores, "int16")

    def filled(self, segment, tables, j, q, scores):
        code, fill = q[tables["feature"][j]], self.fits(tables["value"][j], "int32")
        value = fill if code == self.inputs.missing else code
        self.add(segment, tables, j, value, scores, "int32")

    def multiply(self, segment, tables, j, q, scores):
        factors = [
            q[tables[name][j]] - int(self.inputs.zero[tables[name][j]])
            for name in ("first", "second")
        ]
        product, bits = self.fits(factors[0] * factors[1], "int32"), tables["rescale"][j]
        self.proven("product of two inputs", abs(product) + ((1 << bits) >> 1), "int32")
        kind = "uint16" if self.inputs.given == "uint8" else "int16"
        value = self.proven("rescaled product", rescaled(product, bits), kind)
        self.add(segment, tables, j, value, scores, kind)

    def at_most(self, segment, tables, j, q, scores):
        value = self.fits(tables["value"][j], self.inputs.dtype.name)
        self.add_if(segment, tables, j, q[tables["feature"][j]] <= value, scores)

    def equals(self, segment, tables, j, q, scores):
        value = self.fits(tables["value"][j], self.inputs.dtype.name)
        self.add_if(segment, tables, j, q[tables["feature"][j]] == value, scores)

    def rules(self, segment, tables, j, q, scores):
        held = True
        for side in ("first", "second"):
            value = self.fits(tables[f"{side}_value"][j], self.inputs.dtype.name)
            code, test = q[tables[side][j]], tables[f"{side}_test"][j]
            above = code >= value and code != self.inputs.missing
            held = held and {0: code <= value, 1: code == value, 3: above}[test]
        self.add_if(segment, tables, j, held, scores)

    def hinge(self, segment, tables, j, q, scores):
        first, above = sum(tables["length"][:j]), 0
        for t in range(first, first + tables["length"][j]):
            term = self.weight(tables["value"][t]) * q[tables["feature"][t]]
            above = self.fits(above + self.fits(term, "int32"), "int32")
        above = self.proven("projection on a direction", above - tables["knot"][j], "int32")
        value = self.proven("rescaled hinge", down(max(above, 0), tables["rescale"][j]), "int16")
        self.add(segment, tables, j, value, scores, "int16")

    def look_up(self, segment, tables, j, q, scores):
        place = tables["feature"][j]
        code, first = q[place] - int(self.inputs.zero[place]), sum(tables["length"][:j])
        known = 0 <= code < tables["length"][j]
        value = self.weight(tables["value"][first + code]) if known else 0
        self.add(segment, tables, j, value, scores, "int32")

    def balls(self, segment, tables, j, q, scores):
        limit = self.fits(tables["limit"][j], f"int{self.integers.distance}")
        square = self.squared(q, tables["centre"][j])
        if square > limit:
            return
        height, bits = 1, 0
        if segment.kind == "soft_balls":
            gap = self.fits(down(limit - square, tables["drop"][j]), "int32")
            steps = self.proven("height", gap * self.fits(tables["fall"][j], "int32"), "int32")
            height, bits = down(steps, FALL_BITS), HEIGHT_BITS[self.integers.bits]
        for c, linear in enumerate(self.linear(segment, j, q)):
            if segment.kind == "soft_balls":
                self.score(abs(linear) + ((1 << bits) >> 1))
                linear = self.score(rescaled(linear, bits) * height)
            scores[c] = self.score(scores[c] + self.score(linear << tables["shift"][j]))

    soft_balls = balls

    def bumps(self, segment, tables, j, q, scores):
        limit = self.fits(tables["limit"][j], f"int{self.integers.distance}")
        square = self.squared(q, tables["centre"][j])
        if square <= limit:
            gap = self.fits(down(limit - square, tables["drop"][j]), "int32")
            steps = self.proven("height", gap * self.fits(tables["fall"][j], "int32"), "int32")
            self.add(segment, tables, j, down(steps, FALL_BITS), scores, "int32")

    def linear(self, segment, j, q):
        """Return the linear function of a ball for every score."""
        *slopes, out = segment.weights[j].tolist()
        for code, of_feature in zip(q, slopes, strict=True):
            out = [
                self.score(t + self.score(self.weight(w) * code))
                for t, w in zip(out, of_feature, strict=True)
            ]
        return out

    def windows(self, segment, tables, j, q, scores):
        width, (t, m) = tables["shape"][1], (tables["template"][j], tables["mask"][j])
        size, zero = tables["size"][t], int(self.inputs.zero[0])
        pixel = tables["pixel"][sum(n * n for n in tables["size"][:t]) :]
        spans = list(zip(tables["rows"], tables["columns"], strict=True))
        mask, best = tables["weight"][sum(a * b for a, b in spans[:m]) :], 0
        for place, (y, x) in enumerate(itertools.product(*map(range, spans[m]))):
            response, weight = 0, self.fits(mask[place], "uint8")
            if weight == 0:
                continue
            for dy, dx in itertools.product(range(size), repeat=2):
                row, column = tables["top"][j] + y + dy, tables["left"][j] + x + dx
                given = self.proven("pixel", q[row * width + column] - zero, "int16")
                term = self.weight(pixel[dy * size + dx]) * given
                response = self.proven("response of a template", response + term, "int32")
            kept = down(max(response, 0), tables["down"][0])
            kept = self.proven("shifted response", kept, "int16")
            best = max(best, self.proven("masked response", kept * weight, "int32"))
        value = self.proven("rescaled response", down(best, MASK_BITS), "int16")
        self.add(segment, tables, j, value, scores, "int16")

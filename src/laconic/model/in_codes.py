"""Express the atoms of a program in codes of the inputs.

Each atom gets a whole-numbered value, and real weights per unit of that value. Constants go into
the bias. The weights are rounded later (`laconic.model.quantise`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.model.choose_codes import feature_tables
from laconic.model.compared_codes import Comparer, without_missing
from laconic.model.distances import squared_distances
from laconic.model.input_codes import Inputs
from laconic.model.integers import (
    DIRECTION,
    FALL_BITS,
    HEIGHT_BITS,
    LARGEST_OF_BYTES,
    LARGEST_VALUE,
    MASK,
    MASK_BITS,
    squares,
)
from laconic.model.program import Program, Routing
from laconic.model.proof import (
    code_sizes,
    direction_ends,
    largest_distances,
    pixel_range,
    product_sizes,
    responses,
)
from laconic.model.segments import Segment, Tables, ends_of

# Rows on which thresholds and radii are compared.
SAMPLE = 8000
# Largest code of a centre or threshold. Centres may lie beyond the codes of all rows.
FAR = 2**20


class Coded(NamedTuple):
    """A program in codes. Its tables are whole numbers, and its weights and bias are real."""

    program: Program
    never: np.ndarray
    """Which classes a leaf never answers, (n_leaves, n_outputs)."""


def in_codes(program: Program, inputs: Inputs, X: Any, bits: int) -> Coded:
    """Return the program in codes. Thresholds and radii are rounded by the rows ``X``."""
    return _Coder(program, inputs, X, bits).coded()


class _Coder:
    def __init__(self, program: Program, inputs: Inputs, X: Any, bits: int) -> None:
        self.program, self.inputs, self.bits = program, inputs, bits
        self.most = 2 ** (bits - 1) - 1
        self.bias = program.bias.copy()
        step = max(1, X.shape[0] // SAMPLE)
        read = X[::step][:, inputs.features]
        self.rows = np.asarray(read.toarray() if sparse.issparse(read) else read, np.float64)
        self.codes = inputs.codes(X[::step])
        self.comparer = Comparer(inputs, self.rows, self.codes, FAR)
        self.scale, self.origin = self.comparer.scale, self.comparer.origin

    def coded(self) -> Coded:
        segments = [
            _CODE[segment.kind](self, compact(segment, self.inputs.features))
            for segment in without_missing(self.program.segments)
        ]
        routing = self.program.routing
        if routing is not None:
            routing = self._routing(routing)
        program = self.program._replace(bias=self.bias, segments=segments, routing=routing)
        return Coded(program, self.program.never)

    def _add_to_bias(self, segment: Segment, amounts: np.ndarray) -> None:
        """Add the constants of the atoms, (n_atoms, n_outputs), to the bias of their leaf."""
        for leaf in range(len(self.bias)):
            own = slice(*segment.starts[leaf : leaf + 2])
            self.bias[leaf] += amounts[own].sum(axis=0)

    # -- one method a kind ---------------------------------------------------------------------

    def gather(self, segment: Segment) -> Segment:
        of = segment.tables["feature"]
        self._add_to_bias(segment, segment.weights * self.origin[of, None])
        weights = segment.weights / self.scale[of, None]
        return segment._replace(weights=weights)

    def filled(self, segment: Segment) -> Segment:
        of, values = segment.tables["feature"], segment.tables["value"]
        most = largest_fill(self.inputs)
        codes = [self.comparer.nearest(f, v) for f, v in zip(of, values, strict=True)]
        tables = segment.tables | {"value": np.clip(codes, -most, most).astype(np.int64)}
        return self.gather(segment._replace(tables=tables))

    def multiply(self, segment: Segment) -> Segment:
        first, second = segment.tables["first"], segment.tables["second"]
        largest = product_sizes(first, second, self.inputs)
        down = np.zeros(len(first), dtype=np.int64)
        most = LARGEST_OF_BYTES if self.inputs.given == "uint8" else LARGEST_VALUE
        while (over := (largest + ((1 << down) >> 1)) >> down > most).any():
            down += over
        if self.inputs.dtype.itemsize == 1:  # one number for all atoms needs no table
            down[:] = down.max(initial=0)
        unit = np.ldexp(1.0, down) / (self.scale[first] * self.scale[second])
        tables = segment.tables | {"rescale": down}
        return segment._replace(tables=tables, weights=segment.weights * unit[:, None])

    def compared(self, segment: Segment) -> Segment:
        coded: Segment = getattr(self.comparer, segment.kind)(segment)
        return coded

    def hinge(self, segment: Segment) -> Segment:
        """Return hinges whose directions and knots are in codes.

        Let u = Σ_t v_t x_t be the projection of a row. In codes it is unit · (Σ_t w_t q_t) plus a
        constant, with whole numbers w_t. A value is (Σ_t w_t q_t − knot) >> rescale where that is
        positive. Half of a step is in the knot, so that the shift rounds.
        """
        tables, ends = segment.tables, ends_of(segment.tables["length"])
        of = tables["feature"]
        exact = tables["value"] / self.scale[of]
        unit, whole = np.ones(segment.n_atoms), np.empty(len(of), dtype=np.int64)
        constant = np.empty(segment.n_atoms)
        sizes = code_sizes(self.inputs)[of].astype(np.float64)
        for j, (a, b) in enumerate(itertools.pairwise(ends)):
            top = float(np.abs(exact[a:b]).max(initial=0.0)) or 1.0
            # Partial sums must fit 32 bits, so wide directions of 16 bits get smaller numbers.
            room = (DIRECTION - sizes[a:b].sum()) * top
            most = min(self.most, int(room / max(np.abs(exact[a:b]) @ sizes[a:b], top)))
            unit[j] = top / max(most, 1)
            whole[a:b] = np.rint(exact[a:b] / unit[j])
            constant[j] = tables["value"][a:b] @ self.origin[of[a:b]]
        tables = tables | {"value": whole}
        knots = (segment.tables["knot"] - constant) / unit
        low, high = direction_ends(tables, self.inputs)
        # With a knot below all rows, a hinge is a straight line with a constant.
        amounts = segment.weights * (unit * np.maximum(low - knots, 0.0))[:, None]
        self._add_to_bias(segment, amounts)
        held = np.rint(np.clip(knots, low, high)).astype(np.int64)
        down = np.zeros(segment.n_atoms, dtype=np.int64)
        while (over := (high - held + ((1 << down) >> 1)) >> down > LARGEST_VALUE).any():
            down += over
        tables |= {"knot": held - ((1 << down) >> 1), "rescale": down}
        worth = np.ldexp(unit, down)
        return segment._replace(tables=tables, weights=segment.weights * worth[:, None])

    def look_up(self, segment: Segment) -> Segment:
        ends = ends_of(segment.tables["length"])
        unit, parts = np.ones(segment.n_atoms), []
        for j in range(segment.n_atoms):
            own = segment.tables["value"][ends[j] : ends[j + 1]]
            unit[j] = np.abs(own).max(initial=0.0) / self.most or 1.0
            parts.append(np.rint(own / unit[j]).astype(np.int64))
        tables = segment.tables | {"value": np.concatenate([np.empty(0, np.int64), *parts])}
        weights = segment.weights * unit[:, None]
        return segment._replace(tables=tables, weights=weights)

    def balls(self, segment: Segment) -> Segment:
        weights = segment.weights.copy()
        weights[:, -1] += np.einsum("f,bfc->bc", self.origin, weights[:, :-1])
        weights[:, :-1] /= self.scale[None, :, None]
        segment = self._placed(segment)._replace(weights=weights)
        return segment if segment.kind == "balls" else self._soft(segment)

    def bumps(self, segment: Segment) -> Segment:
        weights = np.ldexp(segment.weights, -HEIGHT_BITS[self.bits])
        return self._soft(self._placed(segment)._replace(weights=weights))

    def _placed(self, segment: Segment) -> Segment:
        """Return balls whose centres and radii are in codes."""
        centre, limit = self._centres(segment.tables, inside=np.less)
        return segment._replace(tables=segment.tables | {"centre": centre, "limit": limit})

    def _soft(self, segment: Segment) -> Segment:
        """Add the slope of the height: height = ((limit − distance) >> drop) · fall >> 15."""
        limit = segment.tables["limit"]
        lengths = np.array([int(v).bit_length() for v in limit], dtype=np.int64)
        drop = np.maximum(lengths - FALL_BITS, 0)
        steps = np.maximum(limit, 0) >> drop
        top = 2.0 ** (HEIGHT_BITS[self.bits] + FALL_BITS)  # a height of 1
        fall = np.where(steps == 0, 0.0, np.rint(top / np.maximum(steps, 1)))
        tables = segment.tables | {"fall": fall.astype(np.int64), "drop": drop}
        return segment._replace(tables=tables)

    def windows(self, segment: Segment) -> Segment:
        tables, ends = segment.tables, np.cumsum([0, *np.square(segment.tables["size"])])
        far = max(map(abs, pixel_range(self.inputs)))
        pixel, unit = [np.empty(0, np.int64)], np.ones(len(ends) - 1)
        for t in range(len(unit)):
            own = tables["pixel"][ends[t] : ends[t + 1]]
            top = float(np.abs(own).max(initial=0.0)) or 1.0
            # Responses must fit 32 bits, so wide templates of 16 bits get smaller numbers.
            room = (2.0**31 - 1.0) / max(far, 1) - len(own)
            most = max(1, min(self.most, int(room * top / max(float(np.abs(own).sum()), top))))
            unit[t] = top / most
            pixel.append(np.rint(own / unit[t]).astype(np.int64))
        weight = np.rint(tables["weight"] * MASK).astype(np.int64)
        tables = tables | {"pixel": np.concatenate(pixel), "weight": weight}
        segment = segment._replace(tables=tables)
        reach = int(responses(segment, self.inputs)[1].max(initial=0))
        down = max(0, reach.bit_length() - LARGEST_VALUE.bit_length())
        worth = 2.0 ** (down + MASK_BITS) / (MASK * self.scale[0]) * unit[tables["template"]]
        tables = tables | {"down": np.array([down])}
        return segment._replace(tables=tables, weights=segment.weights * worth[:, None])

    # -- centres and radii ---------------------------------------------------------------------

    def _routing(self, routing: Routing) -> Routing:
        tables = {"centre": routing.centre, "limit": routing.limit}
        centre, limit = self._centres(tables, inside=np.less_equal)
        return routing._replace(centre=centre, limit=limit)

    def _centres(
        self, tables: Tables, inside: Callable[..., np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return centres in codes, and the largest squared distances of rows inside.

        The limits are those with which as many of the rows at hand are inside as before, if any is.
        """
        exact = (tables["centre"] - self.origin) * self.scale
        if np.abs(exact).max(initial=0.0) > FAR:
            raise ValueError(
                "the model has balls that are far from all rows of X; give the rows that the model "
                "was fitted to"
            )
        centre = np.rint(exact).astype(np.int64)
        far = largest_distances(centre, self.inputs)
        found = np.sort(squares(self.codes, centre), axis=0)
        limit = np.empty(len(centre), dtype=np.int64)
        held = inside(squared_distances(self.rows, tables["centre"]), tables["limit"]).sum(axis=0)
        for b, (count, r2) in enumerate(zip(held.tolist(), tables["limit"], strict=True)):
            wanted = min(r2 * self.scale[0] ** 2, float(far[b]))
            nominal = int(np.floor(wanted))
            if inside is np.less and nominal == wanted:
                nominal -= 1
            least = int(found[count - 1, b]) if count else -1
            most = int(found[count, b]) - 1 if count < len(found) else int(far[b])
            limit[b] = min(max(nominal, least), most) if least <= most else nominal
        return centre, limit


def largest_fill(inputs: Inputs) -> int:
    """Return the largest code in place of a missing value. It may lie beyond the codes of rows."""
    return LARGEST_VALUE if inputs.dtype.itemsize == 1 else FAR


def compact(segment: Segment, features: np.ndarray) -> Segment:
    """Number the features of a segment by their place among those that are read."""
    tables = dict(segment.tables)
    for name in feature_tables(segment.kind):
        tables[name] = np.searchsorted(features, tables[name])
    return segment._replace(tables=tables)


_CODE: dict[str, Callable[[_Coder, Segment], Segment]] = {
    "gather": _Coder.gather,
    "filled": _Coder.filled,
    "multiply": _Coder.multiply,
    "at_most": _Coder.compared,
    "equals": _Coder.compared,
    "rules": _Coder.compared,
    "hinge": _Coder.hinge,
    "look_up": _Coder.look_up,
    "balls": _Coder.balls,
    "soft_balls": _Coder.balls,
    "bumps": _Coder.bumps,
    "windows": _Coder.windows,
}

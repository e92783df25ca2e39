"""Choose the codes of the inputs of an integer model, from what its atoms do with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from laconic.model.input_codes import GIVEN, LARGEST_FIXED, Inputs, code_range
from laconic.model.program import Program
from laconic.model.segments import SIDES, conditions

ALL_FEATURES = ("balls", "soft_balls", "bumps", "windows")
"""Kinds of segments that read every feature."""
ARITHMETIC = ("gather", "filled", "multiply", "hinge", *ALL_FEATURES)
"""Kinds of segments that calculate with a feature. The others only compare it."""
COMPARED = ("at_most", "equals", "missing", "rules")
"""Kinds of segments that only compare features with a value."""
# A feature with one threshold is coded this much finer than the range of its values.
FINER = 2.0**-12
# Largest power of two by which inputs are scaled.
MOST_POWER = 120
# Largest float32. A device hands over no larger number.
LARGEST = float(np.finfo(np.float32).max)
# Smallest float32 that is not subnormal. Smaller numbers count as 0.
SMALLEST = float(np.finfo(np.float32).tiny)


def feature_tables(kind: str) -> tuple[str, ...]:
    """Return the names of the tables of a segment that hold numbers of features."""
    if kind in ALL_FEATURES:
        return ()
    return SIDES if kind in ("multiply", "rules") else ("feature",)


def uses(program: Program) -> dict[int, set[str]]:
    """Return what the program does with each feature that it reads: kinds of segments.

    The conditions of rules count as stumps.
    """
    out: dict[int, set[str]] = {}
    for segment in program.segments:
        for asked in conditions(segment):
            for feature in np.unique(asked.feature).tolist():
                out.setdefault(feature, set()).add(asked.kind)
        if segment.kind in COMPARED:
            continue
        names = feature_tables(segment.kind)
        read = [segment.tables[name] for name in names] or [np.arange(program.n_features)]
        for feature in np.unique(np.concatenate(read)).tolist():
            out.setdefault(feature, set()).add(segment.kind)
    if program.routing is not None:
        for feature in range(program.n_features):
            out.setdefault(feature, set()).add("balls")
    return dict(sorted(out.items()))


class TooWide(ValueError):
    """A model whose numbers do not fit the integers of C."""


def choose_codes(program: Program, X: Any, bits: int, given: str) -> Inputs:
    """Return the inputs of an integer model. The ranges of features are those of the rows ``X``."""
    if given not in GIVEN:
        known = ", ".join(map(repr, ("auto", *GIVEN)))
        raise ValueError(f"inputs must be one of {known}, not {given!r}")
    use = uses(program)
    features = np.array(list(use), dtype=np.int64)
    read = X[:, features]
    rows = np.asarray(read.toarray() if sparse.issparse(read) else read, dtype=np.float64)
    if not len(rows):
        raise ValueError("X has no rows; give training rows, from which the scales are chosen")
    missing = np.isnan(rows)
    needed = bool(missing.any()) or any({"missing", "filled"} & kinds for kinds in use.values())
    dtype = np.dtype(given if given != "float" else f"int{bits}")
    asked = asked_codes(program, features, use)
    reserved = int(np.iinfo(dtype).max) if needed else None
    chooser = _Floats if given == "float" else _Raw
    return chooser(program, features, use, rows, missing, asked, reserved, dtype, bits).inputs()


def asked_codes(
    program: Program, features: np.ndarray, use: dict[int, set[str]]
) -> dict[int, np.ndarray]:
    """Return the codes that are asked about, for every feature that only holds categories."""
    out: dict[int, list[np.ndarray]] = {}
    for segment in program.segments:
        tables, pairs = segment.tables, []
        for asked in conditions(segment):
            if asked.kind == "equals":
                pairs += list(zip(asked.feature, asked.value[:, None], strict=True))
        if segment.kind == "look_up":
            pairs += list(zip(tables["feature"], map(np.arange, tables["length"]), strict=True))
        for feature, codes in pairs:
            if use[int(feature)] <= {"equals", "look_up", "missing"}:
                out.setdefault(int(feature), []).append(codes)
    place = {int(f): k for k, f in enumerate(features)}
    found = {place[f]: np.unique(np.concatenate(codes)) for f, codes in sorted(out.items())}
    # Other numbers, such as 2.5 or -1, are compared like thresholds.
    return {k: codes for k, codes in found.items() if (codes >= 0).all() and _are_whole(codes)}


def _are_whole(codes: np.ndarray) -> bool:
    return bool((codes == np.rint(codes)).all())


class _Chooser:
    def __init__(
        self,
        program: Program,
        features: np.ndarray,
        use: dict[int, set[str]],
        rows: np.ndarray,
        missing: np.ndarray,
        asked: dict[int, np.ndarray],
        reserved: int | None,
        dtype: np.dtype[Any],
        bits: int,
    ) -> None:
        self.program, self.features, self.use, self.rows = program, features, use, rows
        self.missing, self.asked, self.reserved, self.bits = missing, asked, reserved, bits
        self.dtype = dtype
        self.least, self.most = code_range(dtype, reserved is not None)
        with np.errstate(invalid="ignore"):
            self.smallest = np.where(missing, np.inf, rows).min(axis=0, initial=np.inf)
            self.largest = np.where(missing, -np.inf, rows).max(axis=0, initial=-np.inf)
        empty = self.smallest > self.largest
        self.smallest[empty], self.largest[empty] = 0.0, 0.0
        if not (np.isfinite(self.smallest).all() and np.isfinite(self.largest).all()):
            raise ValueError("X holds infinite values in features that the model reads")

    def thresholds(self, feature: int) -> np.ndarray:
        """Return the sorted distinct thresholds of a feature."""
        parts = [
            asked.value[asked.feature == feature]
            for segment in self.program.segments
            for asked in conditions(segment)
            if asked.kind != "missing"
        ]
        return np.unique(np.concatenate([np.empty(0), *parts]))

    def _told(self, place: int, codes: np.ndarray) -> str:
        """Say which codes of categories a feature holds."""
        ends = f"{codes.min(initial=0):g} to {codes.max(initial=0):g}"
        return f"feature {self.features[place]} holds categories with codes from {ends}"

    def filled(self, value: int) -> np.ndarray:
        return np.full(len(self.features), value, dtype=np.int64)


class _Raw(_Chooser):
    """Integers as they are. 16-bit numbers that are calculated with keep to the rows' range."""

    def inputs(self) -> Inputs:
        given = self.dtype.name
        other = -1 if self.dtype.kind == "i" else self.most
        for place, codes in self.asked.items():
            if codes.max(initial=0) >= self.most or codes.min(initial=0) < 0:
                wider = "" if given == "int16" else 'inputs="int16", or '
                raise ValueError(
                    f"{self._told(place, codes)}, but those of {given} go from 0 to "
                    f"{self.most - 1}; use {wider}fewer categories"
                )
        self._check(given)
        low, high = self.filled(self.least), self.filled(self.most)
        if self.dtype.itemsize > 1:
            for place, kinds in enumerate(self.use.values()):
                if kinds & set(ARITHMETIC):
                    low[place], high[place] = self.smallest[place], self.largest[place]
        bits = 8 * self.dtype.itemsize
        return Inputs(
            given, bits, self.features, low, high, low.copy(), self.filled(0), self.reserved,
            self.asked, other,
        )  # fmt: skip

    def _check(self, given: str) -> None:
        """Refuse training rows that are not of the type that the device hands over."""
        rows = np.where(self.missing, 0.0, self.rows)
        own = [place for place in range(len(self.features)) if place not in self.asked]
        if not (rows[:, own] == np.rint(rows[:, own])).all():
            raise ValueError(
                f"X must hold whole numbers, because the device hands over {given}; use "
                'inputs="float" for other numbers'
            )
        for place in own:
            low, high = self.smallest[place], self.largest[place]
            if low < self.least or high > self.most:
                reserved = "" if self.reserved is None else (
                    f" ({self.reserved} is reserved for missing values)"
                )  # fmt: skip
                raise ValueError(
                    f"feature {self.features[place]} of X goes from {low:g} to {high:g}, but "
                    f"{given} goes from {self.least} to {self.most}{reserved}; use another type of "
                    "inputs"
                )


class _Floats(_Chooser):
    """Floats, scaled by powers of two to codes of 8 or 16 bits."""

    def inputs(self) -> Inputs:
        size = np.maximum(-self.smallest, self.largest)
        over = size > LARGEST
        if over.any():
            raise ValueError(
                f"feature {self.features[over][0]} of X holds numbers beyond {LARGEST:.3g}, which "
                "float32 does not hold; scale it down"
            )
        tiny = (size > 0) & (size < SMALLEST)
        if tiny.any():
            raise ValueError(
                f"feature {self.features[tiny][0]} of X only holds numbers below {SMALLEST:.3g}, "
                "which float32 does not hold; scale it up"
            )
        self.low, self.high = self.filled(self.least), self.filled(self.most)
        self.base, self.shift = self.filled(0), self.filled(0)
        shared = [k for k, kinds in enumerate(self.use.values()) if kinds & set(ALL_FEATURES)]
        for place, (feature, kinds) in enumerate(self.use.items()):
            if place in self.asked:
                self._categories(place)
            elif not kinds & {*ARITHMETIC, "look_up"}:
                self._compared(place, feature)
            elif place not in shared:
                low, high = self.smallest[place], self.largest[place]
                self._spread([place], low, high, "multiply" in kinds)
        self._shared(shared)
        return Inputs(
            "float", self.bits, self.features, self.low, self.high, self.base, self.shift,
            self.reserved, self.asked, -1,
        )  # fmt: skip

    def _categories(self, place: int) -> None:
        """Codes of categories are their numbers, moved so that -1 is the lowest code."""
        codes, most = self.asked[place], self.most - self.least - 2
        if codes.max(initial=0.0) > most or codes.min(initial=0.0) < 0:
            raise TooWide(
                f"{self._told(place, codes)}, but those of {self.bits} bits go from 0 to {most}; "
                "use bits=16, or fewer categories"
            )
        self.base[place] = -1

    def _compared(self, place: int, feature: int) -> None:
        """Codes between the lowest and the highest threshold. All others saturate."""
        cuts = np.clip(self.thresholds(feature), -LARGEST, LARGEST)
        if not len(cuts):
            return
        width = cuts[-1] - cuts[0]
        if width == 0:
            width = (self.largest[place] - self.smallest[place]) * FINER
        far = float(np.abs(cuts).max())
        self.shift[place] = _shift(width, self.most - self.least - 3, far)
        self.base[place] = np.floor(np.ldexp(cuts[0], self.shift[place])) - 1

    def _shared(self, places: list[int]) -> None:
        """One scale for all features of balls and images."""
        if not places:
            return
        kinds: set[str] = set().union(*(list(self.use.values())[k] for k in places))
        low, high = self.smallest[places], self.largest[places]
        if "windows" in kinds or "multiply" in kinds:
            self._spread(places, low.min(), high.max(), True)
            return
        far = float(np.maximum(np.abs(low), np.abs(high)).max())
        steps = self.most - self.least - 1
        self.shift[places] = self._power(places, float((high - low).max()), steps, far)
        self.base[places] = np.floor(np.ldexp(low, self.shift[places]))

    def _spread(self, places: list[int], low: float, high: float, zero: bool) -> None:
        """Codes from the lowest to the highest number. With ``zero``, 0 has a code, too."""
        steps = self.most - self.least
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
            # Differences of two codes must fit 16 bits, and products 32 bits.
            steps = min(steps, 2**15 - 2)
        far = max(abs(low), abs(high))
        self.shift[places] = self._power(places, high - low, steps - 1, far)
        self.base[places] = np.floor(np.ldexp(low, self.shift[places]))
        if self._looked_up(places):
            steps = math.ceil(high) - math.floor(low)
        self.low[places] = self.most - steps  # next to the code of missing values

    def _power(self, places: list[int], width: float, steps: int, far: float) -> int:
        """Return the power of two by which features are scaled. Tables need whole numbers."""
        power, looked = _shift(width, steps, far), self._looked_up(places)
        if looked and power < 0:
            raise ValueError(
                f"feature {self.features[looked[0]]} is looked up in a table and also calculated "
                f"with, but its numbers do not fit {self.bits} bits as they are; use bits=16"
            )
        return 0 if looked else power

    def _looked_up(self, places: list[int]) -> list[int]:
        kinds = list(self.use.values())
        return [place for place in places if "look_up" in kinds[place]]


def _shift(width: float, steps: int, far: float) -> int:
    """Return the largest power of two that makes a width at most so many steps.

    Numbers of size ``far`` must still have fixed-point numbers. If the width is 0, ``far`` is used
    instead.
    """
    power = math.log2(steps) - math.log2(width or far or steps)
    room = math.log2(LARGEST_FIXED) - math.log2(far or 1.0) - 2.0
    return max(math.floor(min(power, room, MOST_POWER)), -MOST_POWER)

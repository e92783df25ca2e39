"""Exponentials and logarithms inside kernels, which compilers turn into vector instructions.

NumPy has them too, but a kernel cannot call NumPy. Those of the mathematical library take one
number at a time. This module imports Numba, so import it only at first use.
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# The logarithm of two as a number of few digits, whose multiples are exact, and the rest.
HIGH, LOW = 355.0 / 512.0, -2.12194440054690583e-4
# Terms of the series of artanh in the logarithm. Its argument is at most (√2 − 1) / (√2 + 1).
TERMS = 11


class _Form(NamedTuple):
    """How numbers of a type are made of bits."""

    number: Any
    bits: Any
    digits: int
    """Binary digits after the first."""
    least: float
    """Exponentials of smaller numbers are zero. They would have fewer digits than others."""
    terms: int
    """Terms of the Taylor series. It is summed up to |x| = ln(2) / 2."""

    @property
    def bias(self) -> int:
        """What is added to exponents."""
        return (1 << (self.bits.width - self.digits - 2)) - 1


FORMS = {
    types.float32: _Form(ir.FloatType(), ir.IntType(32), 23, -126 * log(2), 8),
    types.float64: _Form(ir.DoubleType(), ir.IntType(64), 52, -1022 * log(2), 14),
}


@intrinsic
def exponential(context, x):  # type: ignore[no-untyped-def]
    """Return exp(x) for x of at most zero.

    With n the whole number next to x / ln 2, this is 2ⁿ exp(x − n ln 2).
    """
    if x not in FORMS:
        return None
    form = FORMS[x]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def number(value: float) -> Any:
            return ir.Constant(form.number, value)

        [given] = arguments
        # The last binary digit of this number is worth one, so adding it rounds to whole numbers.
        # They are then in the last bits.
        rounding = number(1.5 * 2.0**form.digits)
        shifted = builder.fadd(builder.fmul(given, number(1.0 / log(2))), rounding)
        n = builder.fsub(shifted, rounding)
        rest = _multiplied(builder, n, number(-HIGH), given)
        rest = _multiplied(builder, n, number(-LOW), rest)
        factorial, inverses = 1.0, [1.0]
        for k in range(1, form.terms):
            factorial *= k
            inverses.append(1.0 / factorial)
        out = number(inverses[-1])
        for inverse in inverses[-2::-1]:
            out = _multiplied(builder, out, rest, number(inverse))
        exponent = builder.add(
            builder.bitcast(shifted, form.bits), ir.Constant(form.bits, form.bias)
        )
        power = builder.shl(exponent, ir.Constant(form.bits, form.digits))
        out = builder.fmul(out, builder.bitcast(power, form.number))
        tiny = builder.fcmp_ordered("<", given, number(form.least))
        return builder.select(tiny, number(0.0), out)

    return x(x), generate


@intrinsic
def logarithm(context, x):  # type: ignore[no-untyped-def]
    """Return ln(x) for x of at least one, in float64.

    With x = 2ⁿ m and m next to 1, this is n ln 2 + 2 artanh((m − 1) / (m + 1)).
    """
    if x is not types.float64:
        return None
    form = FORMS[x]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def number(value: float) -> Any:
            return ir.Constant(form.number, value)

        def bits(value: int) -> Any:
            return ir.Constant(form.bits, value)

        [given] = arguments
        whole = builder.bitcast(given, form.bits)
        digits = bits(form.digits)
        n = builder.lshr(builder.sub(whole, bits(int(np.float64(0.5**0.5).view(np.int64)))), digits)
        m = builder.bitcast(builder.sub(whole, builder.shl(n, digits)), form.number)
        # A whole number in the last bits of a number whose last digit is worth one.
        counted = builder.or_(n, bits(int(np.float64(2.0**form.digits).view(np.int64))))
        n = builder.fsub(builder.bitcast(counted, form.number), number(2.0**form.digits))
        ratio = builder.fdiv(builder.fsub(m, number(1.0)), builder.fadd(m, number(1.0)))
        square = builder.fmul(ratio, ratio)
        series = number(2.0 / (2 * TERMS + 1))
        for k in range(TERMS - 1, -1, -1):
            series = _multiplied(builder, series, square, number(2.0 / (2 * k + 1)))
        out = _multiplied(builder, series, ratio, builder.fmul(n, number(log(2))))
        # What is not finite makes the answer not finite.
        return _multiplied(builder, given, number(0.0), out)

    return x(x), generate


def _multiplied(builder: Any, factor: Any, other: Any, term: Any) -> Any:
    """Return factor times other plus term, in one instruction if the machine has it."""
    product = builder.fmul(factor, other, flags=("contract",))
    return builder.fadd(product, term, flags=("contract",))

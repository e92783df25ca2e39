"""The least point of a dense quadratic model with kinks: where a Newton step of `Orthant` goes.

Notes
-----
With G and H the gradient and the curvature of all that is smooth at W, the model is

    q(X) = ⟨G, X − W⟩ + ½ ⟨X − W, H (X − W)⟩ + kink (‖X‖₁ − ‖W‖₁)

over the weights that may move; intercepts have no kink. It is lowered face by face, as in
`laconic.subset.quadratic`. A face has the weights that are not zero, with their signs, and those at
zero that the slope of q moves out of it. A step of the face may take many weights through zero.
They all stop there if q falls enough that way; otherwise the step ends where the first one does.

A loss that does not see a shift of all outputs leaves a column of weights, one for every class,
free to shift as a whole: H bends by nothing that way, and only the kinks pull. So a column that is
on the face with all its classes takes its step without a shift, and then shifts to where its l1
norm is least: the median of the weights goes to zero. The two kinds of steps end together only at
the least point. Say that neither moves a column, P of whose k weights have the sign + and N the
sign −, and let P > N. The slopes of the column are then all kink (P − N) / k > 0, so that a weight
at zero is on the face only with the sign −, and more than half of the weights are above zero. Then
their median is not zero, and the column shifts after all.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

# Added to curvatures, by their mean: weights that rows all but agree on do not run away.
RIDGE = 1e-11
# Share of the fall so far below which a step to the next face is not worth taking.
NOTHING = 1e-2
# Most faces of one model: a Hessian at a better point is worth more than its last few.
FACES = 5


def least_shift(W: np.ndarray) -> np.ndarray:
    """Rows of weights, each shifted to where its l1 norm is least; as they are where they are.

    A median goes to zero. Between two medians the norm is the same.
    """
    n = W.shape[1]
    middle = np.sort(W, axis=1)[:, [(n - 1) // 2, n // 2]]
    shift = np.clip(0.0, middle[:, :1], middle[:, 1:])
    return W - shift if shift.any() else W


class KinkedModel:
    """The model over some entries of a weight matrix.

    Parameters
    ----------
    hessian : ndarray of shape (n, n)
        Among those entries.
    gradient : ndarray of shape (n,)
        Of all that is smooth.
    weights : ndarray of shape (n,)
        The entries now.
    columns : ndarray of shape (n,)
        Which column each belongs to, ascending.
    kink : float
    free : int
        How many of the first entries are intercepts, without a kink.
    whole : int
        Entries of a column that can shift as one; 0 where the loss sees a shift.
    """

    def __init__(
        self,
        hessian: np.ndarray,
        gradient: np.ndarray,
        weights: np.ndarray,
        columns: np.ndarray,
        kink: float,
        free: int,
        whole: int,
    ) -> None:
        self._H = hessian
        self._start, self._gradient = weights, gradient
        self._columns, self._kink, self._free, self._whole = columns, kink, free, whole
        size = float(np.trace(hessian)) / max(len(weights), 1)
        self._ridge, self._stiff = RIDGE * size + 1e-30, max(size, 1e-30)
        full = self._full(np.ones(len(weights), dtype=bool))
        full[:free] = False
        self._shifting = np.flatnonzero(full).reshape(-1, whole) if full.any() else None

    def least(self) -> np.ndarray:
        """The entries near the least point.

        Those at zero leave it by the first step or not at all, and so faces only shrink: the next
        model sees to the rest at the price of one Hessian.
        """
        x, slope, fallen = self._start.copy(), self._gradient, 0.0
        leaving = np.abs(slope) > self._kink
        for _ in range(FACES):
            step, fall = self._step(x, slope, leaving)
            if not fall > NOTHING * fallen:
                break
            moved, gained = self._search(x, slope, step, fall)
            x = self._shift(moved)
            slope = self._gradient + self._H @ (x - self._start)
            fallen += gained
            leaving[:] = False
        return x

    def change(self, x: np.ndarray) -> tuple[float, float]:
        """q at ``x``, and what the objective changes by at first on the straight way there."""
        d = x - self._start
        held, moved = self._start[self._free :], x[self._free :]
        slope = float(self._gradient @ d)
        slope += self._kink * float(np.abs(moved).sum() - np.abs(held).sum())
        return slope + 0.5 * float(d @ (self._H @ d)), slope

    def _full(self, face: np.ndarray) -> np.ndarray:
        """Entries of the face whose columns have all their entries on it."""
        if not self._whole:
            return np.zeros(len(face), dtype=bool)
        count = np.bincount(self._columns[face], minlength=self._columns[-1] + 1)
        return face & (count[self._columns] == self._whole)

    def _step(
        self, x: np.ndarray, slope: np.ndarray, leaving: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Newton step of the face of ``x``, and how far q falls with it."""
        sign = np.where(x != 0, np.sign(x), -np.sign(slope) * leaving)
        sign[: self._free] = 2.0
        pull = -(slope + self._kink * sign)
        pull[: self._free] = -slope[: self._free]
        at_zero = x == 0
        at_zero[: self._free] = False
        face = sign != 0
        while face.any():
            step = self._solve(face, pull)
            leaves = face & at_zero & (step * sign < 0)
            if not leaves.any():
                return step, 0.5 * float(pull @ step)
            face &= ~leaves
        return np.zeros_like(x), 0.0

    def _solve(self, face: np.ndarray, pull: np.ndarray) -> np.ndarray:
        at = np.flatnonzero(face)
        H, r = self._H[at[:, None], at], pull[at]
        full = self._full(face)[at]
        if full.any():
            # Columns as a whole get no pull, and a curvature like any other.
            places = np.flatnonzero(full).reshape(-1, self._whole)
            r[places] -= r[places].mean(axis=1, keepdims=True)
            H[places[:, :, None], places[:, None, :]] += self._stiff / self._whole
        diagonal = np.einsum("ii->i", H)
        ridge, info = self._ridge, 1
        while info:
            diagonal += ridge
            _, found, info = dposv(H, r)
            ridge *= 100.0
        step = np.zeros_like(pull)
        step[at] = found
        return step

    def _search(
        self, x: np.ndarray, slope: np.ndarray, step: np.ndarray, fall: float
    ) -> tuple[np.ndarray, float]:
        """Where a step ends, and how far q falls with it; weights it takes through zero stop there.

        Up to the first of them q falls for certain.
        """
        zero_at = np.full_like(step, np.inf)
        np.divide(-x, step, out=zero_at, where=step * x < 0)
        zero_at[: self._free] = np.inf
        first = min(float(zero_at.min(initial=np.inf)), 1.0)
        t = 1.0
        while True:
            moved = np.where(zero_at <= t, 0.0, x + t * step)
            d = moved - x
            kinks = float(np.abs(moved[self._free :]).sum() - np.abs(x[self._free :]).sum())
            gained = -float(slope @ d) - 0.5 * float(d @ (self._H @ d)) - self._kink * kinks
            if t <= first or gained >= 0.5 * fall * first * (2.0 - first):
                return moved, max(gained, 0.0)
            t = max(0.5 * t, first)

    def _shift(self, x: np.ndarray) -> np.ndarray:
        """Columns that can shift as one, each to where its l1 norm is least."""
        if self._shifting is not None:
            x[self._shifting] = least_shift(x[self._shifting])
        return x

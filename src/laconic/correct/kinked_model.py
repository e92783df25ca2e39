"""Minimise a dense quadratic model with kinks, to find the Newton step of `Orthant`.

Notes
-----
Let G and H be the gradient and the Hessian of the smooth part of Φ at W. The model is

    q(X) = ⟨G, X − W⟩ + ½ ⟨X − W, H (X − W)⟩ + kink (‖X‖₁ − ‖W‖₁)

over the weights that may move. Intercepts have no kink. The model is lowered face by face, as in
`laconic.subset.quadratic`. A face consists of the weights that are not zero, with their signs, and
of the weights at zero that the slope of q moves away from zero. A step on a face may take many
weights through zero. They all stop at zero if q falls enough that way. Otherwise the step ends
where the first weight reaches zero.

If the loss is shift-invariant, a column of weights, one for every class, can shift as a whole. H
has no curvature in that direction, and only the kinks pull. So if all classes of a column are on
the face, the column first takes its step without a shift. Then it shifts to where its l1 norm is
smallest, which makes the median of its weights zero. Both kinds of steps end only at the minimum.
To see this, suppose that neither moves a column. Let P of its k weights have the sign + and N the
sign −, with P > N. Then all slopes of the column are kink (P − N) / k > 0. So a weight at zero is
on the face only with the sign −, and more than half of the weights are above zero. Then their
median is not zero, and the column would shift: a contradiction.

`laconic.subset.solver` is a second Newton method for l1, with a model of its own. Both take the
lengths of their steps from `laconic.numeric.newton_steps`. The rest differs, because their problems
do. A subset search solves very many small problems with one output. Each weight has its own price,
and weights may have to be positive. Its model is cheap, and it is minimised exactly. `Orthant`
solves larger problems with several outputs, in which columns shift as a whole. There a Hessian at a
better point gains more than the last faces. So this model is minimised only roughly.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

# Added to the curvatures, as a part of their mean. It keeps weights finite that the rows hardly
# determine.
RIDGE = 1e-11
# A step to the next face must gain more than this part of the gain so far.
NOTHING = 1e-2
# Most faces of one model. A Hessian at a better point gains more than further faces.
FACES = 5


def least_shift(W: np.ndarray) -> np.ndarray:
    """Shift each row of weights to where its l1 norm is smallest, so that its median is zero.

    Between two medians the norm is constant, so a row with zero between them does not move.
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
        Hessian of the smooth part among these entries.
    gradient : ndarray of shape (n,)
        Gradient of the smooth part.
    weights : ndarray of shape (n,)
        Present values of the entries.
    columns : ndarray of shape (n,)
        Column of each entry, in ascending order.
    kink : float
        Slope of the kinks.
    free : int
        Number of intercepts. They are the first entries and have no kink.
    whole : int
        Number of entries of a column that can shift as a whole; 0 if the loss is not
        shift-invariant.
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
        """Return the entries near the minimum.

        Entries at zero may leave it only in the first step, so faces only shrink. The next model
        does the rest, at the cost of one Hessian.
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
        """Return q at ``x``, and q without its quadratic term.

        By convexity the second number is an upper bound on the slope of the objective at the start
        of the straight line to ``x``.
        """
        d = x - self._start
        held, moved = self._start[self._free :], x[self._free :]
        slope = float(self._gradient @ d)
        slope += self._kink * float(np.abs(moved).sum() - np.abs(held).sum())
        return slope + 0.5 * float(d @ (self._H @ d)), slope

    def _full(self, face: np.ndarray) -> np.ndarray:
        """Return the entries of the face whose columns have all their entries on it."""
        if not self._whole:
            return np.zeros(len(face), dtype=bool)
        count = np.bincount(self._columns[face], minlength=self._columns[-1] + 1)
        return face & (count[self._columns] == self._whole)

    def _step(
        self, x: np.ndarray, slope: np.ndarray, leaving: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the Newton step on the face of ``x``, and how far q falls with it."""
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
            # A column as a whole gets no pull, but an ordinary curvature.
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
        """Return where a step ends, and how far q falls with it.

        Weights that the step takes through zero stop at zero. Up to the first of them q certainly
        falls.
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
        """Shift each column that can shift as a whole to where its l1 norm is smallest."""
        if self._shifting is not None:
            x[self._shifting] = least_shift(x[self._shifting])
        return x

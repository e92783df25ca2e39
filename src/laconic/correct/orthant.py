"""Newton's method for penalties with a kink at zero, such as l1."""

from __future__ import annotations

import numpy as np

from laconic.correct.conjugate import conjugate_gradients
from laconic.correct.kinked_model import KinkedModel, least_shift
from laconic.correct.newton import HOPE
from laconic.correct.objective import Objective, Problem, Solution
from laconic.numeric.newton_steps import backtrack, first_part
from laconic.penalties import SECOND_ORDER, Penalty, check_penalty

# If Φ falls by more than this many times the predicted gain of a whole step, the step follows a
# tail of the loss.
TAIL = 1.15
# If a step within an orthant gains less than this part of its predicted gain, kinks stopped it.
LITTLE = 0.1
# Largest number of weights for which a Hessian is computed from products.
FEW = 300


class Orthant:
    """Newton's method with a model that keeps the kinks: the corrector of penalties with kinks.

    Ω(W) = kink ‖W‖₁ + a smooth part. A weight leaves zero only if the slope of the loss plus the
    smooth part of Ω exceeds the kink. Weights that end at zero are exactly zero.

    If few weights may move, a step goes to the minimum of the quadratic model with its kinks
    (`laconic.correct.kinked_model`). This needs a Hessian among these weights. If many weights may
    move, the step stays in the orthant of the present signs, where nothing has a kink. Conjugate
    gradients find such a step. A weight that would change its sign stops at zero. Because of the
    other weights, the step could move a weight at zero against its slope. Such a weight is left out
    of the step (see the notes of `laconic.subset.quadratic`). If columns are nearly alike, steps
    within an orthant may stop again and again with almost no gain. Then the Hessian is computed
    after all, product by product, and steps go to the minimum of the model.

    Parameters
    ----------
    tol : float
        Stop after a step whose predicted gain is at most ``tol * max(Φ, 1e-3)``. In single
        precision the tolerance is at least what rounding allows.
    max_iter : int
        Largest number of steps.
    """

    needs = SECOND_ORDER
    takes_kinks = True

    def __init__(self, tol: float = 1e-14, max_iter: int = 200) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def solve(
        self,
        problem: Problem,
        penalty: Penalty,
        start: np.ndarray,
        target: float = np.inf,
        inside: np.ndarray | None = None,
    ) -> Solution:
        """Minimise Φ from ``start``. With ``inside``, use only the columns in that mask.

        If steps go to the minimum of the model, the solve gives up early if Φ can hardly fall to
        ``target``. A step within an orthant cannot tell this, because other weights may still leave
        zero.
        """
        check_penalty(self, penalty)
        objective = Objective(problem, penalty)
        W, value, _ = objective.start(self._shifted(objective, start))
        face, slope = self._face(objective, W, inside)
        decrement, converged, stuck, cut = np.inf, False, False, 0
        tol = max(self.tol, float(np.finfo(problem.dtype).eps) ** 1.5)
        for _ in range(self.max_iter):
            if not slope.any():
                decrement, converged = 0.0, True
                break
            hessian = self._hessian(objective, W, face, stuck)
            if hessian is None:
                step = self._step(objective, W, face, slope)
                decrement = -0.5 * float(np.vdot(slope, step))
                part = first_part(step, cut)
                moved = self._search(objective, W, slope, step, value, part)
                known, stuck = stuck, stuck or self._is_stuck(moved, value, decrement)
                if moved is None and not known:
                    objective.evaluate(W)
                    continue
            else:
                step, first_order, decrement = self._model_step(objective, W, face, hessian)
                if value - HOPE * decrement > target:
                    break
                part = first_part(step, cut)
                moved = self._model_search(objective, W, step, first_order, decrement, value, part)
            if moved is None:
                objective.evaluate(W)
                break
            W, value = moved
            cut = cut + 1 if part < 1.0 else 0
            objective.ease(decrement, value)
            face, slope = self._face(objective, W, inside)
            if abs(decrement) <= tol * max(value, 1e-3):  # negative only if something went wrong
                converged = True
                break
        return objective.solution(W, value, slope, decrement, converged, inside)

    @staticmethod
    def _shifted(objective: Objective, W: np.ndarray) -> np.ndarray:
        """Return the weights, shifted to where Ω is smallest if the loss is shift-invariant."""
        if not objective.problem.shift_invariant:
            return W
        free, penalty = objective.free, objective.penalty
        shifted = least_shift(W[free:])
        if not penalty.value(shifted) <= penalty.value(W[free:]):
            return W
        return np.concatenate([W[:free] - W[:free].mean(axis=1, keepdims=True), shifted])

    def _face(
        self, objective: Objective, W: np.ndarray, inside: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the signs that the weights may have, and their slopes with these signs.

        The sign is 0 for weights that stay at zero, and 2 for intercepts, which may have any sign.
        """
        penalty, free, G = objective.penalty, objective.free, self._smooth_gradient(objective, W)
        out_of_zero = -np.sign(G) * (np.abs(G) > penalty.kink)
        face = np.where(W != 0, np.sign(W), out_of_zero)
        if inside is not None:
            face[~inside] = 0.0
        slope = np.where(face != 0, G + penalty.kink * face, 0.0)
        face[:free], slope[:free] = 2.0, G[:free]
        return face, slope

    @staticmethod
    def _smooth_gradient(objective: Objective, W: np.ndarray) -> np.ndarray:
        """Return the gradient at ``W`` of Φ without the kinks."""
        penalty, free = objective.penalty, objective.free
        G = objective.loss_gradient.copy()
        G[free:] += penalty.gradient(W[free:]) - penalty.kink * np.sign(W[free:])
        return G

    @staticmethod
    def _is_stuck(moved: tuple[np.ndarray, float] | None, value: float, promised: float) -> bool:
        """Return whether a step within an orthant gained little or nothing because of kinks."""
        return moved is None or value - moved[1] < LITTLE * promised

    @staticmethod
    def _hessian(
        objective: Objective, W: np.ndarray, face: np.ndarray, stuck: bool
    ) -> np.ndarray | None:
        """Return the Hessian among the weights of the face.

        Return None if there are many weights, or if the penalty has curvature. If the problem does
        not compute the Hessian, steps within orthants are cheaper. It is then computed from
        products only if these steps get stuck.
        """
        if objective.penalty.curvature(W[objective.free :]).any():
            return None
        moving = face != 0
        written = objective.problem.hessian(moving)
        if written is not None or not stuck or np.count_nonzero(moving) > FEW:
            return written
        return objective.hessian(moving)

    def _model_step(
        self, objective: Objective, W: np.ndarray, face: np.ndarray, hessian: np.ndarray
    ) -> tuple[np.ndarray, float, float]:
        """Return the step to the minimum of the model, its slope, and its predicted gain."""
        penalty, free, n_outputs = objective.penalty, objective.free, W.shape[1]
        G = self._smooth_gradient(objective, W)
        moving = face != 0
        columns = np.nonzero(moving)[0]
        whole = n_outputs if objective.problem.shift_invariant else 0
        model = KinkedModel(
            hessian, G[moving], W[moving], columns, penalty.kink, free * n_outputs, whole
        )
        x = model.least()
        change, slope = model.change(x)
        step = np.zeros_like(W)
        step[moving] = x - W[moving]
        return step, slope, -change

    def _model_search(
        self,
        objective: Objective,
        W: np.ndarray,
        step: np.ndarray,
        slope: float,
        promised: float,
        value: float,
        part: float,
    ) -> tuple[np.ndarray, float] | None:
        """Halve ``part`` of a step until Φ falls enough. Return None if rounding prevents this.

        If Φ falls clearly further than ``promised`` in a whole step, the step is doubled as long as
        that helps. The step then follows a tail of the loss, for example e^−s. There, every Newton
        step moves s by only 1. Φ falls by 1 − 1/e of its value, while ½ of it was predicted.
        """
        noise = objective.noise(value)

        def trial(t: float) -> tuple[float, float, np.ndarray]:
            candidate = self._shifted(objective, self._along(objective, W, step, t))
            return objective.evaluate(candidate)[0], t * slope, candidate

        fallen = backtrack(trial, part, value, noise)
        if fallen is None:
            return None
        t, new, found = fallen
        if t < 1.0 or value - new <= TAIL * promised + noise:
            return found, new
        while True:
            t *= 2.0
            less, _, farther = trial(t)
            if not less < new - noise:
                objective.evaluate(found)
                return found, new
            found, new = farther, less

    @staticmethod
    def _along(objective: Objective, W: np.ndarray, step: np.ndarray, t: float) -> np.ndarray:
        """Return the weights after ``t`` times a step. Beyond its end no weight passes zero."""
        if t < 1.0:
            return W + t * step
        end = W + step
        out = end + (t - 1.0) * step
        passes = out * end <= 0
        passes[: objective.free] = False
        return np.where(passes, 0.0, out)

    def _step(
        self, objective: Objective, W: np.ndarray, face: np.ndarray, slope: np.ndarray
    ) -> np.ndarray:
        """Return a Newton step in the weights of the face, by conjugate gradients.

        If it would take weights at zero out of the orthant, they leave the face, and the step is
        computed again.
        """
        moving = face != 0
        inverses = objective.class_inverses(W, moving.any(axis=1))
        at_zero = W == 0
        at_zero[: objective.free] = False

        def apply(r: np.ndarray) -> np.ndarray:
            out = np.zeros_like(r)
            for columns, inverse in inverses:
                out[columns] = np.matmul(inverse, r[columns].T[:, :, None])[:, :, 0].T
            return out * moving

        while True:
            downhill = np.where(moving, -slope, 0.0)
            step, _ = conjugate_gradients(lambda p: objective.curve(W, p) * moving, apply, downhill)
            leaves = at_zero & (step * face < 0)
            if not leaves.any():
                break
            moving[leaves] = False
        if objective.problem.shift_invariant:  # nothing else keeps intercepts from drifting
            step[: objective.free] -= step[: objective.free].mean(axis=1, keepdims=True)
        return step

    def _search(
        self,
        objective: Objective,
        W: np.ndarray,
        slope: np.ndarray,
        step: np.ndarray,
        value: float,
        part: float,
    ) -> tuple[np.ndarray, float] | None:
        """Halve ``part`` of a step until Φ falls enough. Return None if rounding prevents this.

        Up to the point where the first weight reaches zero, the step leads down. Beyond it, weights
        that have reached zero stay there, which may raise Φ. In that case the step ends exactly at
        this point. That weight is then at zero and does not stop the next step.
        """
        noise = objective.noise(value)
        at_zero = np.full_like(step, np.inf)
        np.divide(-W, step, out=at_zero, where=step * W < 0)
        at_zero[: objective.free] = np.inf
        first = float(at_zero.min())

        def trial(t: float) -> tuple[float, float, np.ndarray]:
            candidate = self._shifted(objective, np.where(at_zero <= t, 0.0, W + t * step))
            new, _ = objective.evaluate(candidate)
            return new, min(float(np.vdot(slope, candidate - W)), 0.0), candidate

        def shorter(t: float) -> float:
            return first if 0.5 * t < first < t else 0.5 * t

        found = backtrack(trial, part, value, noise, shorter)
        return None if found is None else (found[2], found[1])

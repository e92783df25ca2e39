"""Joint descent on parameters and weights, by Adam (Kingma and Ba 2015), batch by batch.

One step is the same for every kind of atom, for arrays and for tensors. The columns of a batch are
x_j = s_j z_j(θ) − m_j, with the factors s and the means m of the path. Scores are W'x + b. The
gradients of the batch's objective are

    ∇_W = −X R' + ∇Ω(W),   ∇_b = −Σ_i R_i,   ∇_θ = −Σ_i Σ_j s_j ⟨R_i, W_j⟩ ∂z_ij/∂θ,

with the residual R of `laconic.losses`. Where Ω has a kink, ∇Ω is the mean of the slopes on both
sides. Weights may have either sign and pass through zero: TotalQBoost's w ≥ 0 over atoms h and −h
are weights of either sign over h alone, with the same l1 ‖w‖₁. The price of a given set of atoms is
a constant. The intercept has no penalty. After every step the parameters are `settled`, so that no
column grows to evade the penalty. The length of a step is a share of the size of what it moves. It
falls from ``rate`` to zero along half a cosine, so that the last steps average out the noise of the
batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from laconic.losses import Loss
from laconic.numeric.namespaces import is_tensor, namespace, numbers_like, to_host
from laconic.penalties import BUILT_IN, Penalty
from laconic.tune.batches import Batch
from laconic.tune.contract import Tunable
from laconic.tune.kept import KeptSize

# Means of gradients and of their squares forget this share in every step, as Adam usually does.
KEPT, SQUARES_KEPT = 0.9, 0.999
# Gradients below this share of their usual size are noise.
LEAST = 1e-8


class TunedModel(NamedTuple):
    """What is tuned. Weights are in scaled units."""

    parameters: list[Any]
    weights: Any
    """(n_columns, n_outputs)"""
    base: Any
    """(n_outputs,)"""


class Frame(NamedTuple):
    """What stays as it is: column = scale · value − mean."""

    scales: Any
    means: Any
    loss: Loss
    penalty: Penalty
    intercept: bool


Sums = Callable[[Tunable, TunedModel, Frame, Any], tuple[Any, list[Any]]]
"""Returns the sums over a batch, as `batch_sums` does, wherever its rows are."""


def batch_sums(
    atoms: Tunable, model: TunedModel, frame: Frame, batch: Batch
) -> tuple[Any, list[Any]]:
    """Return the loss of a batch, and its gradients in all parts of the model.

    Both are sums over rows. On a device the loss is a tensor, so that nothing waits for it.
    """
    through = _by_scores if hasattr(atoms, "scores") else _by_columns
    scores, slopes_of = through(atoms, model, frame, batch.X)
    xp = namespace(scores)
    target = frame.loss.targets(batch.codes, len(model.base))
    state = xp.empty_like(scores)
    value = frame.loss.evaluate(scores, target, batch.weight, state)
    residual = frame.loss.residual(target, batch.weight, state)
    slopes, products = slopes_of(residual)
    of_base = -residual.sum(1) if frame.intercept else 0.0 * model.base
    return value, [*slopes, -products, of_base]


SlopesOf = Callable[[Any], tuple[list[Any], Any]]
"""Takes the residual R to the gradients of the loss in the parameters, and to X R'."""


def _by_columns(atoms: Any, model: TunedModel, frame: Frame, X: Any) -> tuple[Any, SlopesOf]:
    """Return the scores of some rows, by way of `laconic.tune.contract.TunableColumns`."""
    values, kept = atoms.values(model.parameters, X)
    columns = values * frame.scales[:, None] - frame.means[:, None]
    scores = model.weights.T @ columns + model.base[:, None]

    def slopes_of(residual: Any) -> tuple[list[Any], Any]:
        pull = -(model.weights * frame.scales[:, None]) @ residual
        return atoms.slopes(kept, pull), columns @ residual.T

    return scores, slopes_of


def _by_scores(atoms: Any, model: TunedModel, frame: Frame, X: Any) -> tuple[Any, SlopesOf]:
    """Return the same by way of `laconic.tune.contract.TunableScores`."""
    scores, kept = atoms.scores(model.parameters, X, model.weights * frame.scales[:, None])
    scores = scores + (model.base - frame.means @ model.weights)[:, None]

    def slopes_of(residual: Any) -> tuple[list[Any], Any]:
        slopes, sums = atoms.sums(kept, residual)
        centred = sums * frame.scales[:, None] - frame.means[:, None] * residual.sum(1)
        return [-slope for slope in slopes], centred

    return scores, slopes_of


def loss_and_slopes(
    atoms: Tunable, model: TunedModel, frame: Frame, batch: Any, sums: Sums = batch_sums
) -> tuple[Any, list[Any]]:
    """Return the loss of a batch, and the objective's gradients in all parts of the model."""
    value, [*slopes, slope, of_base] = sums(atoms, model, frame, batch)
    return value, [*slopes, slope + _slope(frame.penalty, model.weights), of_base]


def _slope(penalty: Penalty, weights: Any) -> Any:
    """Return the gradient of a penalty. Only the built-in ones take tensors."""
    if not is_tensor(weights) or type(penalty) in BUILT_IN:
        return penalty.gradient(weights)
    return numbers_like(penalty.gradient(to_host(weights)), weights)


class Descent:
    """Steps along means of gradients, over the roots of means of their squares.

    Everything that a step changes is changed in place, so that a GPU can repeat it as a graph.

    ``parts`` are the arrays of the model.

    Parameters
    ----------
    atoms : Tunable
    model : TunedModel
        Where to start. It is not changed.
    frame : Frame
    rate : float
        Length of the first step, as a share of `Tunable.units` for parameters, and of the root of
        the mean squared weight for weights.
    n_steps : int
        Number of steps until the length is zero.
    sums : Sums
        What returns the sums over a batch.
    """

    def __init__(
        self,
        atoms: Tunable,
        model: TunedModel,
        frame: Frame,
        rate: float,
        n_steps: int,
        sums: Sums = batch_sums,
    ) -> None:
        size = float((model.weights * model.weights).mean()) ** 0.5 or 1.0
        self._atoms, self._frame, self._sums = atoms, frame, sums
        self._lengths = [rate * length for length in (*atoms.units, size, size)]
        self.parts = [0.0 + array for array in _parts(model)]
        self._mean = [0.0 * array for array in self.parts]
        self._square = [0.0 * array for array in self.parts]
        self._done, self._n_steps = 0.0 * self.parts[-1][:1], n_steps
        self.loss = 0.0 * self._done

    def model(self) -> TunedModel:
        """Return the present model."""
        *parameters, weights, base = (0.0 + array for array in self.parts)
        return TunedModel(parameters, weights, base)

    def state(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the parts of the model, and the means of their gradients and of the squares.

        Later steps change these arrays.
        """
        return self.parts, self._mean, self._square

    def resume(self, *state: list[Any], n_steps: int) -> None:
        """Go on from a state after so many steps."""
        for own, kept in zip(self.state(), state, strict=True):
            for array, values in zip(own, kept, strict=True):
                array[...] = numbers_like(values, array)
        self._done[...] = n_steps

    def step(self, batch: Any) -> None:
        """Take a step, and add the loss of the batch to ``loss``."""
        *parameters, weights, base = self.parts
        now = TunedModel(parameters, weights, base)
        value, slopes = loss_and_slopes(self._atoms, now, self._frame, batch, self._sums)
        self.loss += value
        xp = namespace(self.loss)
        fall = 0.5 * (1.0 + xp.cos(self._done * (math.pi / self._n_steps)))
        self._done += 1.0
        fading, squares_fading = KEPT**self._done, SQUARES_KEPT**self._done
        moved = []
        for k, slope in enumerate(slopes):
            mean, square = self._mean[k], self._square[k]
            mean += (1.0 - KEPT) * (slope - mean)
            square += (1.0 - SQUARES_KEPT) * (slope * slope - square)
            size = (square / (1.0 - squares_fading)) ** 0.5 + LEAST
            length = fall * self._lengths[k] / (1.0 - fading)
            moved.append(self.parts[k] - length * mean / size)
        n = len(parameters)
        for part, new in zip(
            self.parts, [*self._atoms.settled(moved[:n]), *moved[n:]], strict=True
        ):
            part[...] = new


def descend(
    atoms: Tunable,
    model: TunedModel,
    frame: Frame,
    batches: Any,
    epochs: int,
    rate: float,
    told: Callable[[int, TunedModel, float], bool],
    sums: Sums = batch_sums,
    kept: KeptSize | None = None,
) -> TunedModel:
    """Return the model after some epochs.

    ``batches`` are `laconic.tune.rows.AnyBatches`, and ``sums`` knows them. ``told`` is called
    after every epoch with its number, the model and the mean loss of its batches. A true answer
    ends the descent. ``kept`` may know how far an earlier fit came, and keeps how far this one is.
    """
    descent = Descent(atoms, model, frame, rate, epochs * batches.n_batches, sums)
    done = 0 if kept is None else kept.resume(descent, epochs, batches.n_batches)
    step = repeated(descent.step) if is_tensor(model.weights) else descent.step
    for epoch in range(done, epochs):
        descent.loss[...] = 0.0
        for batch in batches.epoch(epoch):
            step(batch)
        value = float(descent.loss[0]) / batches.n_batches
        if kept is not None:
            kept.keep(descent, epoch + 1, value)
        if told(epoch, descent.model(), value):
            break
    return descent.model()


def repeated(step: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a step that a GPU repeats as a graph, for batches of the size of the first one."""
    from laconic.device.repeat import Repeated

    return Repeated(step)


def _parts(model: TunedModel) -> tuple[Any, ...]:
    return *model.parameters, model.weights, model.base

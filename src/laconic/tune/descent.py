"""Joint descent on parameters and weights, by Adam (Kingma and Ba 2015), batch by batch.

One step is the same for every kind of atom, for arrays and for tensors. The columns of a batch are
x_j = s_j z_j(θ) − m_j, with the factors s and the means m of the path. Scores are W'x + b. The
gradients of the batch's objective are

    ∇_W = −X R' + ∇Ω(W),   ∇_b = −Σ_i R_i,   ∇_θ = −Σ_i Σ_j s_j ⟨R_i, W_j⟩ ∂z_ij/∂θ,

with the residual R of `laconic.losses`. After every step the parameters are `settled`, so that no
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
from laconic.penalties import PENALTIES, Penalty
from laconic.tune.batches import Batch, Batches
from laconic.tune.contract import Tunable

# Means of gradients and of their squares forget this share in every step, as Adam usually does.
KEPT, SQUARES_KEPT = 0.9, 0.999
# Gradients below this share of their usual size are noise.
LEAST = 1e-8


class Model(NamedTuple):
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


class Adam:
    """Steps along means of gradients, over the roots of means of their squares.

    Parameters
    ----------
    start : list of arrays
        What is moved.
    lengths : list of float
        Length of a step in an entry of each array, at rate 1.
    """

    def __init__(self, start: list[Any], lengths: list[float]) -> None:
        self._lengths = lengths
        self._mean = [0.0 * array for array in start]
        self._square = [0.0 * array for array in start]
        self._steps = 0

    def moved(self, now: list[Any], gradients: list[Any], rate: float) -> list[Any]:
        """Return the arrays after a step."""
        self._steps += 1
        fading, squares_fading = KEPT**self._steps, SQUARES_KEPT**self._steps
        out = []
        for k, (array, gradient) in enumerate(zip(now, gradients, strict=True)):
            mean, square = self._mean[k], self._square[k]
            mean += (1.0 - KEPT) * (gradient - mean)
            square += (1.0 - SQUARES_KEPT) * (gradient * gradient - square)
            size = (square / (1.0 - squares_fading)) ** 0.5 + LEAST
            step = mean / (1.0 - fading) / size
            out.append(array - (rate * self._lengths[k]) * step)
        return out


def loss_and_slopes(
    atoms: Tunable, model: Model, frame: Frame, batch: Batch
) -> tuple[Any, list[Any]]:
    """Return the loss of a batch, and the objective's gradients in all parts of the model.

    On a device the loss is a tensor, so that nothing waits for it.
    """
    values, kept = atoms.values(model.parameters, batch.X)
    columns = values * frame.scales[:, None] - frame.means[:, None]
    weights, n_outputs = model.weights, len(model.base)
    scores = weights.T @ columns + model.base[:, None]
    xp = namespace(scores)
    target = frame.loss.targets(batch.codes, n_outputs)
    state = xp.empty_like(scores)
    value = frame.loss.evaluate(scores, target, batch.weight, state)
    residual = frame.loss.residual(target, batch.weight, state)
    slope = _slope(frame.penalty, weights) - columns @ residual.T
    pull = -(weights * frame.scales[:, None]) @ residual
    of_base = -residual.sum(1) if frame.intercept else 0.0 * model.base
    return value, [*atoms.slopes(kept, pull), slope, of_base]


def _slope(penalty: Penalty, weights: Any) -> Any:
    """Return the gradient of a penalty. Only the built-in ones take tensors."""
    if not is_tensor(weights) or type(penalty) in PENALTIES.values():
        return penalty.gradient(weights)
    return numbers_like(penalty.gradient(to_host(weights)), weights)


def descend(
    atoms: Tunable,
    model: Model,
    frame: Frame,
    batches: Batches,
    epochs: int,
    rate: float,
    told: Callable[[int, Model, float], bool],
) -> Model:
    """Return the model after some epochs.

    ``told`` is called after every epoch with its number, the model and the mean loss of its
    batches. A true answer ends the descent.
    """
    size = float((model.weights * model.weights).mean()) ** 0.5 or 1.0
    descent = Adam(list(_parts(model)), [*atoms.units, size, size])
    total = epochs * batches.n_batches
    done = 0
    for epoch in range(epochs):
        sums: Any = 0.0
        for batch in batches.epoch(epoch):
            value, gradients = loss_and_slopes(atoms, model, frame, batch)
            now = rate * 0.5 * (1.0 + math.cos(math.pi * done / total))
            *parameters, weights, base = descent.moved(list(_parts(model)), gradients, now)
            model = Model(atoms.settled(parameters), weights, base)
            sums = sums + value
            done += 1
        if told(epoch, model, float(sums) / batches.n_batches):
            break
    return model


def _parts(model: Model) -> tuple[Any, ...]:
    return *model.parameters, model.weights, model.base

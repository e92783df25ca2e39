"""Line 10 of TotalQBoost's algorithm 1 as in the paper: a sampler chooses discrete weights.

Notes
-----
*Weights* (section 3.5) are fixed-point numbers of a few bits, w_j = sign_j · unit · Σ_b 2^b q_jb
with q_jb in {0, 1}. The unit comes from the continuous weights at the present point: the largest
fixed-point number is `SPREAD` times the largest of these weights. The sign also comes from the
present point, if weights may be negative. It is the sign of the weight. For a weight of zero it is
the sign of the direction in which the loss falls.

*The loss* is replaced by its second-order model around the present point. The intercept, which has
no price, is at its optimum for all other weights. The model is quadratic in the bits, and the l1
term is linear in them.

*The price* needs one more bit z_j for every column, and no penalty strength to tune:

    price · 1[w_j ≠ 0] = min over z_j of price · (z_j + (1 − z_j) Σ_b q_jb) ,

because z_j = 0 charges for every bit that is set, and z_j = 1 charges once.

*A cap* is the constraint Σ_j z_j ≤ cap with slack bits. One column too many is charged the average
gain of the columns up to the cap. This is usually at least the gain of the next column. If a
support is still too large, its cheapest columns are dropped.

The supports of the best samples get continuous weights (lines 12 and 13). The best of these fits is
the next point. The search ends when a support comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from laconic.subset.contract import Fit
from laconic.subset.moves import Moves
from laconic.subset.problem import SubsetProblem

# Largest fixed-point weight, as a multiple of the largest weight at the present point.
SPREAD = 1.5
# Number of supports that are fitted after one call of the sampler, best energies first.
TRIED = 8
# Work of one call of the samplers on this machine. No clock stops them, so a seed fixes the answer.
TABU = {"num_reads": 4, "timeout": None, "num_restarts": 4, "lower_bound_z": 100_000}
ANNEAL = {"num_reads": 16, "num_sweeps": 500}


def qubo_search(
    problem: SubsetProblem,
    price: float,
    cap: int,
    starts: Iterable[Iterable[int]] = (),
    *,
    sampler: Any,
    parameters: Mapping[str, Any] | None = None,
    bits: int = 6,
    rounds: int = 20,
    seed: int = 0,
    allows: Callable[[tuple[int, ...]], bool] | None = None,
) -> Fit:
    """Return the best fit that a sampler finds for value + price · |support|, |support| ≤ cap.

    Parameters
    ----------
    problem : SubsetProblem
    price : float
        λ for the mean loss.
    cap : int
        Largest size of a support.
    starts : iterable of supports
        The result is at least as good as each of these supports that is within the cap.
    sampler : dimod sampler
        Any object with a method ``sample(model, **parameters)``.
    parameters : mapping, optional
        Arguments for the sampler, passed with every model.
    bits : int
        Number of bits of one weight.
    rounds : int
        Largest number of models, one per call of the sampler.
    seed : int
        Seed for samplers that take one.
    allows : callable, optional
        Returns whether a support within the cap is allowed. The empty support must be, and every
        part of an allowed support. The sampler does not know of this. The cheapest columns of a
        support are dropped until it is allowed.
    """
    if not 1 <= bits <= 16:
        raise ValueError(f"bits must be from 1 to 16, not {bits!r}.")
    every = problem.fit(tuple(range(problem.n_columns)))
    known = [problem.fit(()), *(problem.fit(tuple(sorted(s))) for s in starts)]

    def fits(support: tuple[int, ...]) -> bool:
        return len(support) <= cap and (allows is None or allows(support))

    best = min((f for f in known if fits(f.support)), key=_objective(price))
    if cap == 0 or not every.weights[: problem.n_columns].any():
        return best
    worth = (known[0].value - every.value) / cap if cap < problem.n_columns else 0.0
    point, unit = every, 0.0
    seen: set[tuple[int, ...]] = set()
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        largest = np.abs(point.weights[: len(point.support)]).max(initial=0.0)
        unit = SPREAD * largest / (2**bits - 1) if largest > 0 else unit
        model = binary_model(problem, point, price, cap, worth, unit * 2.0 ** np.arange(bits))
        samples = sampler.sample(model, **_seeded(sampler, parameters or {}, rng))
        supports = _supports(sampler, samples, problem.n_columns, bits)
        found = [_within(problem, support, fits) for support in supports]
        point = min(found, key=_objective(price))
        best = min(best, point, key=_objective(price))
        if point.support in seen:
            break
        seen.add(point.support)
    return best


def binary_model(
    problem: SubsetProblem, point: Fit, price: float, cap: int, worth: float, values: np.ndarray
) -> Any:
    """Return the objective around a point as a dimod model of bits (see the module's notes).

    Bit b of column j is variable ``j * len(values) + b`` and adds ``values[b]`` to the weight. Bit
    z_j is variable ``n_columns * len(values) + j``.
    """
    dimod = _ocean("dimod")
    n, bits = problem.n_columns, len(values)
    constant, linear, curvature = quadratic_model(problem, point)
    decode = np.kron(np.diag(signs(problem, point, linear, curvature)), values)
    Q = np.zeros((n * (bits + 1), n * (bits + 1)))
    Q[: n * bits, : n * bits] = decode.T @ (0.5 * curvature) @ decode
    Q[np.diag_indices(n * bits)] += decode.T @ linear + problem.l1 * np.tile(values, n)
    charge = price + worth
    for j in range(n):
        own, z = np.arange(j * bits, (j + 1) * bits), n * bits + j
        Q[own, own] += charge
        Q[own, z] -= charge
        Q[z, z] += price
    pairs = np.triu(Q + Q.T, 1)
    rows, columns = np.nonzero(pairs)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        np.diag(Q), (rows, columns, pairs[rows, columns]), constant, dimod.BINARY
    )
    if cap < n:
        used = [(n * bits + j, 1) for j in range(n)]
        model.add_linear_inequality_constraint(used, worth, "cap", ub=cap)
    return model


def quadratic_model(problem: SubsetProblem, point: Fit) -> tuple[float, np.ndarray, np.ndarray]:
    """Return c, a and H of the second-order model c + aᵀw + ½ wᵀHw of the mean loss around a point.

    w holds the weights of all columns. The intercept is at its optimum for every w.
    """
    n, at = problem.n_columns, _all_weights(problem, point)
    S = problem.matrix(range(n))
    value, first, second = problem.derivatives(S, at)
    slope, H = S @ first, (S * second) @ S.T
    if problem.intercept:
        along = H[n, :n] / max(H[n, n], 1e-300)
        value -= 0.5 * slope[n] ** 2 / max(H[n, n], 1e-300)
        slope, H = slope[:n] - slope[n] * along, H[:n, :n] - np.outer(along, H[n, :n])
    w = at[:n]
    return value - slope @ w + 0.5 * w @ H @ w, slope - H @ w, H


def signs(
    problem: SubsetProblem, point: Fit, linear: np.ndarray, curvature: np.ndarray
) -> np.ndarray:
    """Return the sign that each weight may have.

    It is the weight's sign at the point. For a weight of zero it is the sign of the direction in
    which the loss falls.
    """
    if problem.nonnegative:
        return np.ones(problem.n_columns)
    w = _all_weights(problem, point)[: problem.n_columns]
    return np.sign(np.where(w != 0, w, -(linear + curvature @ w)))


def tabu_sampler() -> Any:
    """Return Palubeckis' multistart tabu search, which the paper used."""
    return _ocean("dwave.samplers").TabuSampler()


def annealing_sampler() -> Any:
    """Return simulated annealing."""
    return _ocean("dwave.samplers").SimulatedAnnealingSampler()


def _ocean(module: str) -> Any:
    """Import a module of D-Wave's Ocean. If it is missing, the error says what to install."""
    try:
        return import_module(module)
    except ImportError as missing:
        raise ImportError(
            f'This search needs the module {module}. Install it with: pip install ".[dwave]"'
        ) from missing


def _all_weights(problem: SubsetProblem, point: Fit) -> np.ndarray:
    """Return the weights of all columns at a point. The intercept, if there is one, is last."""
    n, out = len(point.support), np.zeros(problem.n_columns + int(problem.intercept))
    out[list(point.support)] = point.weights[:n]
    out[problem.n_columns :] = point.weights[n:]
    return out


def _objective(price: float) -> Any:
    return lambda fit: fit.value + price * len(fit.support)


def _seeded(
    sampler: Any, parameters: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return the parameters, with a new seed if the sampler takes one and none was given."""
    seed = int(rng.integers(2**31))
    takes = "seed" in (getattr(sampler, "parameters", None) or {})
    return {"seed": seed, **parameters} if takes else dict(parameters)


def _supports(sampler: Any, samples: Any, n_columns: int, bits: int) -> list[tuple[int, ...]]:
    """Return the different supports of the samples, best energies first.

    Samples may be bits or spins.
    """
    try:
        where = [samples.variables.index(v) for v in range(n_columns * bits)]
        order = np.argsort(samples.record.energy, kind="stable")
        rows = np.asarray(samples.record.sample)[order][:, where] > 0
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        rows = np.empty((0, n_columns * bits), dtype=bool)
    if not len(rows):
        raise TypeError(
            f"The method sample of {type(sampler).__name__} must return a dimod.SampleSet "
            f"with a value for every variable of the model, not {samples!r:.100}."
        )
    rows = rows.reshape(-1, n_columns, bits)
    used = [tuple(np.flatnonzero(row.any(axis=1)).tolist()) for row in rows]
    return list(dict.fromkeys(used))[:TRIED]


def _within(
    problem: SubsetProblem, support: tuple[int, ...], fits: Callable[[tuple[int, ...]], bool]
) -> Fit:
    """Fit a support. Drop columns of weight zero, and the cheapest columns until it fits."""
    fit = problem.fit(support)
    used = fit.weights[: len(support)] != 0
    if not used.all():
        fit = problem.fit(tuple(np.array(support)[used].tolist()))
    while not fits(fit.support):
        moves = Moves(problem, fit)
        fit = moves.make(moves.drops(1)[0])
    return fit

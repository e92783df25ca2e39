"""How fast is one correction, compared with the multinomial solvers of scikit-learn?

The data are the 200 pixel columns of largest variance of the 60,000 MNIST training rows, scaled to
[0, 1], with 10 classes. The problem is the same for all solvers:

    Φ(W) = mean log-loss + (alpha/2) ‖W‖², the intercept not penalised,

for alpha 1e-6 and 1e-3. A solver has solved it when the Euclidean norm of ∇Φ is at most 1e-6 or Φ
is within 1e-9 (relative) of the lowest value that any solver found. One function, which belongs to
no solver, computes both in float64. The solvers of scikit-learn get a smaller and smaller `tol`
until the problem is solved, and only the successful run counts. A run is cut off at `--cap`
seconds. Our time includes everything after the matrix is given: start-up, set-up and solve. Both
sides of the ratio are in float64.

Run: python benchmarks/corrector.py [--cap 300] [--json FILE]
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from _common import arguments, load, progress, save, show, start_up, table, timed, verdict
from sklearn.linear_model import LogisticRegression

ALPHAS = (1e-6, 1e-3)
COLUMNS = 200
GRADIENT = 1e-6
CLOSE = 1e-9
FASTER = 3.0
SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")


class Run(NamedTuple):
    """One solver's run."""

    solver: str
    seconds: float | None
    value: float | None = None
    gradient: float | None = None
    note: str = ""


class Capped(Exception):
    """A run took too long."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--cap", type=float, default=300.0, help="time limit of one run, in seconds"
    )
    parser.add_argument("--solvers", nargs="+", default=SOLVERS)
    args = parser.parse_args()
    data = load(args.data, "mnist")
    pixels = data["X_train"].reshape(len(data["X_train"]), -1)
    top = np.sort(np.argsort(pixels.var(axis=0))[-COLUMNS:])
    X, y = pixels[:, top] / 255.0, data["y_train"]
    results = {str(alpha): compare(X, y, alpha, args.solvers, args.cap) for alpha in ALPHAS}
    print()
    for alpha, found in results.items():
        found["verdict"] = verdict(
            f"alpha {alpha}, times faster than the fastest of scikit-learn",
            found["faster"] or 0.0,
            FASTER,
            True,
        )
    save(args.json, args, [], results)


def objective(
    X: np.ndarray, y: np.ndarray, W: np.ndarray, b: np.ndarray, alpha: float
) -> tuple[float, float]:
    """Return Φ and the norm of ∇Φ in float64. A row of W holds the weights of one column."""
    scores = X @ W.astype(np.float64) + b
    top = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(axis=1, keepdims=True)
    mine = np.arange(len(y)), y.astype(np.int64)
    loss = np.mean(np.log(total)[:, 0] + top[:, 0] - scores[mine])
    p /= total
    p[mine] -= 1.0
    gradient = np.vstack([X.T @ p / len(y) + alpha * W, p.mean(axis=0)])
    return float(loss + 0.5 * alpha * np.sum(W.astype(np.float64) ** 2)), float(
        np.linalg.norm(gradient)
    )


def compare(X: np.ndarray, y: np.ndarray, alpha: float, solvers: Any, cap: float) -> dict[str, Any]:
    runs: list[Run] = []
    for dtype in (np.float64, np.float32):
        runs += ours(X, y, alpha, np.dtype(dtype))
    best = min(r.value for r in runs if r.value is not None)
    for solver in solvers:
        run = scikit_learn(X, y, alpha, solver, best, cap)
        runs.append(run)
        best = min(best, run.value if run.value is not None else best)
    rows = []
    for r in runs:
        excess = None if r.value is None else r.value / best - 1.0
        rows.append([r.solver, r.seconds, r.value, excess, r.gradient, r.note])
    table(
        f"MNIST {X.shape[0]} x {X.shape[1]}, 10 classes, alpha {alpha:g}",
        ["solver", "seconds", "objective", "above best", "gradient", ""],
        rows,
    )
    mine = [r.seconds for r in runs if r.solver == "laconic Newton float64" and solved(r, best)]
    peers = [r.seconds for r in runs if r.solver in solvers and solved(r, best)]
    faster = min(peers) / min(mine) if mine and peers else None
    return {"runs": [r._asdict() for r in runs], "best": best, "faster": faster}


def solved(run: Run, best: float) -> bool:
    if run.value is None or run.gradient is None or run.seconds is None:
        return False
    return run.gradient <= GRADIENT or run.value <= best * (1.0 + CLOSE)


def ours(X: np.ndarray, y: np.ndarray, alpha: float, dtype: np.dtype) -> list[Run]:
    """Run the Newton corrector, and the paper's corrector to a looser tolerance."""
    from laconic.correct import Nesterov, Newton
    from laconic.losses import LogLoss
    from laconic.numeric.threads import Threads
    from laconic.penalties import L2
    from laconic.pools import Columns
    from laconic.rows.rows import Rows, rows_in_memory

    k = int(y.max()) + 1
    X_given = X.astype(dtype)

    def rows_of(n: int, threads: Threads) -> Rows:
        weight = np.full(n, 1.0 / n)
        pool = Columns(scale=None).bind(X_given[:n], weight, threads)
        rows = rows_in_memory([pool], LogLoss(), y[:n].astype(np.int64), weight, k, threads)
        rows.reset(range(X.shape[1]))
        return rows

    def solve(rows: Rows, corrector: Any) -> Any:
        return corrector.solve(rows, L2(alpha), np.zeros((rows.n_columns, k)))

    with Threads() as threads:
        once = start_up(lambda: solve(rows_of(2000, threads), Newton()))
        ready, rows = timed(rows_of, len(y), threads)
        seconds, answer = timed(solve, rows, Newton(gradient_tol=GRADIENT))
        whole = once + ready + seconds
        runs = [our_run(X, y, alpha, f"laconic Newton {dtype}", whole, rows, answer)]
        runs[0] = runs[0]._replace(
            note=f"{runs[0].note}; start-up {once:.2f} s and set-up {ready:.2f} s counted"
        )
        if dtype == np.float64:
            loose = Nesterov(gradient_tol=1e-3)
            seconds, answer = timed(solve, rows, loose)
            name = "laconic Nesterov, gradient 1e-3"
            runs.append(our_run(X, y, alpha, name, seconds, rows, answer))
    return runs


def our_run(
    X: np.ndarray, y: np.ndarray, alpha: float, name: str, seconds: float, rows: Any, answer: Any
) -> Run:
    W, certificate = answer.weights, answer.certificate
    intercept = W[0] - rows.means[1:] @ W[1:]  # rows hold centred columns
    value, gradient = objective(X, y, W[1:], intercept, alpha)
    note = f"{certificate.evaluations} evaluations, {certificate.products} products"
    return Run(name, seconds, value, gradient, note)


def scikit_learn(
    X: np.ndarray, y: np.ndarray, alpha: float, solver: str, best: float, cap: float
) -> Run:
    """Lower ``tol`` until a run solves the problem, and return that run."""

    def fit(tol: float, limit: int) -> LogisticRegression:
        C = 1.0 / (alpha * len(y))
        return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=limit).fit(X, y)

    limit = 100_000
    if solver.startswith(
        "sag"
    ):  # it cannot be interrupted, so limit the sweeps to what fits in the cap
        limit = max(1, int(cap / timed(quiet, fit, 0.0, 2)[0] * 2))
    run = Run(solver, None, note="no run")
    for power in range(4, 13):
        try:
            with at_most(cap):
                seconds, model = timed(quiet, fit, 10.0**-power, limit)
        except Capped:
            return run._replace(
                note=f"over {cap:.0f} s at tol 1e-{power}; this is tol 1e-{power - 1}"
            )
        value, gradient = objective(X, y, model.coef_.T, model.intercept_, alpha)
        progress(f"{solver}, tol 1e-{power}: {seconds:.1f} s, gradient {show(gradient)}")
        note = f"tol 1e-{power}, {model.n_iter_.max()} iterations"
        run = Run(solver, seconds, value, gradient, note)
        if solved(run, best):
            return run
        if model.n_iter_.max() >= limit:
            return run._replace(note=f"{note}: over {cap:.0f} s")
    return run._replace(note=f"{run.note}: goes no further")


def quiet(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the objective shows whether it converged
        return function(*args)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `Capped` in code that runs longer, when it next returns to Python."""

    def stop(*_: Any) -> None:
        raise Capped

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


if __name__ == "__main__":
    main()

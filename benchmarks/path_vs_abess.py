"""Is one whole path faster and better than best-subset and mixed-norm selection?

The atoms are all products of two different max-scaled features of pendigits and satellite. Every
method gets the same explicit matrix. Laconic runs at its defaults, with a penalty of 1e-6, with
rule="projection", and with refine=True. The peers are:

* abess.MultinomialRegression(support_size=range(1, 41)), one call, on one thread and on all cores.
  The faster one counts. The call returns only one size. The model of another size n along its path
  comes from a call with range(1, n + 1) that chooses by training loss. These calls are not timed.
* 40 single abess fits, one for every size, which start cold.
* adelie.grpnet, multinomial, with one group of coefficients for every feature and 60 penalties. Its
  model of n atoms is the point of the path with the most active groups up to n. Its shrunken
  weights are also replaced by a logistic regression on the same features ("refitted").

Nothing is tuned on the test rows. Run: python benchmarks/path_vs_abess.py [--json FILE]
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _common import (
    CORES,
    affinity_kept,
    arguments,
    error,
    load,
    median_time,
    progress,
    save,
    table,
    timed,
    verdict,
)

SIZES = range(1, 41)
SHOWN = (5, 10, 20, 40)
FASTER = {"pendigits": 15.0, "satellite": 5.0}
OURS = {
    "laconic": {},
    "laconic alpha=1e-6": {"alpha": 1e-6},  # the default of earlier versions
    'laconic rule="projection"': {"rule": "projection"},
    "laconic refine=True": {"refine": True},
}
LOWER = {"laconic": 30, "laconic refine=True": 36}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(FASTER), choices=list(FASTER))
    parser.add_argument(
        "--skip-sizes", action="store_true", help="of abess, time only the single call"
    )
    args = parser.parse_args()
    results = {}
    for name in args.sets:
        results[name] = compare(name, *products(load(args.data, name)), args.skip_sizes)
    for name, found in results.items():
        found["verdicts"] = [
            *(
                verdict(f"{name}, {ours}: sizes with lower error than {peer}", n, need, True)
                for ours, need in LOWER.items()
                for peer, (n, _) in found["lower"][ours].items()
                if peer in ("abess single", "abess path")
            ),
            verdict(
                f"{name}, times faster than abess's one call", found["faster"], FASTER[name], True
            ),
        ]
    save(args.json, args, ["abess", "adelie"], results)


def products(data: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the products x_i x_j, i < j, of features scaled by their largest training value."""
    top = data["X_train"].max(axis=0).astype(float)
    i, j = np.triu_indices(len(top), 1)
    train, test = data["X_train"] / top, data["X_test"] / top
    return train[:, i] * train[:, j], data["y_train"], test[:, i] * test[:, j], data["y_test"]


def compare(
    name: str, P: np.ndarray, y: np.ndarray, Q: np.ndarray, z: np.ndarray, skip_sizes: bool
) -> dict[str, Any]:
    seconds: dict[str, float] = {}
    errors: dict[str, list[float | None]] = {}
    for ours, settings in OURS.items():
        seconds[ours], again, errors[ours] = laconic_path(P, y, Q, z, settings)
        seconds[f"{ours}, again"] = again
        progress(f"{name}: {ours} took {seconds[ours]:.1f} s")
    for threads in (1, CORES):
        seconds[f"abess one call, {threads} threads"] = timed(abess, P, y, SIZES, thread=threads)[0]
    progress(f"{name}: abess's one call is timed")
    if not skip_sizes:
        path = [abess(P, y, range(1, n + 1), ic_type="loss", thread=CORES) for n in SIZES]
        progress(f"{name}: abess's path is known at every size")
        errors["abess path"] = [size_error(m, n, Q, z) for n, m in zip(SIZES, path, strict=True)]
        supports = [np.abs(m.coef_).max(axis=1) > 0 for m in path]
        errors["abess path, refitted"] = refitted(P, y, Q, z, supports)
        seconds["abess 40 single fits"], single = timed(
            lambda: [abess(P, y, n, thread=CORES) for n in SIZES]
        )
        errors["abess single"] = [
            size_error(m, n, Q, z) for n, m in zip(SIZES, single, strict=True)
        ]
    seconds["adelie, 60 penalties"], (raw, supports) = adelie_path(P, y, Q, z)
    errors["adelie"] = raw
    errors["adelie, refitted"] = refitted(P, y, Q, z, supports)

    shape = f"{name}: {P.shape[0]} x {P.shape[1]}, {len(np.unique(y))} classes"
    table(f"{shape}: seconds", ["method", "seconds"], seconds.items())
    table(
        f"{shape}: test error by number of atoms",
        ["method", *map(str, SHOWN)],
        [[method, *(e[n - 1] for n in SHOWN)] for method, e in errors.items()],
    )
    peers = [method for method in errors if method not in OURS]
    lower = {ours: {p: lower_sizes(errors[ours], errors[p]) for p in peers} for ours in OURS}
    table(
        f"{shape}: sizes of {len(SIZES)} with lower (equal) test error than",
        ["method", *peers],
        [[ours, *("{} ({})".format(*lower[ours][p]) for p in peers)] for ours in OURS],
    )
    best = min(s for method, s in seconds.items() if method.startswith("abess one call"))
    print()
    return {
        "shape": P.shape,
        "seconds": seconds,
        "errors": errors,
        "lower": lower,
        "faster": best / seconds["laconic"],
    }


def laconic_path(
    P: np.ndarray, y: np.ndarray, Q: np.ndarray, z: np.ndarray, settings: dict[str, Any]
) -> tuple[float, float, list[float | None]]:
    """Return the seconds of the first fit and of later fits, and the test errors.

    The first fit includes all loading and compiling.
    """
    from laconic import ShareBoostClassifier

    model = ShareBoostClassifier(max_atoms=max(SIZES), **settings)
    first = timed(model.fit, P, y)[0]
    again = median_time(lambda: model.fit(P, y), 1 if model.refine else 3)
    by_size = dict(zip(model.path_.sizes, model.staged_predict(Q), strict=True))
    return first, again, [error(by_size[n], z) if n in by_size else None for n in SIZES]


def abess(P: np.ndarray, y: np.ndarray, sizes: Any, **settings: Any) -> Any:
    from abess import MultinomialRegression

    return MultinomialRegression(support_size=sizes, **settings).fit(P, y)


def size_error(model: Any, size: int, Q: np.ndarray, z: np.ndarray) -> float | None:
    """Return the test error of an abess model, or None if it has another size."""
    if np.count_nonzero(np.abs(model.coef_).max(axis=1)) != size:
        return None
    # Take the largest score. predict() gives the same, but its exponentials may overflow.
    return error(model.classes_[(Q @ model.coef_ + model.intercept_).argmax(axis=1)], z)


def adelie_path(
    P: np.ndarray, y: np.ndarray, Q: np.ndarray, z: np.ndarray
) -> tuple[float, tuple[list[float | None], list[np.ndarray | None]]]:
    """Return the seconds, and for every size the error and active features of its path point."""
    import adelie

    classes, codes = np.unique(y, return_inverse=True)
    outcome = adelie.glm.multinomial(np.eye(len(classes))[codes])
    P = np.asfortranarray(P)
    settings = {"lmda_path_size": 60, "early_exit": False, "n_threads": CORES}
    with affinity_kept():
        seconds, state = timed(adelie.grpnet, P, outcome, progress_bar=False, **settings)
    weights = state.betas.toarray().reshape(-1, P.shape[1], len(classes))
    active = np.abs(weights).max(axis=2) > 0
    counts = active.sum(axis=1)
    scores = np.matmul(Q, weights) + np.asarray(state.intercepts)[:, None, :]
    path = [error(classes[s.argmax(axis=1)], z) for s in scores]
    errors: list[float | None] = []
    supports: list[np.ndarray | None] = []
    for n in SIZES:
        below = counts[(counts > 0) & (counts <= n)]
        at = np.flatnonzero(counts == below.max(initial=0))[-1]
        errors.append(path[at] if below.size else None)
        supports.append(active[at] if below.size else None)
    return seconds, (errors, supports)


def refitted(
    P: np.ndarray, y: np.ndarray, Q: np.ndarray, z: np.ndarray, supports: list[np.ndarray | None]
) -> list[float | None]:
    """Return the test errors of logistic regressions on given features, with Laconic's penalty."""
    from sklearn.linear_model import LogisticRegression

    known: dict[bytes, float] = {}
    out: list[float | None] = []
    for support in supports:
        if support is None:
            out.append(None)
            continue
        key = support.tobytes()
        if key not in known:
            model = LogisticRegression(C=1e6 / len(y), solver="newton-cg", max_iter=1000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # line searches that stop because of rounding
                known[key] = error(model.fit(P[:, support], y).predict(Q[:, support]), z)
        out.append(known[key])
    return out


def lower_sizes(ours: list[float | None], peer: list[float | None]) -> tuple[int, int]:
    """Return at how many sizes ours is strictly lower, and at how many it is equal.

    A size for which the peer has no model does not count for us.
    """
    pairs = [(a, b) for a, b in zip(ours, peer, strict=True) if a is not None and b is not None]
    return sum(a < b for a, b in pairs), sum(a == b for a, b in pairs)


if __name__ == "__main__":
    main()

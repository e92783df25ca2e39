"""What does it cost to learn and use 266 of 16,000 patches on MNIST, compared with a Gaussian SVM?

The patches are 1,000 templates of 7 x 7 pixels times 16 masks, over the 60,000 training digits
(ShareBoost A.1). Measured are the times of features, scoring and correcting, the peak memory, and
the fraction of the memory's read bandwidth that scoring reaches. Then the fitted predictor is
compared with scikit-learn's SVC with Gaussian kernel on the same test digits, all 10,000 at once
and one at a time. SVC gets all training digits, and C and gamma that do well on these pixels but
are not tuned further. It predicts on one thread, as it always does, and Laconic on all cores.
(`pieces.py` times the tuned SVM, on 50 principal components. It has fewer operations and errors.)

The table shows wall time and processor time. Other work on the machine does not change the latter.
Divided by the number of cores, it is the best time of the fit on an idle machine.

Run: python benchmarks/patches.py [--atoms 266] [--without-svc] [--json FILE]
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from _common import (
    CORES,
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

SECONDS, GIGABYTES, TIMES_FASTER = 600.0, 6.0, 20.0
SINGLE = 200


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--atoms", type=int, default=266)
    parser.add_argument("--rows", type=int, default=60_000, help="training digits")
    parser.add_argument("--templates", type=int, default=1000)
    parser.add_argument("--alpha", type=float, default=1e-5)
    parser.add_argument("--without-svc", action="store_true")
    args = parser.parse_args()
    data = load(args.data, "mnist")
    X, X_test = (digits(data[name]) for name in ("X_train", "X_test"))
    X, y, y_test = X[: args.rows], data["y_train"][: args.rows], data["y_test"]
    fitted, predictor = learn(X, y, args)
    results: dict[str, Any] = {
        "fit": fitted,
        "prediction": {"Laconic": use(predictor, X_test, y_test)},
    }
    results["verdicts"] = [
        verdict("features and fit, seconds", fitted["seconds"], SECONDS, at_least=False),
        verdict("peak memory, GB", fitted["gigabytes"], GIGABYTES, at_least=False),
    ]
    save(args.json, args, [], results)
    if not args.without_svc:
        compare(results, X, y, X_test, y_test)
        save(args.json, args, [], results)


def digits(images: np.ndarray) -> np.ndarray:
    """Return rows of pixels from 0 to 1."""
    return images.reshape(len(images), -1) / np.float32(255)


class Clocked:
    """A pool that measures wall time and processor time of its parts."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.clock = dict.fromkeys(("binding", "scoring", "columns"), 0.0)
        self.processor = dict(self.clock)
        self.passes = 0
        self.stored = 0

    def bind(self, X: Any, weight: np.ndarray, threads: Any) -> Any:
        """Bind the pool, with clocks."""
        bound = self._timed("binding", self.pool.bind)(X, weight, threads)
        self.stored = bound._stored.nbytes
        plain = bound.gradients
        gradients = self._timed("scoring", lambda residual: list(plain(residual)))

        def counted(residual: np.ndarray) -> Any:
            self.passes += 1
            return iter(gradients(residual))

        bound.gradients = counted
        bound.columns = self._timed("columns", bound.columns)
        return bound

    def _timed(self, name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            start = time.perf_counter(), time.process_time()
            out = function(*args)
            self.clock[name] += time.perf_counter() - start[0]
            self.processor[name] += time.process_time() - start[1]
            return out

        return call


def learn(X: np.ndarray, y: np.ndarray, args: Any) -> tuple[dict[str, Any], Any]:
    """Fit a model, and report where the time went."""
    from laconic import ShareBoostClassifier
    from laconic.pools import Patches

    few = slice(None, None, 300)  # compile the kernels, or load them
    ShareBoostClassifier(2, pool=Patches(n_templates=1000, storage="uint8")).fit(X[few], y[few])
    pool = Clocked(Patches(n_templates=args.templates, random_state=args.seed))

    def watch(state: Any) -> None:
        if state.last.size % 25 == 0:
            progress(f"{state.last.size} patches, loss {state.last.loss:.5f}")

    model = ShareBoostClassifier(args.atoms, pool=pool, alpha=args.alpha, callbacks=[watch])
    start = time.process_time()
    seconds, _ = timed(model.fit, X, y)
    processor = time.process_time() - start
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    clock = {**pool.clock, "correcting": seconds - sum(pool.clock.values())}
    used = {**pool.processor, "correcting": processor - sum(pool.processor.values())}
    bandwidth = read_bandwidth()
    rate = pool.passes * pool.stored / pool.clock["scoring"] / 1e9
    multiplications = 10.0 * rate
    table(
        f"{args.atoms} of {args.templates * 16} patches, {len(X)} digits: {seconds:.0f} s by the "
        f"clock, {processor / CORES:.0f} s of {CORES} processors, {gigabytes:.2f} GB",
        ["part", "seconds", "processor seconds"],
        [[name, clock[name], used[name]] for name in clock],
    )
    print(
        f"scoring reads {rate:.1f} GB/s, {100 * rate / bandwidth:.0f} % of the {bandwidth:.1f} GB/s"
        f" of a plain sum; {multiplications:.0f} billion multiply-accumulates a second"
    )
    found = {
        "seconds": seconds,
        "processor_seconds": processor,
        "gigabytes": gigabytes,
        "parts": clock,
        "processor_parts": used,
        "stored_bytes": pool.stored,
        "scoring_gb_per_second": rate,
        "read_gb_per_second": bandwidth,
        "multiply_accumulates": model.predictor_.cost().operations,
        "loss": model.path_.losses[-1],
    }
    return found, model.predictor_


def read_bandwidth() -> float:
    """Return the gigabytes per second that all cores together read in a plain sum."""
    from laconic.numeric.threads import Threads, row_blocks

    block = np.ones(1 << 26)
    with Threads() as threads:

        def total() -> float:
            return sum(threads.map(lambda s: block[s].sum(), row_blocks(len(block), 1 << 20)))

        return block.nbytes / median_time(total, 5) / 1e9


def use(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the seconds of a batch and of a single digit, and the error."""
    model.predict(X[:100])
    alone = [timed(model.predict, X[i : i + 1])[0] for i in range(SINGLE)]
    start = time.process_time()
    seconds, labels = timed(model.predict, X)
    return {
        "batch_seconds": seconds,
        "batch_processor_seconds": time.process_time() - start,
        "single_seconds": float(np.median(alone)),
        "error": error(labels, y),
    }


def compare(results: dict[str, Any], X: np.ndarray, y: np.ndarray, *test: np.ndarray) -> None:
    """Fit the SVM and compare its predictions with ours."""
    from sklearn.svm import SVC

    progress("fitting SVC")
    seconds, svm = timed(SVC(C=10, gamma="scale", cache_size=2000).fit, X, y)
    progress(f"SVC fitted in {seconds:.0f} s; predicting")
    found = results["prediction"]
    found["SVC"] = {**use(svm, *test), "fit_seconds": seconds, "vectors": len(svm.support_)}
    keys = ("batch_seconds", "batch_processor_seconds", "single_seconds", "error")
    table(
        f"prediction of {len(test[1])} digits; SVC has {len(svm.support_)} support vectors",
        ["model", *keys],
        [[name, *(of[key] for key in keys)] for name, of in found.items()],
    )
    ours, theirs = found["Laconic"], found["SVC"]
    results["verdicts"] += [
        verdict(
            "batches, times faster than SVC",
            theirs["batch_seconds"] / ours["batch_seconds"],
            TIMES_FASTER,
            at_least=True,
        ),
        verdict("error against SVC's", ours["error"], theirs["error"], at_least=False),
    ]


if __name__ == "__main__":
    main()

"""How close does one scoring pass, G = XᵀR, come to the limits of the machine?

X is big and dense, in either dtype and order. Two ratios are measured. The first is the bytes of X
scored per second over the bytes that the machine reads per second, both measured in turns. The
second is the operations per second over those of a large matrix product. The roof is the lower of
the two limits: from some number of classes on, multiplying takes longer than reading. The last line
is the smallest fraction of the read bandwidth over the dtypes, for at most 10 classes and C order.

Run it on an idle machine: ``python benchmarks/roofline.py [--json FILE]``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np
from _common import arguments, save

from laconic.numeric.skinny import transpose_product
from laconic.numeric.threads import Threads, row_blocks

COLUMNS = 784
CLASSES = (3, 10, 26)
GEMM_ROWS = 3072
# Size of the pieces that threads read. They are so large that handing them out costs nothing.
READ_BYTES = 1 << 24


@numba.njit(nogil=True, fastmath=True)
def add_up(values):  # type: ignore[no-untyped-def]
    """Return the sum of the values, to read them and do as little else as possible."""
    total = values.dtype.type(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def make_data(n_bytes: float, dtype: type, order: str) -> np.ndarray:
    """Return random numbers, written block by block to hold no second array of that size."""
    m = int(n_bytes) // (COLUMNS * np.dtype(dtype).itemsize)
    X = np.empty((m, COLUMNS), dtype=dtype, order=order)  # type: ignore[call-overload]
    rng = np.random.default_rng(0)
    block = rng.random((4096, COLUMNS), dtype=dtype) - dtype(0.5)
    for s in row_blocks(m, 4096):
        X[s] = block[: s.stop - s.start]
    return X


def measure(X: np.ndarray, k: int, threads: Threads, repeats: int) -> tuple[float, float]:
    """Return the seconds of the fastest scoring of X, and of reading X just before or after it.

    The bandwidth of a shared machine drifts. So scoring is compared with the faster of the two
    reads next to it in time.
    """
    flat = X.reshape(-1, order="A")
    pieces = [flat[s] for s in row_blocks(flat.size, READ_BYTES // X.itemsize)]
    R = np.random.default_rng(1).standard_normal((len(X), k)).astype(X.dtype)

    def read() -> object:
        return list(threads.map(add_up, pieces))

    def score() -> object:
        return transpose_product(X, R, threads)

    read(), score()  # compiles
    rounds = []
    before = min(seconds(read), seconds(read))
    for _ in range(repeats):
        took = seconds(score)
        after = min(seconds(read), seconds(read))
        rounds.append((took, min(before, after)))
        before = after
    return min(rounds)


def matrix_rate(dtype: type, repeats: int) -> float:
    """Return the operations per second of a large matrix product with BLAS on every thread."""
    A: np.ndarray = np.random.default_rng(2).random((GEMM_ROWS, GEMM_ROWS)).astype(dtype)
    out = np.empty_like(A)
    return 2 * GEMM_ROWS**3 / min(seconds(lambda: np.matmul(A, A, out=out)) for _ in range(repeats))


def first_call() -> float:
    """Return the seconds of the first use of a kernel, which is compiled or read from the cache."""
    X = make_data(2e7, np.float32, "C")
    with Threads() as threads:
        return seconds(lambda: transpose_product(X, X[:, :10], threads, compiled=True))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.8, help="size of X in gigabytes")
    parser.add_argument(
        "--repeats", type=int, default=12, help="number of rounds; the best one counts"
    )
    args = parser.parse_args()
    print(f"{Threads().n_jobs} threads; first call, compiled or fetched: {first_call():.2f} s")
    print("dtype   order   k   read  GB/s of read  GEMM Gflop/s of GEMM of roof")
    least, found = np.inf, []
    for dtype in (np.float32, np.float64):
        for order in ("C", "F"):
            X = make_data(args.gigabytes * 1e9, dtype, order)
            rate = matrix_rate(dtype, 3)
            with Threads() as threads:
                times = {k: measure(X, k, threads, args.repeats) for k in CLASSES}
            rate = max(rate, matrix_rate(dtype, 3))
            for k, (score, read) in times.items():
                speed, best, flops = X.nbytes / score, X.nbytes / read, 2 * X.size * k / score
                roof = min(best, rate * X.itemsize / (2 * k))
                print(
                    f"{X.dtype.name} {order:>4} {k:4} {best / 1e9:6.1f} {speed / 1e9:5.1f} "
                    f"{speed / best:7.2f} {rate / 1e9:5.0f} {flops / 1e9:7.0f} "
                    f"{flops / rate:7.2f} {speed / roof:7.2f}",
                    flush=True,
                )
                found.append(
                    {
                        "dtype": X.dtype.name,
                        "order": order,
                        "classes": k,
                        "read": best,
                        "scored": speed,
                        "of read": speed / best,
                        "of GEMM": flops / rate,
                        "of roof": speed / roof,
                    }
                )
                if order == "C" and k <= 10:
                    least = min(least, speed / best)
            del X
    print(f"least fraction of the read bandwidth, C order, at most 10 classes: {least:.2f}")
    save(args.json, args, [], {"passes": found, "least": least})


if __name__ == "__main__":
    main()

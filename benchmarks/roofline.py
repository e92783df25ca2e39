"""How near one scoring pass, G = XᵀR, comes to what the machine can do.

For a big dense X in either dtype and order, the bytes of X scored per second over the bytes the
machine reads per second, measured in turns with it; and the operations per second over those of a
large matrix product. The roof is the lower of the two: from some number of classes on, multiplying
takes longer than reading. The last line is the least fraction of the read bandwidth over the
dtypes, for at most 10 classes and C order.

Run it on an idle machine: ``python benchmarks/roofline.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np

from laconic.pools.dense import transpose_product
from laconic.threads import Threads, row_blocks

COLUMNS = 784
CLASSES = (3, 10, 26)
GEMM_ROWS = 3072
# What each thread reads at a time; large enough that handing it out costs nothing.
READ_BYTES = 1 << 24


@numba.njit(nogil=True, fastmath=True)
def add_up(values):  # type: ignore[no-untyped-def]
    """Sum of the values: read them, and do as little else as possible."""
    total = values.dtype.type(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def make_data(n_bytes: float, dtype: type, order: str) -> np.ndarray:
    """Random numbers, written block by block so that nothing else of that size is held."""
    m = int(n_bytes) // (COLUMNS * np.dtype(dtype).itemsize)
    X = np.empty((m, COLUMNS), dtype=dtype, order=order)  # type: ignore[call-overload]
    rng = np.random.default_rng(0)
    block = rng.random((4096, COLUMNS), dtype=dtype) - dtype(0.5)
    for s in row_blocks(m, 4096):
        X[s] = block[: s.stop - s.start]
    return X


def measure(X: np.ndarray, threads: Threads, repeats: int) -> tuple[float, dict[int, float]]:
    """Best time of reading X, and of scoring it for each number of classes, taken in turns."""
    flat = X.reshape(-1, order="A")
    pieces = [flat[s] for s in row_blocks(flat.size, READ_BYTES // X.itemsize)]
    rng = np.random.default_rng(1)
    residuals = {k: rng.standard_normal((len(X), k)).astype(X.dtype) for k in CLASSES}
    add_up(flat[:1])
    for R in residuals.values():  # compiles
        transpose_product(X[:4096], R[:4096], threads, compiled=True)
    read, score = np.inf, dict.fromkeys(CLASSES, np.inf)
    for _ in range(repeats):
        for k, R in residuals.items():
            read = min(read, seconds(lambda: list(threads.map(add_up, pieces))))
            score[k] = min(score[k], seconds(lambda R=R: transpose_product(X, R, threads)))
    return read, score


def matrix_rate(dtype: type, repeats: int) -> float:
    """Operations per second of a large matrix product with BLAS on every thread."""
    A = np.random.default_rng(2).random((GEMM_ROWS, GEMM_ROWS)).astype(dtype)
    out = np.empty_like(A)
    return 2 * GEMM_ROWS**3 / min(seconds(lambda: np.matmul(A, A, out=out)) for _ in range(repeats))


def first_call() -> float:
    """Seconds of the first use of a kernel in this process: compiled, or fetched from the cache."""
    X = make_data(2e7, np.float32, "C")
    with Threads() as threads:
        return seconds(lambda: transpose_product(X, X[:, :10], threads, compiled=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--gigabytes", type=float, default=0.8, help="size of X")
    parser.add_argument("--repeats", type=int, default=12, help="rounds; the best one counts")
    args = parser.parse_args()
    print(f"{Threads().n_jobs} threads; first call, compiled or fetched: {first_call():.2f} s")
    print("dtype   order   k   GB/s of read Gflop/s of GEMM of roof")
    least = np.inf
    for dtype in (np.float32, np.float64):
        for order in ("C", "F"):
            X = make_data(args.gigabytes * 1e9, dtype, order)
            rate = matrix_rate(dtype, 3)
            with Threads() as threads:
                read, score = measure(X, threads, args.repeats)
            rate = max(rate, matrix_rate(dtype, 3))
            best = X.nbytes / read
            print(
                f"{X.dtype.name} {order:5}     {best / 1e9:6.1f}    read {rate / 1e9:7.0f}    GEMM"
            )
            for k, took in score.items():
                speed, flops = X.nbytes / took, 2 * X.size * k / took
                roof = min(best, rate * X.itemsize / (2 * k))
                print(
                    f"{k:17} {speed / 1e9:6.1f} {speed / best:7.2f} {flops / 1e9:7.0f} "
                    f"{flops / rate:7.2f} {speed / roof:7.2f}",
                    flush=True,
                )
                if order == "C" and k <= 10:
                    least = min(least, speed / best)
            del X
    print(f"least fraction of the read bandwidth, C order, at most 10 classes: {least:.2f}")


if __name__ == "__main__":
    main()

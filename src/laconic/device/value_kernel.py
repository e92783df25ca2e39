"""The Triton kernel of `laconic.device.value_sums`. It is imported at first use."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_values(  # type: ignore[no-untyped-def]
    values,
    lines,
    sums,
    n_atoms,
    n_rows,
    WIDTH: tl.constexpr,
    ATOMS: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Write the sums of values times halves over one chunk of rows, for some atoms.

    ``values`` is (n_atoms, n_rows), ``lines`` is (WIDTH, n_rows), and ``sums`` is (chunks, n_atoms,
    WIDTH). ``n_rows`` is a multiple of ROWS. Programs of one chunk are neighbours, so that its
    halves stay in cache.
    """
    first = tl.program_id(0) * ATOMS
    chunk = tl.program_id(1).to(tl.int64)
    start = chunk * CHUNK
    stop = tl.minimum(start + CHUNK, n_rows)
    atoms = first + tl.arange(0, ATOMS)
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    # The last program reads its last atom again instead of atoms that do not exist.
    read = tl.minimum(atoms, n_atoms - 1).to(tl.int64)
    at = values + read[:, None] * n_rows + (start + rows)[None, :]
    beside = lines + columns[None, :].to(tl.int64) * n_rows + (start + rows)[:, None]
    total = tl.zeros((ATOMS, WIDTH), dtype=tl.float32)
    for _ in range(start, stop, ROWS):
        value = tl.load(at).to(tl.float16)
        half = tl.load(beside)
        total = tl.dot(value, half, total)
        at += ROWS
        beside += ROWS
    out = sums + (chunk * n_atoms + atoms.to(tl.int64))[:, None] * WIDTH + columns[None, :]
    tl.store(out, total, mask=(atoms < n_atoms)[:, None])

"""Numbers of a part have one layout, whether the part was moved between workers or not."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from laconic.beyond.layout import laid_out, laid_out_numbers


def at_odd_address(X):
    """Return the same array at an address that is no multiple of eight."""
    room = np.zeros(X.nbytes + 16, dtype=np.uint8)
    first = 3 - room.ctypes.data % 8 + 8
    out = room[first : first + X.nbytes].view(X.dtype).reshape(X.shape)
    out[:] = X
    assert not out.flags.aligned
    return out


def layout(X):
    return X.flags.aligned, X.flags.c_contiguous, X.flags.f_contiguous


ROWS = np.random.default_rng(0).standard_normal((40, 5))
ARRAYS = {
    "rows": ROWS,
    "columns": np.asfortranarray(ROWS),
    "some rows": np.asfortranarray(ROWS)[10:20],
    "some columns": ROWS[:, 1:3],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    X = ARRAYS[name]
    here, moved = laid_out(X), laid_out(pickle.loads(pickle.dumps(X, protocol=5)))
    assert layout(here) == layout(moved)
    assert here.flags.aligned
    assert np.array_equal(here, X)
    assert laid_out(ROWS) is ROWS


def test_an_odd_address():
    for lay in (laid_out, laid_out_numbers):
        out = lay(at_odd_address(ROWS))
        assert out.flags.aligned
        assert np.array_equal(out, ROWS)
    stored = sparse.csr_matrix(ROWS)
    stored.data = at_odd_address(stored.data)
    assert laid_out(stored).data.flags.aligned
    assert np.array_equal(laid_out(stored).toarray(), ROWS)


FRAMES = {
    "one block": pd.DataFrame(ROWS),
    "some rows": pd.DataFrame(ROWS)[10:20],
    "columns": pd.DataFrame(np.asfortranarray(ROWS)),
    "some rows of columns": pd.DataFrame(np.asfortranarray(ROWS))[10:20],
    "several blocks": pd.DataFrame(ROWS).assign(more=1),
    "one column": pd.DataFrame(ROWS)[[2]],
}


@pytest.mark.parametrize("name", FRAMES)
def test_numbers_of_frames(name):
    frame = FRAMES[name]
    here = laid_out_numbers(frame.to_numpy())
    buffers = []
    packed = pickle.dumps(frame, protocol=5, buffer_callback=buffers.append)
    sent = [at_odd_address(np.frombuffer(buffer.raw(), np.float64)) for buffer in buffers]
    moved = laid_out_numbers(pickle.loads(packed, buffers=sent).to_numpy())
    assert layout(here) == layout(moved)
    assert here.flags.aligned
    assert np.array_equal(here, moved)

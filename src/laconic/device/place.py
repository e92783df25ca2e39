"""Devices by name, and rows that are moved to them or are already there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor

from laconic.device.names import TYPES, wrong_device
from laconic.device.tensors import can_hold
from laconic.numeric.namespaces import check_tensor
from laconic.numeric.threads import row_blocks

# Bytes that are moved together. Two such pieces of memory are pinned meanwhile.
MOVED = 1 << 26


def find_device(device: Any) -> torch.device:
    """Return a device by its name, or as it is. Refuse one that torch cannot use here."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise wrong_device(device) from error
    if found.type not in TYPES:
        raise wrong_device(device)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} needs a GPU, and torch finds none that it can use; leave device "
            "out to fit on the processor"
        )
    return found


def same_place(asked: torch.device, found: torch.device) -> bool:
    """Return whether rows on a device are where a setting wants them. "cuda" is any GPU."""
    return asked.type == found.type and asked.index in (None, found.index)


def tensor_of(X: Any) -> Tensor:
    """Return an array of any library on a device as a tensor there, without a copy."""
    given: Tensor = X if isinstance(X, Tensor) else torch.from_dlpack(X)
    check_tensor(given)
    return given.detach()


def check_place(X: Tensor) -> None:
    """Refuse to fit where rows are, if that is a device on which fits do not run."""
    if X.device.type not in TYPES:
        raise ValueError(
            f'X is on the device "{X.device}", and fits run on "cuda" or on the processor; give '
            "X.cpu()"
        )


def in_kind(answer: Any, X: Any) -> Any:
    """Return an answer for rows X as X is: a tensor on its device, or an array of its library.

    Labels that are no numbers stay arrays of NumPy.
    """
    if isinstance(answer, np.ndarray):
        if not can_hold(answer.dtype):
            return answer
        answer = torch.from_numpy(np.ascontiguousarray(answer)).to(tensor_of(X).device)
    if isinstance(X, Tensor):
        return answer
    return sys.modules[type(X).__module__.partition(".")[0]].from_dlpack(answer)


def moved(array: Any, device: torch.device) -> Tensor:
    """Return an array as a tensor on a device. A large one is moved piece by piece."""
    if isinstance(array, Tensor):
        return array.to(device)
    if device.type == "cuda" and array.nbytes > MOVED:
        return _moved_in_pieces(array, device)
    if not array.flags.writeable:  # torch warns of arrays that it must not write to
        array = array.copy()
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def _moved_in_pieces(array: np.ndarray, device: torch.device) -> Tensor:
    """Copy rows to pinned memory while the rows before them are on their way."""
    shape, dtype = array.shape, torch.from_numpy(array[:1].copy()).dtype
    out = torch.empty(shape, dtype=dtype, device=device)
    n_rows = max(MOVED * shape[0] // array.nbytes, 1)
    piece_shape = n_rows, *shape[1:]
    pinned = {"dtype": dtype, "device": "cpu", "pin_memory": True}
    pieces = [torch.empty(piece_shape, **pinned) for _ in range(2)]
    sent = [torch.cuda.Event(), torch.cuda.Event()]
    stream = torch.cuda.current_stream(device)  # copies go there, whatever the current device is
    for number, s in enumerate(row_blocks(shape[0], n_rows)):
        piece, event = pieces[number % 2][: s.stop - s.start], sent[number % 2]
        event.synchronize()
        piece.numpy()[...] = array[s]
        out[s].copy_(piece, non_blocking=True)
        event.record(stream)
    return out

"""Pictures for a page that needs no network: PNG files inside the page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def png_uri(picture: np.ndarray) -> str:
    """Return a grey picture of numbers in [0, 1] as a data URI that holds a PNG."""
    pixels = np.clip(np.rint(255.0 * picture), 0, 255).astype(np.uint8)
    height, width = pixels.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # every line begins with its filter, 0
    lines[:, 1:] = pixels
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    file = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)
    return "data:image/png;base64," + base64.b64encode(file).decode("ascii")


def _chunk(kind: bytes, body: bytes) -> bytes:
    checked = kind + body
    return struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))


def as_grey(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scale numbers between ``low`` and ``high`` to [0, 1]."""
    return (values - low) / (high - low) if high > low else np.zeros_like(values)

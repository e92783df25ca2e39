"""Networks with one hidden layer in 8-bit integers, as C.

* Inputs are int8. The device hands over rows that are scaled already, so scaling costs nothing.
* Weights are int8 with one scale for each layer. Sums are int32.
* Hidden units are uint8: a sum that is negative counts as 0. Others are shifted to the right, and
  cut at 255. The shift is chosen on the training rows, so that few values are cut.
* Scaled inputs are cut at a largest value. It is chosen on the validation rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from _c_models import Model, peer_header
from _common import error
from _networks import Network, Networks, best_of_sizes

# Scaled inputs beyond this are cut.
LARGEST_INPUTS = (3.0, 5.0, 10.0, 30.0)
# Part of the hidden values that may be cut.
CUT = 0.001
# Training rows that set the scales.
SCALED_ON = 10_000
CODE = """\
#ifdef __AVR__
#include <avr/pgmspace.h>
#define TABLE PROGMEM
#define BYTE(place) ((int8_t)pgm_read_byte(place))
#define WORD(place) ((int32_t)pgm_read_dword(place))
#else
#define TABLE
#define BYTE(place) (*(place))
#define WORD(place) (*(place))
#endif
static const int8_t first[{n_first}] TABLE = {{{first}}};
static const int32_t first_bias[{hidden}] TABLE = {{{first_bias}}};
static const int8_t second[{n_second}] TABLE = {{{second}}};
static const int32_t second_bias[{outputs}] TABLE = {{{second_bias}}};
static int network(const int8_t *x)
{{
    uint8_t h[{hidden}], j, best = 0;
    const int8_t *w = first;
    int32_t most = 0;
    for (j = 0; j < {hidden}; j++) {{
        int32_t sum = WORD(first_bias + j);
        uint16_t i;
        for (i = 0; i < {inputs}; i++) {{ sum += (int16_t)BYTE(w++) * x[i]; }}
        sum = sum < 0 ? 0 : sum >> {shift};
        h[j] = sum > 255 ? 255 : (uint8_t)sum;
    }}
    w = second;
    for (j = 0; j < {outputs}; j++) {{
        int32_t sum = WORD(second_bias + j);
        uint8_t i;
        for (i = 0; i < {hidden}; i++) {{ sum += (int16_t)BYTE(w++) * (int16_t)h[i]; }}
        {decide}
    }}
    (void)most;
    return best;
}}
"""
LARGEST = "if (j == 0 || sum > most) { most = sum; best = j; }"
SIGN = "best = sum > 0;"


class Integers(NamedTuple):
    """A network in integers."""

    input_scale: float
    first: np.ndarray
    first_bias: np.ndarray
    shift: int
    second: np.ndarray
    second_bias: np.ndarray

    def codes(self, network: Network, X: np.ndarray) -> np.ndarray:
        """Return rows as the device hands them over."""
        scaled = np.rint(network.scales(X) * self.input_scale)
        return np.clip(scaled, -127, 127).astype(np.int8)

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """Return the labels that the C code gives."""
        sums = codes.astype(np.int64) @ self.first + self.first_bias
        hidden = np.minimum(np.maximum(sums, 0) >> self.shift, 255)
        scores = hidden @ self.second + self.second_bias
        return scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)

    def header(self) -> str:
        """Return the network as the header of a model."""
        inputs, hidden = self.first.shape
        outputs = self.second.shape[1]
        code = CODE.format(
            n_first=self.first.size, n_second=self.second.size, inputs=inputs, hidden=hidden,
            outputs=outputs, shift=self.shift, first=_listed(self.first.T),
            first_bias=_listed(self.first_bias), second=_listed(self.second.T),
            second_bias=_listed(self.second_bias), decide=LARGEST if outputs > 1 else SIGN,
        )  # fmt: skip
        return peer_header(code, "int8_t", inputs, "return network(x);")


def int8_models(networks: Networks) -> Iterator[Model]:
    """Return a network of each size. Its settings have the lowest error in integers."""
    rows = networks.rows
    held = rows.X[rows.held], rows.y[rows.held]
    found, cuts = [], {}
    for tried in networks.tried:
        wrong = {}
        for largest in LARGEST_INPUTS:
            own = in_integers(tried, rows.X[rows.fit], largest)
            wrong[largest] = error(own.labels(own.codes(tried, held[0])), held[1])
        cuts[id(tried)] = min(wrong, key=wrong.__getitem__)
        found.append((min(wrong.values()), tried))
    for validation, tried in best_of_sizes(found):
        network = networks.fitted(tried)
        own = in_integers(network, rows.X, cuts[id(tried)])
        codes = own.codes(network, rows.X_test)
        title = f"int8 network, {tried.hidden} hidden units"
        if "one-hot" in rows.title or "codes" in rows.title:
            title += f", {rows.title}"
        yield Model("int8 network", title, own.header(), "int8", validation, codes,
                    own.labels(codes))  # fmt: skip


def in_integers(network: Network, X: np.ndarray, largest: float) -> Integers:
    """Return a network in integers. Few of the training rows set the scales."""
    X = X[:SCALED_ON]
    (first, second), (bias, second_bias) = network.model.coefs_, network.model.intercepts_
    scaled = network.scales(X)
    input_scale = 127 / min(largest, float(np.abs(scaled).max()))
    scale = 127 / np.abs(first).max()
    weights = np.rint(first * scale).astype(np.int64)
    offsets = np.rint(bias * scale * input_scale).astype(np.int64)
    codes = np.clip(np.rint(scaled * input_scale), -127, 127).astype(np.int64)
    sums = codes @ weights + offsets
    top = float(np.quantile(np.maximum(sums, 0), 1 - CUT))
    shift = max(0, int(np.ceil(np.log2(max(top, 1) / 255))))
    offsets += 2**shift // 2  # so that shifts round
    unit = scale * input_scale / 2**shift  # of a hidden value
    out = 127 / np.abs(second).max()
    return Integers(input_scale, weights, offsets, shift, np.rint(second * out).astype(np.int64),
                    np.rint(second_bias * out * unit).astype(np.int64))  # fmt: skip


def _listed(values: np.ndarray) -> str:
    return ", ".join(map(str, values.ravel().tolist()))

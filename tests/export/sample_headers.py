"""Small C headers written by hand, with rows and the answers of plain Python."""

from typing import NamedTuple

import numpy as np

HEADER = """
#include <stdint.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#define MODEL_TABLE PROGMEM
#define MODEL_BYTE(p) ((int8_t)pgm_read_byte(p))
#else
#define MODEL_TABLE
#define MODEL_BYTE(p) (*(p))
#endif
#define MODEL_N_FEATURES %(n_features)d
#define MODEL_N_CLASSES %(n_classes)d
#define MODEL_N_SCORES %(n_scores)d
typedef %(input)s model_input;
typedef %(score)s model_score;
%(code)s
"""
INTEGERS = """
static const int8_t model_weights[3][16] MODEL_TABLE = {{%s}, {%s}, {%s}};
static inline void model_scores(const model_input *x, model_score *scores)
{
    for (int c = 0; c < 3; c++) {
        scores[c] = 1000 * c;
        for (int j = 0; j < 16; j++)
            scores[c] += (int32_t)x[j] * MODEL_BYTE(&model_weights[c][j]);
    }
}
static inline int model_predict(const model_input *x)
{
    model_score scores[3];
    int best = 0;
    model_scores(x, scores);
    for (int c = 1; c < 3; c++)
        if (scores[c] > scores[best])
            best = c;
    return best;
}
"""
TWO_CLASSES = """
static inline void model_scores(const model_input *x, model_score *scores)
{
    scores[0] = (int64_t)x[0] * x[1] * 100000 - (int64_t)x[2] * 3 + 7;
}
static inline int model_predict(const model_input *x)
{
    model_score scores[1];
    model_scores(x, scores);
    return scores[0] > 0;
}
"""
FLOATS = """
static inline void model_scores(const model_input *x, model_score *scores)
{
    scores[0] = 0.1f + 1.7f * x[0] + (x[1] <= 0.3f ? 2.5f : -1e-3f) * x[2];
}
static inline int model_predict(const model_input *x)
{
    model_score scores[1];
    model_scores(x, scores);
    return scores[0] > 0;
}
"""
EMPTY = """
static inline void model_scores(const model_input *x, model_score *scores) { scores[0] = x[0]; }
static inline int model_predict(const model_input *x) { %s return x[0]; }
"""


def header(code, features=1, classes=2, scores=1, types=("uint8_t", "int32_t")):
    sizes = {"n_features": features, "n_classes": classes, "n_scores": scores}
    return HEADER % {**sizes, "input": types[0], "score": types[1], "code": code}


class Sample(NamedTuple):
    text: str
    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray


def bytes_in():
    rng = np.random.default_rng(0)
    W = rng.integers(-128, 128, (3, 16))
    X = np.vstack([np.zeros(16), np.full(16, 255), rng.integers(0, 256, (48, 16))]).astype(int)
    scores = X @ W.T + [0, 1000, 2000]
    code = INTEGERS % tuple(", ".join(map(str, w)) for w in W)
    text = header(code, 16, 3, 3)
    return Sample(text, X, scores.argmax(axis=1), scores)


def words_in():
    low, high = -(2**15), 2**15 - 1
    ends = np.array(np.meshgrid(*[[low, -1, 0, high]] * 3)).reshape(3, -1).T
    scores = ends[:, :1] * ends[:, 1:2] * 100000 - ends[:, 2:] * 3 + 7
    text = header(TWO_CLASSES, 3, types=("int16_t", "int64_t"))
    return Sample(text, ends, (scores > 0)[:, 0].astype(int), scores)


def floats_in():
    ends = [-0.0, 1e-45, -1e-38, 3e38]
    cuts = [np.nan, np.inf, -np.inf, 0.0, 0.3, np.nextafter(np.float32(0.3), np.float32(1))]
    X = np.array(np.meshgrid(ends, cuts, ends)).reshape(3, -1).T
    X = np.vstack([X, np.random.default_rng(0).standard_normal((50, 3))]).astype(np.float32)
    f = np.float32
    with np.errstate(over="ignore"):
        factor = np.where(X[:, 1] <= f(0.3), f(2.5), f(-1e-3))
        scores = (f(0.1) + f(1.7) * X[:, 0]) + factor * X[:, 2]
    text = header(FLOATS, 3, types=("float", "float"))
    return Sample(text, X, (scores > 0).astype(int), scores[:, None])


def with_table(n, kind="const int8_t", place="MODEL_TABLE"):
    """Return a header with a table of n bytes."""
    values = ", ".join(map(str, np.random.default_rng(0).integers(-128, 128, n)))
    table = f"static {kind} model_table[{n}] {place} = {{{values}}};"
    return header(table + EMPTY % f"return MODEL_BYTE(&model_table[x[0] * {n // 256}]);")


def with_local_array(n):
    """Return a header whose prediction needs n bytes of stack, and little more."""
    return header(
        EMPTY % f"volatile char local[{n}]; for (int j = 0; j < {n}; j++) local[j] = x[0];"
    )


def with_instructions(n):
    """Return a header whose prediction has n instructions that do nothing."""
    return header(EMPTY % ('__asm__ volatile("nop");' * n))


SAMPLES = {"uint8": bytes_in(), "int16": words_in(), "float": floats_in()}

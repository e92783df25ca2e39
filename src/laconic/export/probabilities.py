"""Probabilities of the classes in C, from the scores and the link of the loss."""

from __future__ import annotations

from typing import Any

from laconic.export.c_code import Code, function

# p from one score, by loss. Each needs only the score f.
_ONE_SCORE = {
    "exponential": "1.0f / (1.0f + expf(-2.0f * f))",
    "logistic": "1.0f / (1.0f + expf(-f))",
    "squared_hinge": "f < -1.0f ? 0.0f : f > 1.0f ? 1.0f : 0.5f * (1.0f + f)",
    "log": "1.0f / (1.0f + expf(-f))",
}
E_LESS_1 = "1.71828183f"


def check_probabilities(predictor: Any, language: str) -> str:
    """Return the loss whose link gives the probabilities, or refuse if there are none."""
    loss: str = predictor.loss
    known = (*_ONE_SCORE, "margin", "one_vs_rest")
    if not predictor.has_probabilities or loss not in known:
        raise ValueError(
            f"the scores of this model (loss {loss!r}) have no probabilities in {language}; leave "
            "out probabilities=True"
        )
    return loss


def probability_function(predictor: Any, code: Code) -> str:
    """Return the C function that computes probabilities. It needs ``expf``."""
    loss = check_probabilities(predictor, "C")
    name, unit = code.name, f"{code.name.upper()}_UNIT"
    score = "scores[{}]" if code.integers is None else f"(float)scores[{{}}] * (float){unit}"
    body = [f"{name}_score scores[{code.n_outputs}];"]
    n = len(predictor.classes)
    if code.n_outputs == 1:
        body += [f"{name}_scores(x, scores);", "{"]
        body += [f"    const float f = {score.format(0)};"]
        if loss == "margin":
            body += [
                "    const float s = 1.0f / (1.0f + expf(-f));",
                f"    const float a = s * (1.0f + {E_LESS_1} * (1.0f - s));",
                f"    const float b = (1.0f - s) * (1.0f + {E_LESS_1} * s);",
                "    const float p = a / (a + b);",
            ]
        else:
            body += [f"    const float p = {_ONE_SCORE[loss]};"]
        body += ["    probabilities[0] = 1.0f - p;", "    probabilities[1] = p;", "}"]
    else:
        body += ["uint_fast16_t c;", "float sum = 0.0f;"]
        body += _clipped(score, n) if loss == "one_vs_rest" else _softmax(score, n, loss)
        body.insert(3, f"{name}_scores(x, scores);")
        body += [
            f"for (c = 0; c < {n}u; c++) {{",
            "    probabilities[c] = probabilities[c] / sum;",
            "}",
        ]
    head = (
        "/* The probabilities of the classes. Needs expf of the C library. */\n"
        f"static inline void {name}_probabilities(const {name}_input *x, float *probabilities)"
    )
    return function(head, body)


def _clipped(score: str, n: int) -> list[str]:
    return [
        f"for (c = 0; c < {n}u; c++) {{",
        f"    const float f = {score.format('c')};",
        "    probabilities[c] = f < -1.0f ? 0.0f : f > 1.0f ? 1.0f : 0.5f * (1.0f + f);",
        "    sum = sum + probabilities[c];",
        "}",
        "if (!(sum > 0.0f)) {",
        f"    for (c = 0; c < {n}u; c++) {{",
        "        probabilities[c] = 1.0f;",
        "    }",
        f"    sum = {n}.0f;",
        "}",
    ]


def _softmax(score: str, n: int, loss: str) -> list[str]:
    lines = [
        f"float top = {score.format(0)};",
        f"for (c = 1; c < {n}u; c++) {{",
        f"    const float f = {score.format('c')};",
        "    top = f > top ? f : top;",
        "}",
        f"for (c = 0; c < {n}u; c++) {{",
        f"    probabilities[c] = expf({score.format('c')} - top);",
        "    sum = sum + probabilities[c];",
        "}",
    ]
    if loss == "margin":
        lines += [
            "{",
            "    float corrected = 0.0f;",
            f"    for (c = 0; c < {n}u; c++) {{",
            "        const float s = probabilities[c] / sum;",
            f"        probabilities[c] = s * (1.0f + {E_LESS_1} * (1.0f - s));",
            "        corrected = corrected + probabilities[c];",
            "    }",
            "    sum = corrected;",
            "}",
        ]
    return lines

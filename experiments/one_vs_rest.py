"""One-vs-rest greedy selection by ShareBoost's own mechanism (section 5, "Feature Sharing").

For every class a binary `ShareBoostClassifier` grows its own path with the binary logistic loss:
choose the atom of the largest gradient, re-optimise, as often as asked. The multiclass predictor of
t atoms a class takes the class of the largest binary score. The features it must compute are the
*union* of those its classes chose (a feature that two classes chose is computed once), which is the
count most favourable to it; their sum, t times k, is reported as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from laconic import ShareBoostClassifier
from laconic.boost.path import PathEntry


class OneVsRest:
    """Binary paths, one for each class.

    Parameters
    ----------
    max_atoms : int
        Atoms of each class.
    **settings
        Of every `ShareBoostClassifier`. The loss is the plain log-loss, which for two classes is
        the binary logistic loss.
    """

    def __init__(self, max_atoms: int, **settings: Any) -> None:
        self.max_atoms = max_atoms
        self.settings = {"loss": "log", **settings}

    def fit(self, X: Any, codes: np.ndarray) -> OneVsRest:
        """Fit one path for each class, numbered from 0; of two classes one path serves both."""
        k = int(codes.max()) + 1
        self.n_classes = k
        self.paths: list[list[PathEntry]] = []
        for c in range(k) if k > 2 else [1]:
            model = ShareBoostClassifier(self.max_atoms, **self.settings).fit(X, codes == c)
            self.paths.append(model.path_.entries)
        return self

    def staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """Scores (n_rows, k) with t = 1, 2, ... atoms a class.

        A path that ended early (nothing helped any more) serves all later t as it ended.
        """
        columns = [path[-1].map.columns(X) for path in self.paths]
        for t in range(1, self.max_atoms + 1):
            scores = np.empty((X.shape[0], len(self.paths)))
            for c, (path, taken) in enumerate(zip(self.paths, columns, strict=True)):
                entry = path[min(t, len(path) - 1)]
                weights = entry.input_weights()
                margin = weights[:, 1] - weights[:, 0]
                free = entry.intercept[1] - entry.intercept[0]
                scores[:, c] = taken[:, : entry.size] @ margin + free
            yield scores if self.n_classes > 2 else np.hstack([-scores, scores])

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Different atoms of all classes together, and their sum, for t = 1, 2, ..."""
        unions, sums = [], []
        for t in range(1, self.max_atoms + 1):
            chosen = [path[min(t, len(path) - 1)].numbers for path in self.paths]
            unions.append(len(set().union(*chosen)))
            sums.append(sum(map(len, chosen)))
        return np.array(unions), np.array(sums)

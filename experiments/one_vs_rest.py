"""One-vs-rest greedy selection by ShareBoost's own mechanism (section 5, "Feature Sharing").

For every class a binary `ShareBoostClassifier` grows its own path with the binary logistic loss. In
each step it chooses the atom with the largest gradient and re-optimises all weights. The multiclass
predictor with t atoms per class predicts the class with the largest binary score. It must compute
the *union* of the features that its classes chose, because a feature that two classes chose is
computed once. This is the count most favourable to it. The sum, t times k, is reported as well.
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
        Number of atoms of each class.
    **settings
        Settings of every `ShareBoostClassifier`. The loss is the plain log-loss, which for two
        classes is the binary logistic loss.
    """

    def __init__(self, max_atoms: int, **settings: Any) -> None:
        self.max_atoms = max_atoms
        self.settings = {"loss": "log", **settings}

    def fit(self, X: Any, codes: np.ndarray) -> OneVsRest:
        """Fit one path for each class. For two classes, one path serves both.

        Classes are numbered from 0.
        """
        k = int(codes.max()) + 1
        self.n_classes = k
        self.paths: list[list[PathEntry]] = []
        for c in range(k) if k > 2 else [1]:
            model = ShareBoostClassifier(self.max_atoms, **self.settings).fit(X, codes == c)
            self.paths.append(model.path_.entries)
        return self

    def staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """Yield scores (n_rows, k) with t = 1, 2, ... atoms per class.

        If a path ended early because nothing helped any more, its last model serves all later t.
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
        """Return the number of different atoms of all classes, and the sum, for t = 1, 2, ..."""
        unions, sums = [], []
        for t in range(1, self.max_atoms + 1):
            chosen = [path[min(t, len(path) - 1)].numbers for path in self.paths]
            unions.append(len(set().union(*chosen)))
            sums.append(sum(map(len, chosen)))
        return np.array(unions), np.array(sums)

"""Splits for cross-validation, grouped by host and stratified by label (P 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.training.document import Document


def stripes(documents: Sequence[Document], count: int, *, seed: int) -> NDArray[np.int64]:
    """Return the stripe of each document, [n] in 0 to count - 1; a host is in one stripe.

    Raise ValueError if a stripe would lack one of the labels.
    """
    true = np.array([document.relevant for document in documents], dtype=bool)
    hosts = [document.host for document in documents]
    result = np.zeros(len(documents), dtype=np.int64)
    if min(true.sum(), (~true).sum()) >= count:  # scikit-learn warns of fewer
        folds = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
        for stripe, (_, rows) in enumerate(folds.split(true, true, hosts)):
            result[rows] = stripe
    for label in sorted((True, False), key=lambda label: int((true == label).sum())):
        if len(np.unique(result[true == label])) < count:
            found = [document.host for document in documents if document.relevant is label]
            name = "relevant" if label else "irrelevant"
            raise ValueError(
                f"{len(found)} {name} documents of {len(set(found))} hosts are too few: "
                f"cross-validation needs {count} hosts or more for each label: "
                "add documents from other hosts, or try --classifier words"
            )
    return result

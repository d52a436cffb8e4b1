"""Fitting of the linear models to whole documents (P 3.3, Table 1).

`svm` is ACHE's page classifier as documented: a linear support vector machine over
the frequencies of the 5,000 most frequent words. `tfidf` is logistic regression over TF-IDF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.bag import SVM, TFIDF, BagOfWords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tres_scrapy.training.sample import Example

MIN_DOCUMENTS: Final = 3
MAX_WORDS: Final = {SVM: 5_000, TFIDF: 50_000}


def fit_bag(kind: str, examples: Sequence[Example]) -> BagOfWords:
    """Fit a linear model with balanced classes; the same examples give the same model."""
    tfidf = kind == TFIDF
    vectorizer = TfidfVectorizer(
        analyzer=_content,
        min_df=MIN_DOCUMENTS,
        max_features=MAX_WORDS[kind],
        sublinear_tf=tfidf,
        use_idf=tfidf,
    )
    rows = vectorizer.fit_transform([e.text.words for e in examples])
    model = (
        LogisticRegression(C=10, class_weight="balanced", max_iter=1_000)
        if tfidf
        else LinearSVC(class_weight="balanced", random_state=0, max_iter=10_000)
    )
    model.fit(rows, [e.relevant for e in examples])
    idf = vectorizer.idf_ if tfidf else np.ones(rows.shape[1])
    weights = np.stack([idf, model.coef_[0]]).astype(np.float32)
    words = [str(word) for word in vectorizer.get_feature_names_out()]
    return BagOfWords(kind, words, weights, float(model.intercept_[0]))


def _content(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in STOP_WORDS]

"""What labelled documents say of links before a crawl: weights of their URLs and titles.

A link to a document says its URL, and often its title as anchor text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from tres_scrapy.links.code import BITS, CODES, CueGroup, coded, url_codes
from tres_scrapy.links.model import LinkPrior, normed
from tres_scrapy.page.place import tokenise
from tres_scrapy.url.canonical import canonicalise, domain_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tres_scrapy.links.code import Codes
    from tres_scrapy.training.document import Document

FEWEST_DOCUMENTS: Final = 50  # documents of each label with a URL
DOMAINS: Final = 3  # a code of fewer may be the name of a site
STRENGTH: Final = 3.0  # inverse of the penalty on the squared weights
FAINT: Final = 0.05  # weights that are not worth their bytes


def fit_link_prior(documents: Sequence[Document]) -> LinkPrior | None:
    """Fit the weights of codes of URLs and titles to labels; None if few documents have URLs.

    A code counts if documents of several domains have it. The intercept is left out: the share of
    relevant documents is no share of links.
    """
    documents = [each for each in documents if canonicalise(each.url) is not None]
    labels = np.array([each.relevant for each in documents], dtype=np.float64)
    if min(labels.sum(), (1 - labels).sum()) < FEWEST_DOCUMENTS:
        return None
    codes, owner = _codes_of(documents)
    _, domains = np.unique([domain_of(each.url) for each in documents], return_inverse=True)
    pairs = np.unique(np.stack([codes.astype(np.int64), domains[owner]]), axis=1)
    wide = np.bincount(pairs[0], minlength=CODES)[codes] >= DOMAINS
    codes, owner = codes[wide], owner[wide]
    different, ids = np.unique(codes, return_inverse=True)
    values = normed(codes, owner, len(documents)).astype(np.float64)
    rows = csr_matrix((values, (owner, ids)), shape=(len(documents), len(different)))
    weights = LogisticRegression(C=STRENGTH, max_iter=1_000).fit(rows, labels).coef_[0]
    kept = np.abs(weights) >= FAINT
    return LinkPrior(different[kept], weights[kept].astype(np.float32))


def _codes_of(documents: Sequence[Document]) -> tuple[Codes, NDArray[np.int64]]:
    """Return the codes of documents [m] as of links to them, and the document of each [m]."""
    codes, owner = url_codes([each.url for each in documents])
    runs = codes >> np.uint32(BITS) == CueGroup.URL
    titles = [coded(CueGroup.ANCHOR, tokenise(each.title)) for each in documents]
    owners = np.repeat(np.arange(len(documents)), [*map(len, titles)])
    words = np.array([code for each in titles for code in each], dtype=np.uint32)
    return np.concatenate([codes[runs], words]), np.concatenate([owner[runs], owners])

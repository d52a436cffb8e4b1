"""What training documents say of links."""

import numpy as np
import pytest

from tres_scrapy.links.code import CueGroup, coded, url_codes
from tres_scrapy.training.document import Document
from tres_scrapy.training.link_prior import FEWEST_DOCUMENTS, fit_link_prior


def document(number, *, relevant, url="http://{host}.test/{folder}/{number}"):
    title = "Soup of leeks" if relevant else "Printers"
    folder = "recipes" if relevant else "news"
    host = "soup" if relevant and number % 2 else f"site{number % 5}"
    return Document(
        title=title,
        text="x",
        source="web",
        host=host,
        relevant=relevant,
        url=url.format(host=host, folder=folder, number=number),
    )


@pytest.fixture(scope="module")
def prior():
    documents = [document(n, relevant=n % 2 == 0) for n in range(2 * FEWEST_DOCUMENTS)]
    documents += [document(n, relevant=True) for n in range(1, 40, 2)]  # of one site
    documents += [document(1, relevant=True, url="http://[bad/{number}")]
    found = fit_link_prior(documents)
    return dict(zip(found.codes.tolist(), found.weights.tolist(), strict=True))


def logit(prior, url):
    return sum(prior.get(code, 0.0) for code in url_codes([url])[0].tolist())


def test_words_of_urls_and_titles_speak(prior):
    assert logit(prior, "http://new.test/recipes/7") > 1
    assert logit(prior, "http://new.test/news/7") < -1
    (leeks,), (printers,) = (coded(CueGroup.ANCHOR, [word]) for word in ("leeks", "printers"))
    assert prior[leeks] > 0 > prior[printers]


def test_name_of_one_site_says_nothing(prior):
    codes, _ = url_codes(["http://soup.test/"])
    soup = url_codes(["http://pea.test/"])[0]
    assert not set(np.setdiff1d(codes, soup).tolist()) & prior.keys()


@pytest.mark.parametrize(
    "documents",
    [
        [document(n, relevant=n % 9 == 0) for n in range(2 * FEWEST_DOCUMENTS)],
        [
            document(n, relevant=n % 2 == 0, url="web.jsonl#{number}")
            for n in range(9 * FEWEST_DOCUMENTS)
        ],
    ],
)
def test_few_urls_are_not_enough(documents):
    assert fit_link_prior(documents) is None

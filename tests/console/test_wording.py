import pytest

from tres_scrapy.console.wording import in_words_of_tres


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("scrapy tres-train: it fails", "tres train: it fails"),
        ("scrapy crawl tres: no seed: add -a seed=URL", "tres crawl: no seed: add --seed URL"),
        ("scrapy crawl refresh: no", "tres refresh: no"),
        ("TRES_MAX_HTML (-a max_html=) 'x': must be", "--max-html 'x': must be"),
        ("set -a browser_sandbox=0", "set --no-browser-sandbox"),
        ("-a private_addresses=1 allows it", "--private-addresses allows it"),
        ("tres-web takes one web", "takes one web"),
    ],
)
def test_scrapys_words_become_options(said, meant):
    assert in_words_of_tres(said) == meant

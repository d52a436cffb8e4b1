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
        ("to allow it, add -s TRES_PRIVATE_ADDRESSES=1", "to allow it, add --private-addresses"),
        ("raise -a pages= to go on", "raise --pages to go on"),
    ],
)
def test_scrapys_words_become_options(said, meant):
    assert in_words_of_tres(said) == meant

from random import Random

import pytest
from protego import Protego

from tres_scrapy.page.robots import MAX_LENGTH, own_rules, product_token

US = "tres-scrapy"


def forbids(body, path):
    body = body if isinstance(body, bytes) else body.encode()
    return not Protego.parse(own_rules(body, US).decode()).can_fetch(f"http://a.test{path}", "*")


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("tres-scrapy (focused crawler; no contact given)", "tres-scrapy"),
        ("MyBot/2.1 (+https://my.org/bot)", "mybot"),
        ("Mozilla/5.0 (compatible; MyBot/2.1; +https://my.org)", "mybot"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "mozilla"),
        ("", ""),
    ],
)
def test_token_is_first_name(user_agent, token):
    assert product_token(user_agent) == token


@pytest.mark.parametrize("name", ["t", "tres", "Scrapy", "tres-scrapy2", "other", "*bot", ""])
def test_other_names_are_not_ours(name):
    assert not forbids(f"User-agent: {name}\nDisallow: /\n", "/x")
    assert forbids(f"User-agent: {name}\nUser-agent: *\nDisallow: /\n", "/x")


@pytest.mark.parametrize("name", ["tres-scrapy", "TRES-Scrapy/2.0", "tres-scrapy bot"])
def test_own_groups_replace_the_general_one(name):
    groups = [("/own", name), ("/all", "*"), ("/two", "tres-scrapy")]
    rules = "\n".join(f"User-agent: {agent}\nDisallow: {path}" for path, agent in groups)
    assert forbids(rules, "/own")
    assert forbids(rules, "/two")
    assert not forbids(rules, "/all")


def test_own_empty_group_allows_all():
    assert not forbids("User-agent: *\nDisallow: /\n\nUser-agent: tres-scrapy\nDisallow:\n", "/x")


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_line_ends_and_encodings_are_read(newline, encoding):
    lines = ["Sitemap: http://a.test/x", "User-agent: a", "Unknown: b", "User-agent: *"]
    rules = newline.join([*lines, "Disallow: /caf\xe9 # closed", "Allow: /caf\xe9/open"])
    assert forbids(rules.encode(encoding), "/caf%C3%A9")
    assert not forbids(rules.encode(encoding), "/caf%C3%A9/open")


def test_first_half_megabyte_counts():
    start = b"User-agent: *\nDisallow: /early\n"
    whole = start + b"#" * (MAX_LENGTH - len(start) - 12) + b"\nDisallow: /late\n" + bytes(10**6)
    assert forbids(whole, "/early")
    assert not forbids(whole, "/l")  # no rule is cut off


def test_rules_grow_with_the_file():
    many = 2_000
    agents = "".join(f"User-agent: a{i}\n" for i in range(many)) + "User-agent: *\n"
    rules = own_rules((agents + "Disallow: /x\n" * many).encode(), US)
    assert len(rules.splitlines()) == many + 1


def test_generated_files_forbid_what_they_say():
    """Compared with a reader that looks for the last group that names us, or everyone."""
    for seed in range(1_000):
        random = Random(seed)
        groups, expected = [], {US: set(), "*": set()}
        for number in range(random.randrange(1, 12)):
            names = random.sample([US, "*", "t", "Scrapy", "other", "tres"], random.randrange(1, 4))
            paths = [f"/{number}-{i}/" for i in range(random.randrange(4))]
            filler = random.choice(["", "# comment", "Sitemap: http://a.test/s.xml", "Foo: bar"])
            lines = [f"{random.choice(['User-agent', 'user-agent'])}: {name}" for name in names]
            lines += [filler, *(f"Disallow: {path}" for path in paths)]
            groups.append(lines if paths else [*lines, "Disallow:"])
            for name in expected.keys() & set(names):
                expected[name].update(paths)
        text = random.choice(["\n", "\r\n"]).join(line for lines in groups for line in lines)
        named = f": {US}" in text
        for path in {path for lines in groups for path in lines if path.startswith("Disallow: /")}:
            place = path.removeprefix("Disallow: ")
            assert forbids(text, place) == (place in expected[US if named else "*"]), seed

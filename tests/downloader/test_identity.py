"""Requests that a site can verify (RFC 9421, Web Bot Auth), by another implementation."""

import hashlib
import json
from base64 import b64encode, urlsafe_b64decode
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import InvalidSignature
from scrapy.settings import Settings
from twisted.web._newclient import Request
from twisted.web.http_headers import Headers
from verifier import Site, clock, verifier_of

from tres_scrapy.addon import TresAddon
from tres_scrapy.downloader import identity as module
from tres_scrapy.downloader.handler import signed
from tres_scrapy.downloader.identity import Identity, KeyFolder, origin_of
from tres_scrapy.url.message import TresError

HOST = "crawler.test"
URL = "https://site.test/a?b=1"
# the test key of RFC 9421, B.1.4
TEST_KEY = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU="


@pytest.fixture
def folder(tmp_path):
    return KeyFolder(tmp_path / "identity")


@pytest.fixture
def key(folder):
    return folder.add(f"https://{HOST}")


@pytest.fixture
def site(folder, key):
    return Site(**{HOST: folder.directory.read_bytes()})


def sent(key, url=URL):
    """Return the headers of a request as it goes to the wire."""
    host = url.split("/")[2]
    plain = Request(b"GET", b"/a?b=1", Headers({"Host": [host], "X": ["1"]}), None)
    headers = signed(plain, Identity.read(key)).headers
    assert not plain.headers.hasHeader("Signature")
    return {name.decode(): value.decode() for name, (value,) in headers.getAllRawHeaders()}


def test_signature_is_that_of_the_draft(monkeypatch):
    """The test vector of the draft for ed25519, with its label, nonce and times."""
    nonce = (
        "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA=="
    )
    monkeypatch.setattr(module, "LABEL", "agent2")
    monkeypatch.setattr(module, "LIFETIME", 4889289600 - 1735689600)
    monkeypatch.setattr(module, "time", lambda: 1735689600.5)
    monkeypatch.setattr(module, "token_urlsafe", lambda _: nonce)
    secret = Ed25519PrivateKey.from_private_bytes(urlsafe_b64decode(TEST_KEY))
    identity = Identity("https://signature-agent.test", secret)
    assert identity.keyid == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
    signature = (
        "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg=="
    )
    assert identity.sign_request("Example.com")["Signature"] == f"agent2=:{signature}:"


@pytest.mark.parametrize(
    "url", [URL, "http://site.test:8080/a", "http://SITE.test/", "http://[::1]:8/"]
)
def test_site_recognises_requests(site, key, url):
    assert site.check(url, sent(key, url)) == Identity.read(key).keyid


def test_each_request_has_its_own_nonce(site, key):
    first, second = sent(key), sent(key)
    site.check(URL, first)
    site.check(URL, second)
    with pytest.raises(InvalidSignature, match="seen before"):
        site.check(URL, first)


def test_other_host_refuses_the_signature(site, key):
    with pytest.raises(InvalidSignature):
        site.check("https://other.test/a?b=1", sent(key))


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [
        ("Signature-Agent", HOST, "other.test"),
        ("Signature-Input", "created=1", "created=2"),
        ("Signature-Input", ";nonce=", ';nonce="x";z='),
    ],
)
def test_changed_request_is_refused(site, key, header, old, new):
    site.publish("other.test", site.directories[HOST])
    headers = sent(key)
    assert old in headers[header]
    headers[header] = headers[header].replace(old, new)
    with pytest.raises(InvalidSignature):
        site.check(URL, headers)


@pytest.mark.parametrize(
    ("ahead", "accepted"), [(-60, False), (-3, True), (60, True), (290, True), (320, False)]
)
def test_clocks_may_differ_a_little(site, key, ahead, accepted):
    """A site whose clock is behind sees signatures from the future; one ahead, expired ones."""
    headers = sent(key)
    with clock(ahead):
        if accepted:
            site.check(URL, headers)
        else:
            with pytest.raises(InvalidSignature):
                site.check(URL, headers)


def test_keys_are_rotated(site, folder, key):
    old = folder.directory.read_bytes()
    new = folder.add(None)
    for each in (key, new):  # both are listed until the old one is removed
        site.publish(HOST, folder.directory.read_bytes())
        site.check(URL, sent(each))
    headers = sent(key)
    folder.remove(key)
    site.publish(HOST, folder.directory.read_bytes())
    site.check(URL, sent(new))
    with pytest.raises(InvalidSignature, match="resolve"):
        site.check(URL, headers)
    site.publish(HOST, old)  # as the site still has it cached
    with pytest.raises(InvalidSignature, match="resolve"):
        site.check(URL, sent(new))
    assert not key.exists()


def test_failed_removal_lists_no_deleted_key(folder, key, monkeypatch):
    monkeypatch.setattr(KeyFolder, "directory", folder.path / "missing" / "directory")
    with pytest.raises(OSError, match="missing"):
        folder.remove(key)
    assert key.exists()


def test_last_key_leaves_no_empty_header(folder, key):
    folder.remove(key)
    assert json.loads(folder.directory.read_bytes()) == {"keys": []}
    assert "Signature" not in folder.headers.read_text()


def test_key_of_another_folder_stays(folder, key, tmp_path):
    with pytest.raises(TresError, match="give its --folder"):
        KeyFolder(tmp_path / "other").remove(key)
    assert key.exists()


def test_directory_proves_its_keys(folder, key):
    """Its headers verify with each key that it lists, over its own bytes."""
    folder.add(None)
    body = folder.directory.read_bytes()
    headers = dict(line.split(": ", 1) for line in folder.headers.read_text().splitlines())
    assert headers["Content-Type"] == "application/http-message-signatures-directory+json"
    request = SimpleNamespace(method="GET", url=f"https://{HOST}/x", headers={})
    answer = SimpleNamespace(status_code=200, headers=headers, request=request)
    results = verifier_of(body).verify(
        answer,
        expect_tag="http-message-signatures-directory",
        require_components=('"@authority";req', "content-digest"),
        body=body,
    )
    listed = {each["kid"] for each in json.loads(body)["keys"]}
    assert {each.parameters["keyid"] for each in results} == listed
    assert len(listed) == 2


def test_keyid_is_the_thumbprint(folder, key):
    (listed,) = json.loads(folder.directory.read_bytes())["keys"]
    text = f'{{"crv":"Ed25519","kty":"OKP","x":"{listed["x"]}"}}'
    digest = hashlib.sha256(text.encode()).digest()
    assert listed["kid"] == b64encode(digest, b"-_").decode().rstrip("=")
    assert listed.keys() == {"kty", "crv", "x", "kid", "use"}


def test_only_the_owner_may_read_a_key(key):
    assert key.stat().st_mode & 0o777 == 0o600
    for mode in (0o640, 0o604, 0o620):
        key.chmod(mode)
        with pytest.raises(TresError, match=f"mode {mode:04o}.*chmod 600"):
            Identity.read(key)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"agent": 3, "d": "AA"}', '{"agent": "https://a.test", "d": "AA"}'],
)
def test_broken_key_is_one_line(key, text):
    key.write_text(text)
    with pytest.raises(TresError, match=r"is not a key file of `tres identity new`$"):
        Identity.read(key)


@pytest.mark.parametrize("text", ["https://A.test/", "https://a.test", "https://a.test:443"])
def test_agent_is_an_origin(text):
    assert origin_of(text) == "https://a.test"


@pytest.mark.parametrize(
    "text",
    [
        "http://a.test",
        "a.test",
        "https://",
        "https://a.test/x",
        "https://u@a.test",
        'https://a"b.test',
        "https://..",
        "https://-",
        "https://a.test:99999",
    ],
)
def test_other_agents_are_refused(text):
    with pytest.raises(TresError, match="without a path"):
        origin_of(text)


def test_folder_is_of_one_agent(folder, key):
    with pytest.raises(TresError, match="another --folder"):
        folder.add("https://other.test")
    with pytest.raises(TresError, match="give the https address"):
        KeyFolder(folder.path / "new").add(None)


def settings_of(**given):
    settings = Settings(given)
    TresAddon().update_settings(settings)
    return settings


def test_key_is_checked_before_the_crawl(key):
    settings = settings_of(TRES_IDENTITY=str(key)).copy_to_dict()
    assert json.loads(key.read_text())["d"] not in str(settings)
    key.chmod(0o644)
    with pytest.raises(TresError, match="chmod 600"):
        settings_of(TRES_IDENTITY=str(key))
    with pytest.raises(TresError, match="there is no such file"):
        settings_of(TRES_IDENTITY=f"{key}.no")


def test_handler_that_does_not_sign_is_refused(key):
    other = {"https": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}
    with pytest.raises(TresError, match=r"DOWNLOAD_HANDLERS\['https'\].*does not sign"):
        settings_of(TRES_IDENTITY=str(key), DOWNLOAD_HANDLERS=other)
    settings_of(DOWNLOAD_HANDLERS=other)

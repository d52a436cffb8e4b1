"""Crawls whose requests are signed, as the sites see them."""

import gzip
import json
import ssl
import threading
from base64 import b64encode, urlsafe_b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trustme
from soup import FOOD, link
from verifier import Site

from tres_scrapy.downloader.identity import KeyFolder

pytestmark = pytest.mark.slow

HOST = "crawler.test"


@pytest.fixture
def folder(tmp_path):
    return KeyFolder(tmp_path / "identity")


@pytest.fixture
def key(folder):
    return folder.add(f"https://{HOST}")


@pytest.fixture
def check(folder, key, pages):
    """Check all requests that the web has got; return their URLs."""

    def run():
        site = Site(**{HOST: folder.directory.read_bytes()})
        for url, headers in pages.heads:
            site.check(url, headers)
        return [url for url, _ in pages.heads]

    return run


def forms_of(key):
    """Return the secret in each form in which it could be written."""
    secret = urlsafe_b64decode(json.loads(key.read_text())["d"] + "=")
    plain, url = b64encode(secret), b64encode(secret, b"-_")
    return [secret, secret.hex().encode(), plain.rstrip(b"="), url.rstrip(b"=")]


def test_all_requests_are_signed_and_the_key_stays(crawl, pages, check, key, tmp_path):
    """Pages, a redirect to another host, robots.txt, sitemaps, and files about usage rights."""
    pages.add("http://a.test/robots.txt", "Sitemap: http://a.test/map.xml\n")
    pages.add("http://a.test/map.xml", "<urlset><url><loc>http://a.test/2</loc></url></urlset>")
    pages.add("http://a.test/", FOOD + link("http://a.test/go", "soup"))
    pages.add("http://a.test/go", status=302, Location="http://b.test/soup")
    pages.add("http://b.test/soup", FOOD)
    pages.add("http://a.test/2", FOOD)
    log, job = tmp_path / "log", tmp_path / "job"
    process, items = crawl(
        *("-a", "seed=http://a.test/", "-a", f"identity={key}", "-a", "sitemap=1"),
        *("-a", "use=ai-train"),
        *("-a", "warc=all", "-s", f"JOBDIR={job}", "-s", f"LOG_FILE={log}", "-L", "DEBUG"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    assert items
    urls = check()
    assert {"robots.txt", "map.xml", "tdmrep.json"} <= {url.rpartition("/")[2] for url in urls}
    assert {"http://a.test/go", "http://b.test/soup", "http://b.test/robots.txt"} <= set(urls)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != key]
    assert {".run", ".html", ".jsonl", ".gz"} <= {path.suffix for path in written}
    for path in written:
        text = path.read_bytes()
        text = gzip.decompress(text) if path.suffix == ".gz" else text
        assert not [form for form in forms_of(key) if form in text], path
    assert f"Requests are signed for https://{HOST}, with key " in log.read_text()
    assert b"Signature-Input" not in (job / "tres.run").read_bytes()
    assert not [form for form in forms_of(key) if form.decode("latin-1") in process.stderr]
    assert forms_of(key)[-1] in key.read_bytes()


@pytest.mark.long
def test_second_attempt_is_signed_again(crawl, pages, check, key):
    """Twisted repeats a request if a connection that was kept open turns out to be closed."""
    for number in range(8):
        pages.add(f"http://a.test/{number}", FOOD + link(f"http://a.test/{number + 1}", "soup"))
    pages.lasts, pages.back = 4, 5
    crawl("-a", "seed=http://a.test/0", "-a", f"identity={key}", pages=pages)
    urls = check()
    assert urls[4] == urls[5]


@pytest.mark.long
def test_resumed_crawl_takes_a_new_key(crawl, pages, folder, check, key):
    for number in range(8):
        pages.add(f"http://a.test/{number}", FOOD + link(f"http://a.test/{number + 1}", "soup"))
    job = ("-a", "seed=http://a.test/0", "-s", f"JOBDIR={folder.path / 'job'}")
    crawl(*job, "-a", f"identity={key}", "-a", "pages=3", pages=pages)
    new = folder.add(None)
    crawl(*job, "-a", f"identity={new}", "-a", "pages=6", pages=pages)
    inputs = [headers["Signature-Input"] for _, headers in pages.heads]
    check()
    assert len({text.partition("keyid=")[2][:45] for text in inputs}) == 2


@pytest.fixture
def tunnels(pages):
    """Serve https sites behind a proxy; return its port and the requests for tunnels."""
    asked = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("a.test").configure_cert(context)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self):
            asked.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")

        def finish(self):
            super().finish()
            self.connection.close()

        def do_GET(self):
            pages.heads.append((f"https://{self.headers['Host']}{self.path}", dict(self.headers)))
            body = FOOD.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, asked
    server.shutdown()
    server.server_close()


@pytest.mark.long
def test_signature_is_for_the_site_behind_a_tunnel(crawl, tunnels, check, key, monkeypatch):
    port, asked = tunnels
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
    crawl("-a", "seed=https://a.test/", "-a", f"identity={key}", "-a", "pages=1")
    assert {"https://a.test/robots.txt", "https://a.test/"} <= set(check())
    assert asked
    assert not [name for head in asked for name in head if name.startswith("Signature")]


@pytest.mark.long
def test_unsigned_crawl_sends_no_signature(crawl, pages):
    pages.add("http://a.test/", FOOD)
    crawl("-a", "seed=http://a.test/", pages=pages)
    assert pages.heads
    assert not [name for _, head in pages.heads for name in head if name.startswith("Signature")]


def test_open_key_is_one_line(crawl, pages, key):
    key.chmod(0o644)
    process, _ = crawl("-a", "seed=http://a.test/", "-a", f"identity={key}", pages=pages)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "may be read by other users (mode 0644): run `chmod 600" in process.stderr
    assert not pages.heads


@pytest.mark.long
def test_identity_commands(tres, tmp_path):
    place = tmp_path / "identity"

    def run(*words):
        return tres("identity", *words, "--folder", place)

    assert "give the https address" in run("new").stderr
    first = run("new", f"https://{HOST}").stdout
    assert f"https://{HOST}/.well-known/http-message-signatures-directory" in first
    (key,) = place.glob("*.key")
    second = run("new").stdout
    assert "1 older key. Wait a day" in second
    assert f"tres identity remove {key}" in second
    assert len(json.loads((place / "http-message-signatures-directory").read_bytes())["keys"]) == 2
    assert key.name in run("show").stdout
    assert run("remove", key).returncode == 0
    assert not key.exists()
    assert key.name not in run("show").stdout
    assert all(run(*words).returncode for words in (["old"], ["remove"], ["remove", key]))

"""Records and exchanges as an archive stores them."""

from tres_scrapy.export.warc import Exchange

SOUP = b"<html><title>Leek soup</title><body>Simmer the leeks.</body></html>"
HTML = [("Content-Type", "text/html; charset=utf-8")]


def answered(url, body=SOUP, status=200, headers=HTML):
    return Exchange(url, "GET", [], b"", status, headers, body)


def record(url, body=b"<p>soup</p>", *, length=None, extra="", head=None):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" if head is None else head
    block = head + body
    length = len(block) if length is None else length
    return (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n{extra}"
        f"Content-Length: {length}\r\n\r\n"
    ).encode() + block + b"\r\n\r\n"  # fmt: skip

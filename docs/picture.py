"""Writes docs/live.png, a picture of the live page of a real crawl: `python docs/picture.py`."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

OUT = Path(__file__).with_name("live.png")
CRAWL = ["topic=food", "web=synthetic", "pages=1000", "max_per_domain=10", "dashboard=1"]
PAGES = 600  # fetched before the picture is taken
WIDTH, SHOWN = 1600, 1300  # of the browser and of the picture, in pixels


def take(address: str) -> bytes:
    """Return the page, from its top to the end of the tree, as PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 1200})
        page.goto(address)
        fetched = page.locator("#cards .value").first
        while int(fetched.inner_text()) < PAGES:
            page.wait_for_timeout(500)
        tree = page.locator("#wide").bounding_box()
        assert tree is not None
        height = tree["y"] + tree["height"] + 8
        picture = page.screenshot(
            full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )
        browser.close()
    return picture


def main() -> None:
    """Crawl the synthetic web, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "scrapy", "crawl", "tres"]
        for argument in (*CRAWL, f"output={folder}/food.jsonl"):
            command += ["-a", argument]
        with subprocess.Popen(  # noqa: S603 # the command is our own
            command, stderr=subprocess.PIPE, text=True
        ) as crawl:
            assert crawl.stderr is not None
            found = (re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", x) for x in crawl.stderr)
            address = next(match[0] for match in found if match)
            try:
                picture = take(address)
            finally:
                crawl.terminate()
                crawl.communicate()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.resize((SHOWN, SHOWN * image.height // image.width))
    image.quantize(256, Image.Quantize.FASTOCTREE).save(OUT, optimize=True)


if __name__ == "__main__":
    main()

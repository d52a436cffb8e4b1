import io
import shutil
import subprocess
import zlib
from contextlib import closing

import pytest
from fpdf import FPDF
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from PIL import Image
from reportlab.pdfgen import canvas

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page import pdf
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.pdf_page import DocumentError, PdfReader, read_document

URL = "http://a.test/papers/soup.pdf"
SOUP = "Boil the onions in butter and flour until they are brown."
MEGABYTES = 1 << 20
CHROMIUM = shutil.which("chromium")


def raw(content, *objects):
    """Return a PDF of one page, written by hand; `objects` have the numbers from 6 on."""
    content = zlib.compress(content)
    own = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Annots[6 0 R]"
        b"/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    bodies = [b"%d 0 obj%b\nendobj\n" % each for each in enumerate([*own, *objects], start=1)]
    return b"%%PDF-1.4\n%btrailer<</Root 1 0 R>>" % b"".join(bodies)


def said(text):
    return b"BT /F 12 Tf 72 700 Td (%b) Tj ET " % text


def by_hand():
    link = b"<</Subtype/Link/Rect[70 695 105 712]/A<</S/URI/URI(../leek?utm_source=x)>>>>"
    return raw(said(b"Onion soup, more at www.b.test/pea"), link)


def by_fpdf2(*, locked=False):
    made = FPDF()
    made.set_title("Microsoft Word - Soups")
    made.set_font("helvetica", size=12)
    for name in ("leek", "pea"):
        made.add_page()
        made.multi_cell(0, 8, f"{SOUP} ", new_x="RIGHT", new_y="LAST")
        made.cell(0, 8, f"soup of {name}s", link=f"https://{name}.test/")
    if locked:
        made.set_encryption("owner", "butter")
    return bytes(made.output())


def by_reportlab():
    file = io.BytesIO()
    made = canvas.Canvas(file)
    made.drawString(72, 800, "A recipe: leek soup")
    left = 72 + made.stringWidth("A recipe: ")
    made.linkURL("https://leek.test/", (left, 797, left + 60, 812))
    made.showPage()
    made.save()
    return file.getvalue()


def by_matplotlib():
    file, figure = io.BytesIO(), Figure()
    figure.text(0.1, 0.5, "soup of leeks", url="https://leek.test/")
    FigureCanvasPdf(figure).print_pdf(file, metadata={"Title": "Soups"})
    return file.getvalue()


def by_pillow():
    file = io.BytesIO()
    Image.new("RGB", (50, 50)).save(file, "PDF", title="A scan")
    return file.getvalue()


def page_of(body, **options):
    return read_document(pdf.read(body), URL, **options)


@pytest.mark.parametrize(
    ("body", "title", "text", "links"),
    [
        (
            by_hand(),
            "Onion soup, more at www.b.test/pea",
            "Onion soup, more at www.b.test/pea",
            [("http://a.test/leek", "Onion"), ("http://www.b.test/pea", "www.b.test/pea")],
        ),
        (
            by_fpdf2(),
            "Soups",
            f"{SOUP} soup of leeks {SOUP} soup of peas",
            [("https://leek.test/", "soup of leeks"), ("https://pea.test/", "soup of peas")],
        ),
        (
            by_reportlab(),
            "A recipe: leek soup",
            "A recipe: leek soup",
            [("https://leek.test/", "leek soup")],
        ),
        (by_matplotlib(), "Soups", "soup of leeks", [("https://leek.test/", "soup of leeks")]),
        (by_pillow(), "A scan", "", []),
    ],
    ids=["by hand", "fpdf2", "reportlab", "matplotlib", "pillow"],
)
def test_producers_are_read_alike(body, title, text, links):
    assert is_pdf(body)
    page = page_of(body)
    assert (page.title, page.text) == (title, text)
    assert [tuple(link) for link in page.links] == links


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_browser_pdf_is_read(tmp_path):
    (tmp_path / "a.html").write_text(
        f"<title>Soups</title><p>{SOUP}</p><p style='width: 9em'>See "
        "<a href='https://leek.test/'>soup of leeks with much cream</a> too.",
        encoding="utf-8",
    )
    made = tmp_path / "a.pdf"
    command = [CHROMIUM, "--headless", "--no-sandbox", f"--print-to-pdf={made}", "a.html"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = page_of(made.read_bytes())
    assert (page.title, page.language) == ("Soups", "en")
    assert page.links == (("https://leek.test/", "soup of leeks with much cream"),)
    assert "until they are brown see too" in " ".join(page.places[0].around)


def test_words_around_a_link_are_its_place():
    page = page_of(by_fpdf2())
    assert page.contexts[1] == "the onions in butter and flour until they are brown"
    assert page.places[1] == (tuple(SOUP.lower()[:-1].split()), ())


def test_pictures_of_a_document_are_no_links():
    body = by_hand().replace(b"leek?", b"leek.png?")
    assert [link.url for link in page_of(body).links] == ["http://www.b.test/pea"]


def test_hyphens_at_line_ends_are_removed():
    lines = b"BT /F 12 Tf 72 700 Td (a good reci-) Tj 0 -14 Td (pe) Tj ET"
    assert page_of(raw(lines)).text == "a good recipe"


def test_limits_cut_a_document():
    limits = ReadingLimits(html=20, links=1, anchor=4)
    page = page_of(by_fpdf2(), limits=limits)
    assert page.text == SOUP[:20]
    assert page.links == (("https://leek.test/", "soup"),)


def test_headers_forbid_links_and_keeping():
    page = page_of(by_fpdf2(), robots=("noindex, nofollow",))
    assert (page.links, page.may_be_kept) == ((), False)
    page = page_of(by_fpdf2(), robots=("none",), limits=ReadingLimits(obey=False))
    assert (len(page.links), page.may_be_kept) == (2, True)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b"%PDF-1.4", True),
        (b"\r\n junk %PDF-1.4", True),
        (b"<p>about %PDF-1.4", False),
        (b"\xef\xbb\xbf<title>%PDF-1.4", False),
        (b" " * 2000 + b"%PDF-1.4", False),
        (b"", False),
    ],
)
def test_content_tells_a_pdf(body, answer):
    assert is_pdf(body) is answer


@pytest.fixture
def reader():
    with closing(PdfReader()) as reader:
        yield reader


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.4\n%%EOF\n",
        by_reportlab()[:700],
        by_fpdf2(locked=True),
        None,
    ],
    ids=["empty", "cut", "password", "bomb"],
)
def test_broken_document_is_refused(reader, body):
    body = body or raw(said(b"soup") * (1000 * MEGABYTES // 40))
    with pytest.raises(DocumentError):
        reader(body)
    assert reader(by_hand())["pages"] == ["Onion soup, more at www.b.test/pea"]


@pytest.mark.slow
def test_slow_document_is_given_up():
    with closing(PdfReader(patience=0.3)) as reader:
        with pytest.raises(DocumentError):
            reader(raw(said(b"soup") * 1_000_000))
        assert reader(by_hand())["title"] == ""


@pytest.mark.parametrize(
    "body",
    [
        by_hand().replace(b"Kids[3 0 R]/Count 1", b"Kids[2 0 R 3 0 R]/Count 2"),
        by_hand().replace(b"/Parent 2 0 R", b"/Parent 3 0 R"),
        raw(
            said(b"leek") + b"/X Do", b"<</Subtype/Form/Length 5>>stream\n/X Do\nendstream"
        ).replace(b"/Font<<", b"/XObject<</X 6 0 R>>/Font<<"),
    ],
    ids=["pages", "parent", "form"],
)
def test_cycles_end(body):
    assert pdf.read(body)

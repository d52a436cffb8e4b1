import pytest
from fpdf import FPDF

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.page.pdf_page import PDFS, read_document
from tres_scrapy.refresh.main_text import MINOR, OTHER, SAME, compare, copy_of, copy_of_bytes
from tres_scrapy.refresh.visit import answer_of

URL = "http://a.test/menu.pdf"
SOUP = " ".join(f"onion{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120))


def pdf(text):
    made = FPDF()
    made.set_title("Menu")
    made.add_page()
    made.set_font("helvetica", size=12)
    made.multi_cell(0, 8, text)
    return bytes(made.output())


def answered(body, **limits):
    return answer_of(200, URL, body, (None, None), ReadingLimits(**limits))


@pytest.fixture(scope="module", autouse=True)
def reader():
    """The process that reads PDFs, ended after the tests."""
    yield PDFS
    PDFS.close()


@pytest.fixture
def kept(reader):
    """The copy of the text that the crawl keeps of the PDF."""
    page = read_document(reader(pdf(SOUP)), URL)
    return copy_of(page.title, page.text, loose=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "change"),
    [(SOUP, SAME), (SOUP + " leek", MINOR), (" ".join(reversed(SOUP.split())), OTHER)],
    ids=["same", "a word more", "other"],
)
def test_pdf_is_compared_by_its_text(kept, text, change):
    answer = answered(pdf(text))
    assert compare(kept, answer.copy) == change
    assert answer.reading.title == "Menu"
    assert answer.reading.text.startswith("onion")


@pytest.mark.slow
def test_broken_pdf_is_compared_by_its_bytes():
    answer = answered(b"%PDF-1.4 nothing")
    assert answer.reading is None
    assert answer.copy == copy_of_bytes(b"%PDF-1.4 nothing")


def test_pdfs_are_not_read_without_documents():
    assert answered(pdf(SOUP), documents=False).reading is None


def test_other_files_are_compared_by_their_bytes():
    assert answered(b"\x89PNG").copy == copy_of_bytes(b"\x89PNG")

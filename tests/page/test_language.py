from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.page.language import detect_language

BREAD = {
    "en": "The baker put the bread into the oven and waited until the crust was brown",
    "de": "Der Bäcker schob das Brot in den Ofen und wartete, bis die Kruste braun war",
    "fr": "Le boulanger a mis le pain au four et attendu que la croûte soit brune",
    "da": "Bageren satte brødet i ovnen og ventede, til skorpen var brun",
    "ca": "El forner va posar el pa al forn i va esperar que la crosta fos daurada",
    "cs": "Pekař vložil chléb do pece a čekal, až bude kůrka hnědá, a pak jsme jej snědli",
    "he": "האופה הכניס את הלחם לתנור וחיכה עד שהקרום השחים ואז אכלנו אותו",
    "zh": "面包师把面包放进烤箱,等到外皮变成棕色,然后我们一起吃了面包",
    "ja": "パン屋はパンをオーブンに入れて、皮が茶色になるまで待ちました",
}


@pytest.mark.parametrize("language", list(BREAD))
def test_sentences_tell_the_language(language: str) -> None:
    assert detect_language(BREAD[language]) == language


@pytest.mark.parametrize("text", ["", "Brot und Wein", "1 2 3 " * 500, "\0\ud800", "面包"])
def test_few_words_need_a_declaration(text: str) -> None:
    assert detect_language(text) == ""
    assert detect_language(text, "de-AT") == detect_language(text, " DE_at ") == "de"


@pytest.mark.parametrize("declared", ["", "x", "english", "qq", "\ud800", "tlh"])
def test_a_declared_language_must_be_one(declared: str) -> None:
    assert detect_language("", declared) == ""


def test_text_outweighs_what_the_page_declares() -> None:
    assert detect_language(BREAD["fr"], "en") == "fr"


def test_encoded_file_has_no_language() -> None:
    rows = "M:6EI:6EI:6EI:6EI:6E M)G(F&G*Z<G*R)G(:NB8: MAX>'AX>'AX>'AX>'AYZ> M7U=7R!1KP5A8=F "
    assert detect_language(rows * 4) == ""


def test_language_menu_is_ignored() -> None:
    menu = (
        "Shqip Bosanski Hrvatski Español Ελληνικά Magyar Italiano Polski Português Română Türkçe "
    )
    assert detect_language(menu * 3 + BREAD["en"] * 20) == "en"


PLAIN = {
    "en": "It was the best of them, and when they had seen it there was not a word to be said by",
    "de": "Es war nicht mehr so wie vor dem Krieg, und wir haben auch nur noch einen von den zwei",
    "fr": "Il ne sera pas dans la maison, mais nous avons tout fait pour que les enfants soient là",
    "es": "No fue hasta muy tarde cuando los dos se pusieron a hablar de lo que había en la mesa",
}


@pytest.mark.parametrize("language", list(PLAIN))
def test_plain_text_needs_no_detector(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tres_scrapy.page.language._identifier", None)
    assert detect_language(PLAIN[language], f"{language}-XX") == language


@pytest.mark.parametrize("language", list(PLAIN))
@pytest.mark.parametrize("declared", ["", "en", "de", "fr", "es", "it", "nl", "pt", "da"])
def test_function_words_do_not_mislead(language: str, declared: str) -> None:
    assert detect_language(PLAIN[language], declared) == language


@given(st.text(st.characters(exclude_categories=[])))
def test_language_is_two_letters(text: str) -> None:
    assert len(detect_language(text * 20)) in {0, 2}

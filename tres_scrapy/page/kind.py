"""What kind of answer it is: a PDF, a soft 404, empty without its scripts, or a wall.

A wall has status 200 and is no page of the site. It is short, and says what it is: a page about
walls, such as a help page on cookies, is longer or has the links of its site.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import UNSEEN, Page, parse
from tres_scrapy.url.canonical import canonicalise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser, LexborNode


MARK: Final = b"%PDF-"
MARK_WITHIN: Final = 1_024  # bytes: other readers look for the mark within them too
# A list of tags, a contact page or a picture may have ten words, but then it has links.
HARDLY_A_WORD: Final = 5
FEW_WORDS: Final = 15  # with fewer than FEW_LINKS
FEW_LINKS: Final = 3
FEW_WORDS_AROUND: Final = 100  # an empty main element, or a text such as "Loading"
FEW_WORDS_BESIDE_A_NOTICE: Final = 300
SCRIPT: Final = (
    "script:not([type]), script[type=''], script[type*=javascript i], script[type=module i]"
)
ROOT: Final = (
    "#root, #app, #main-app, #app-root, #__next, #__nuxt, #___gatsby, #svelte, #q-app, [ng-app],"
    "[ng-version], [data-reactroot], app-root"
)
MAIN: Final = "main, [role=main]"
MEDIA: Final = "img, picture, video, audio, canvas, form, input"
LOADING: Final = re.compile(r"\bloading\b|\bplease wait\b", re.IGNORECASE)
NOTICE: Final = re.compile(r"java ?script|enable js", re.IGNORECASE)
OF_A_PART: Final = re.compile(r"comment|form\b", re.IGNORECASE)  # the rest of the page is there
# Rendering helped if a page gained at least so much, and half of what it had before.
WORDS_GAINED: Final = 30
LINKS_GAINED: Final = 3
ANCHOR: Final = re.compile(rb"<a\s", re.IGNORECASE)
OWN_LINKS: Final = 10  # a page that only leads to another has fewer
_LONG = 150  # words; a longer page has other content
_NUMBER = re.compile(r"\b404\b")
_MISSING = re.compile(
    r"\b(?:error|page)\W+404\b|\b404\W+(?:error|page|not)\b|\bnot\s+found\b"
    r"|\b(?:no\s+longer|does\s*n[o'\u2019]t|cannot\s+be)\s+(?:exists?|available|found)\b",
    re.IGNORECASE,
)


def only_leads_on(body: bytes, url: str, target: str) -> bool:
    """Return whether a page that a meta element refreshes to `target` is no page of its own.

    Others have more anchors, and are moved but still there, or show themselves again.
    """
    is_itself = canonicalise(target) == canonicalise(url)
    return not is_itself and len([*islice(ANCHOR.finditer(body), OWN_LINKS)]) < OWN_LINKS


class Content(NamedTuple):
    """How much a page holds: visible words, and links."""

    words: int
    links: int

    def is_much_more_than(self, other: Content) -> bool:
        """Return whether this is so much more than `other` that rendering helped."""
        words, links = self.words - other.words, self.links - other.links
        much_text = words >= max(WORDS_GAINED, other.words / 2)
        return much_text or links >= max(LINKS_GAINED, other.links / 2)


class ClientRendered(NamedTuple):
    """A page before its scripts have run."""

    content: Content
    is_empty: bool  # little content, and scripts that may add the rest


def content_of(html: str) -> Content:
    """Return the content of a page."""
    return _content(parse(html))


def needs_scripts(html: str, words: int) -> bool:
    """Return whether a page in which so many words were found needs its scripts."""
    return words < FEW_WORDS_BESIDE_A_NOTICE and look_at(html).is_empty


def look_at(html: str) -> ClientRendered:
    """Return the content of a page and whether it needs its scripts.

    It does if it has scripts and one of these: hardly a word; few words and few links; little text
    that says "Loading", or around an empty main element; little text with a notice to enable
    JavaScript for the whole page; an empty root element of a common framework.
    """
    tree = parse(html)
    has_scripts = tree.css_first(SCRIPT) is not None
    notice = any(map(_is_notice, tree.css("noscript")))
    content = _content(tree)
    words, links = content
    is_empty = (
        words < (HARDLY_A_WORD if links >= FEW_LINKS else FEW_WORDS)
        or (words < FEW_WORDS_AROUND and _awaits_its_main_part(tree))
        or (words < FEW_WORDS_BESIDE_A_NOTICE and notice)
        or _is_any_empty(tree, ROOT)
    )
    return ClientRendered(content, has_scripts and is_empty)


def _content(tree: LexborHTMLParser) -> Content:
    """Count words and links; remove invisible elements from the tree."""
    links = len({node.attributes["href"] for node in tree.css("a[href]")})
    for node in reversed(tree.css(UNSEEN)):  # inner nodes first: an outer one frees them
        node.decompose()
    return Content(len(tokenise(_text(tree.body))), links)


def _is_notice(node: LexborNode) -> bool:
    text = _text(node)
    return NOTICE.search(text) is not None and OF_A_PART.search(text) is None


def _awaits_its_main_part(tree: LexborHTMLParser) -> bool:
    return LOADING.search(_text(tree.body)) is not None or _is_any_empty(tree, MAIN, but=MEDIA)


def _is_any_empty(tree: LexborHTMLParser, elements: str, but: str = "") -> bool:
    """Return whether one of these elements has no word, and no element of `but`."""
    empty = (node for node in tree.css(elements) if not tokenise(_text(node)))
    return any(not (but and node.css(but)) for node in empty)


def _text(node: LexborNode | None) -> str:
    return node.text(separator=" ") if node is not None else ""


def is_pdf(body: bytes) -> bool:
    """Return whether a body is a PDF, whatever its media type says."""
    start = body[:MARK_WITHIN].removeprefix(BOM_UTF8).lstrip()
    return MARK in start and not start.startswith(b"<")


def is_soft_404(page: Page) -> bool:
    """Return whether a short page reports a missing page in its title or first words."""
    told = _NUMBER.search(page.title) or _MISSING.search(f"{page.title} {page.text[:200]}")
    return told is not None and len(tokenise(page.text)) < _LONG


CHALLENGE: Final = "wall_challenge"  # whether the visitor is a human
CONSENT: Final = "wall_consent"
LOGIN: Final = "wall_login"
PARKED: Final = "wall_parked"  # the domain is for sale, or its server has no site yet
SCRIPTS: Final = "wall_scripts"  # nothing is shown without JavaScript
WALLS: Final = {  # what each is, for people
    CHALLENGE: "a check whether the visitor is a human, not a page",
    CONSENT: "a wall that asks for consent, not a page",
    LOGIN: "a login, not a page",
    PARKED: "a parked domain or a server without a site, not a page",
    SCRIPTS: "a request to enable JavaScript, not a page",
}
START: Final = 100_000  # characters of the HTML that are searched
MOST_WORDS: Final = 300  # of any wall
FIRST: Final = 200  # characters of the text in which a login page says so
MIN_CONSENT_TERMS: Final = 4
MIN_CONSENT_SHARE: Final = 0.04  # of the words


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


class _Signs(NamedTuple):
    """A wall of a kind has no more words and links than these, and says or has one of those."""

    kind: str
    words: int
    links: int
    says: re.Pattern[str]
    has: re.Pattern[str] | None = None  # in the HTML, of known products


SIGNS: Final = (
    _Signs(
        CHALLENGE,
        150,
        6,
        _any(
            r"\b(?:are|re) (?:you )?(?:really )?(?:a |not a |an? )(?:human|ro?bot)\b",
            r"\byou(?:'re| are| re)? (?:a |an? |not a )?(?:real )?(?:human|robot)\b",
            r"\b(?:check|verify|inspect)ing (?:your|the) (?:browser|connection|visit|request)",
            r"\b(?:security|browser|bot|human|robot) (?:check|verification|challenge)\b",
            r"\bunusual (?:traffic|activity|requests)\b",
            r"\b(?:solve|complete|pass) (?:the|this|a) (?:\w+ )?(?:captcha|challenge|puzzle)\b",
            r"\b(?:ddos|bot) (?:protection|mitigation|defen[cs]e)\b",
            r"\bautomated (?:access|requests|traffic|queries)\b",
            r"\bkein(?:e|en)? (?:ro?bot|automat)",
            r"\b\u00fcberpr\u00fcf\w* (?:ihre\w* )?(?:browser|verbindung)",
            r"\bpas un robot|\bno (?:eres|soy|es) un robot",
        ),
        _any(
            r"/cdn-cgi/challenge-platform",
            r"_cf_chl_opt",
            r"_Incapsula_Resource",
            r"captcha-delivery\.com",
            r"\bid=[\"']?px-captcha",
            r"AwsWafIntegration|awswaf\.com/\w{1,50}/\w{1,50}/challenge",
            r"sucuri_cloudproxy_js",
            r"/\.well-known/ddos-guard",
            r"\bsec-if-cpt-container|/_sec/cp_challenge",
        ),
    ),
    _Signs(
        PARKED,
        200,
        40,
        _any(
            r"\bdomain(?: name)? (?:\S+ )?(?:is |may be |could be )?(?:now )?"
            r"(?:for sale|parked|available for (?:purchase|sale)|has expired|expired)\b",
            r"\b(?:buy|purchase|acquire|own) this (?:web ?site|domain|name)\b",
            r"\b(?:domain|web ?page|web ?site) (?:is|was|has been) (?:recently )?"
            r"(?:registered|parked|reserved)\b",
            r"\bparked (?:free|by|at|with|domain|page)\b|\bdomain (?:parking|holder|owner)\b",
            r"\bmake an offer (?:on|for) (?:this|the) domain\b",
            r"\b(?:default|placeholder|test) (?:web )?page (?:for|of|on) (?:the|this|your)?\b",
            r"\bserver is (?:successfully )?(?:installed|working|running)\b",
            r"\bnothing (?:has been|is) (?:uploaded|published) (?:here )?yet\b",
            r"\bdomain (?:steht|ist) (?:\w+ )?(?:zum verkauf|zu verkaufen|reserviert|geparkt)",
            r"\b(?:domaine|dominio) (?:est|est\u00e1) (?:\u00e0 vendre|en venta|r\u00e9serv\u00e9)",
        ),
    ),
    _Signs(
        SCRIPTS,
        60,
        4,
        _any(
            r"\b(?:enable|activate|requires?|needs?|turn on|allow|switch on|without)"
            r"\W{1,9}(?:\w{1,20}\W{1,9}){0,3}?java ?script\b",
            r"\bjava ?script\W{1,9}(?:\w{1,20}\W{1,9}){0,5}?"
            r"(?:enabled?|disabled|required|off|needed|necessary|aktiviert|activ\u00e9)\b",
        ),
    ),
)
PASSWORD: Final = re.compile(r"<input\b[^>]{0,200}\btype\s*=\s*[\"']?password", re.IGNORECASE)
SIGN_IN: Final = _any(
    r"\b(?:log|sign)[ -]?(?:in|on)(?:to)?\b",
    r"\b(?:anmelden|anmeldung|einloggen|connexion|connectez|acceder|iniciar sesi\u00f3n|accedi)\b",
    r"\b(?:members|subscribers|authentication|account)\b.{0,20}\b(?:only|required|access)\b",
)
CONSENT_TERM: Final = re.compile(
    r"cookie\w*|consent\w*|privacy|gdpr|vendors?|partners?|personali[sz]\w+|advertis\w+|track\w*|"
    r"einwillig\w*|datenschutz\w*|zustimm\w*|consentement|partenaires|confidentialit\u00e9|"
    r"consentimiento|privacidad",
    re.IGNORECASE,
)
CHOICE: Final = _any(
    r"\b(?:accept|agree|reject|refuse|decline|allow|manage|continue)\b",
    r"\b(?:akzeptieren|ablehnen|zustimmen|accepter|refuser|aceptar|rechazar)\b",
)


def wall_of(html: str, page: Page) -> str:
    """Return the kind of wall that a page is, "" for a page of its site.

    It is the name under which the failure of the fetch is counted.
    """
    if page.text.count(" ") > MOST_WORDS:
        return ""
    return next(_kinds(html[:START], page), "")


def _kinds(html: str, page: Page) -> Iterator[str]:
    words, links = len(tokenise(page.text)), len(page.links)
    text = f"{page.title} {page.text}"
    for signs in SIGNS:
        if words <= signs.words and links <= signs.links:
            said = html if signs.kind == SCRIPTS else text  # <noscript> is no part of the text
            if signs.says.search(said) or (signs.has and signs.has.search(html)):
                yield signs.kind
    if words <= 120 and links <= 15 and _asks_for_password(html, page):
        yield LOGIN
    if links <= 15 and CHOICE.search(html) and _asks_for_consent(page, words):
        yield CONSENT


def _asks_for_password(html: str, page: Page) -> bool:
    said = SIGN_IN.search(page.title) or SIGN_IN.search(page.text[:FIRST])
    return said is not None and PASSWORD.search(html) is not None


def _asks_for_consent(page: Page, words: int) -> bool:
    terms = len(CONSENT_TERM.findall(page.text))
    return terms >= max(MIN_CONSENT_TERMS, MIN_CONSENT_SHARE * words)

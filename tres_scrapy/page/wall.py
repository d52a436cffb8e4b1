"""Walls: answers with status 200 that are not a page of the site, recognised by markup and text.

A wall is short, and says what it is. A page about walls, such as a help page on cookies, is longer
or has the links of its site.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.place import tokenise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tres_scrapy.page.text import Page

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

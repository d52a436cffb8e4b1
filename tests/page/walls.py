"""Walls made from templates in the manner of well-known products; their words are our own.

Each kind has templates to develop with and others that are kept for the test. A template has
places for a site, a token and choices such as `(a|b)`.
"""

from __future__ import annotations

import re
from random import Random

SITES = ["harbour-books.test", "leekandco.test", "north-trail.test", "cafe-lumen.test", "m4.test"]
CHOICE = re.compile(r"\(([^()|]*(?:\|[^()|]*)+)\)")
MENU = "<nav><a href=/help>Help</a><a href=/terms>Terms</a></nav>"

CHALLENGE = (
    """<title>(One moment|Just a moment|Hold on)...</title>
    <script>window._cf_chl_opt={r:'@'}</script><h1>$</h1>
    <p>(Checking your browser|Verifying your connection) before you reach $.<p>Ray @""",
    """<html><head><meta name=robots content=noindex></head><body><iframe
    src="/_Incapsula_Resource?x=@" width=100%>Request (failed|stopped). Incident @</iframe>""",
    """<title>$</title><div id="px-captcha"></div><h2>Please (press|hold) the button</h2>
    <p>We want to be sure that you are a human and not a bot. Reference @.""",
    """<title>Access to this page</title><p>Our systems have seen unusual traffic from your network.
    (Solve the puzzle|Complete the captcha) to go on. <form><input name=q value=@></form>""",
)
CHALLENGE_KEPT = (
    """<html><title>$</title><script src="https://ct.captcha-delivery.com/c.js?@"></script>
    <p id=cmsg>Please (wait|enable JS and disable any ad blocker)</p>""",
    """<title>Human Verification</title><script>AwsWafIntegration.getToken('@')</script>
    <noscript><p>(This site needs a check|Verify) that you're not a robot.</noscript>""",
    """<title>Security check</title><h1>(Are you a robot?|Are you human?)</h1><form method=post>
    <input type=checkbox> I am not one <button>Go on to $</button></form><p>Case @""",
    """<title>Website protection - $</title><script>var sucuri_cloudproxy_js='@';</script><p>You
    are being (sent on|redirected)...""",
    """<title>$</title><div class=box><h3>Automated (access|requests) detected</h3><p>Your address
    sent too many requests. Tick the box to show that a person is here. ID @</div>""",
)
CONSENT = (
    """<title>Before you continue to $</title><form action=/save><h1>Before you go on</h1><p>We use
    cookies and data to (deliver|keep up) our services and measure ads. If you accept, cookies also
    serve personalised content and advertising. You can change your privacy choice at any time.
    <button>Reject all</button><button>Accept all</button></form><a href=/more>More options</a>""",
    """<title>$ - your privacy</title><div id=cmp><h2>We value your privacy</h2><p>We and our
    (214|87) partners store cookies on a device and process personal data such as identifiers, for
    personalised advertising. With your consent we and our partners may track you.
    <button>Manage options</button><button>I agree</button></div><!-- @ -->""",
    """<title>Consent</title><main><p>$ is paid for by advertising. To read it, consent to cookies
    and tracking, or subscribe without ads. (Our|All) vendors are listed in the privacy policy.
    <button>Agree and read on</button><button>Subscribe</button></main>""",
)
CONSENT_KEPT = (
    """<title>$</title><section class="gdpr"><h1>Your choices about cookies</h1>
    <p>Cookies help us
    to keep you signed in. Some cookies are set by partners who (advertise|measure) here. Choose
    which cookies you allow. <button>Only necessary</button>
    <button>Allow all cookies</button></section>""",
    """<title>Datenschutz</title><p>Mit Ihrer Einwilligung verwenden wir Cookies und \u00e4hnliche
    Verfahren. Unsere Partner (messen|zeigen) Werbung. Sie k\u00f6nnen die Einwilligung jederzeit
    widerrufen; mehr zum Datenschutz auf $. <button>Zustimmen</button><button>Ablehnen</button>""",
    """<title>Privacy gate</title><dialog open><h1>$ asks for your consent</h1><p>Personal data is
    processed by us and by third-party vendors for advertising and tracking, as the GDPR asks us to
    tell. <button>(Decline|Refuse)</button><button>Accept</button></dialog><p>@""",
)
LOGIN = (
    """<title>Log in - $</title><h1>(Welcome back|Log in)</h1><form method=post><input name=user>
    <input type=password name=pass><input type=hidden value=@><button>Log in</button></form>"""
    + MENU,
    """<title>$</title><main><h2>Sign in to (go on|continue)</h2><form><input type="email">
    <input type="password"><button>Next</button><a href=/lost>Forgot it?</a></form></main>""",
    """<title>$ intranet</title><p>Authentication required for members.<form action=/auth>
    <input name=u><input type='password' name=p></form><p>Session @ (ended|expired)""",
)
LOGIN_KEPT = (
    """<title>Members' area</title><h1>Sign-in</h1><p>(Only|Just) members of $ may read on.<form>
    <label>Name<input></label><label>Password<input class=a id=b type=password></label></form>""",
    """<title>Anmelden | $</title><form method=post><label>Benutzername</label><input name=a>
    <label>Passwort</label><input name=b type=password><button>(Anmelden|Los)</button></form>@""",
    """<title>$ :: portal</title><div class=card><h4>Log on with your library account</h4><form>
    <input name=no placeholder=Number><input name=pin type="password" placeholder=PIN>
    <button>(Go|Enter)</button></form></div><!-- @ -->""",
    """<title>Connexion</title><h1>Connectez-vous pour lire $</h1><form><input type=email>
    <input type=password><button>(Entrer|Suivant)</button></form>""",
)
PARKED = (
    """<title>$ is for sale</title><h1>$</h1><p>The domain $ is (for sale|now for sale). Make an
    offer on this domain, or call the broker. Ref @""",
    """<title>$</title><h2>Related searches</h2><ul><li><a href=/s?@1>Cheap flights</a><li><a
    href=/s?@2>Soup recipes</a><li><a href=/s?@3>Car loans</a></ul><p>This page is parked free. The
    domain owner (has no|keeps no) tie to these sponsors.""",
    """<title>Welcome</title><h1>(It works|Welcome)!</h1><p>This is the default web page for this
    server. The server is running, but nothing has been uploaded yet.""",
)
PARKED_KEPT = (
    """<title>$</title><p>$ has (just|recently) been registered and is parked by its registrar.
    <p>Is it yours? Sign in to the control panel to publish a site. @""",
    """<title>Buy $</title><h1>Own this domain today</h1><p>Price: 2,450. (Lease|Rent) it for 80 a
    month. Safe payment, fast transfer.""",
    """<title>$</title><p>This domain name has expired. If you are its holder, renew it with your
    (registrar|provider). @""",
    """<title>$ steht zum Verkauf</title><p>Die Domain $ steht zum Verkauf. (Jetzt|Hier) ein Angebot
    machen.""",
)
SCRIPTS = (
    """<title>$</title><noscript>You need to enable JavaScript to (run|use) this app.</noscript>
    <div id=root></div><script src=/static/@.js></script>""",
    """<title>$</title><p>JavaScript is (disabled|turned off). Switch on scripts and load the page
    again.<script src=/a.js?@></script>""",
    """<title>Loading</title><div id=app></div><noscript><strong>$ doesn't work (properly|well)
    without JavaScript enabled.</strong></noscript><script type=module src=/@.js></script>""",
)
SCRIPTS_KEPT = (
    """<title>$</title><h1>JavaScript is (not available|required)</h1><p>We saw that JavaScript is
    disabled in this browser. Use another browser to read $.<script>x='@'</script>""",
    """<title>$</title><div class=spinner></div><noscript><div>This page requires JavaScript.
    (Allow|Turn) it on, then reload.</div></noscript><script src=/@.js></script>""",
    """<title>$</title><noscript>Bitte aktivieren Sie JavaScript, um $ zu
    lesen: JavaScript muss aktiviert sein.</noscript><script src=/@.js></script>""",
)
MISSING = (
    """<title>Page not found - $</title><h1>(Oops|Sorry)!</h1><p>Try the search.""" + MENU,
    """<title>$</title><h1>404</h1><p>Error 404: there is (nothing|no page) at this address.""",
    """<title>$</title><p>The page you asked for (does not exist|is no longer available). @""",
)
MISSING_KEPT = (
    """<title>404 | $</title><p>(We looked everywhere|No luck). <a href=/>Start</a>""",
    """<title>$</title><h1>Not found</h1><p>What you look for may have (moved|gone). Ref @""",
    """<title>$</title><main><p>This article doesn't exist (any more|now).</main>""" + MENU,
)
TEMPLATES = {
    "wall_challenge": (CHALLENGE, CHALLENGE_KEPT),
    "wall_consent": (CONSENT, CONSENT_KEPT),
    "wall_login": (LOGIN, LOGIN_KEPT),
    "wall_parked": (PARKED, PARKED_KEPT),
    "wall_scripts": (SCRIPTS, SCRIPTS_KEPT),
    "soft_404": (MISSING, MISSING_KEPT),
}


def walls(kind: str, *, kept: bool, count: int = 60) -> list[str]:
    """Return pages of a kind, from the templates that are kept for the test or from the others."""
    templates = TEMPLATES[kind][kept]
    return [_filled(templates[i % len(templates)], Random(f"{kind} {i}")) for i in range(count)]


def _filled(template: str, random: Random) -> str:
    html = CHOICE.sub(lambda found: random.choice(found[1].split("|")), template)
    for mark, value in (("$", random.choice(SITES)), ("@", f"{random.getrandbits(40):x}")):
        html = html.replace(mark, value)
    return html

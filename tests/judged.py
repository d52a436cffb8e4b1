"""Pages as the judge returns them, with a verdict, for tests that need no more of them."""

import numpy as np

from tres_scrapy.page.copies import SKETCH
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.pack import Judged


def judged(relevant=True, text=None, **fields):
    """A page that is relevant or not; `text` is what a policy that reads text gets of it."""
    contexts = {} if text is None else text.contexts
    links = tuple(Link(url, "") for url in contexts)
    page = Page("", "", "" if text is None else text.text, links, contexts=tuple(contexts.values()))
    probability = 0.0 if text is None else text.probability
    none = np.zeros((0, 3), dtype=np.float32)
    fields = {"mark": bytes(SKETCH)} | fields
    return Judged(page, probability, none, on_topic=bool(relevant), **fields)


def told(booking, title="", text="", probability=0.5, links=(), **fields):
    """Return a booking with a page, and what a record says about it."""
    page = Page("", title, text, links)
    found = judged(booking.relevant, **fields)
    return booking._replace(judged=found._replace(page=page, probability=probability))

import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.cluster import router as module
from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import NO_PATH, Path
from tres_scrapy.links.code import CODES, RaggedArray, silent

PATHS = st.sampled_from(
    [NO_PATH, Path(1.0, 1, 1, 1), Path(0.0, 7, 2, 3), Path(0.0, 4, 0, math.inf)]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CODE_LISTS = st.lists(st.integers(0, CODES - 1), max_size=5)
SHARES = st.floats(0, 1, width=32)
LINKS = st.lists(st.tuples(TEXTS, st.tuples(SHARES, SHARES, SHARES), CODE_LISTS), max_size=6)


def batch_of(links, path=NO_PATH, *, cues=True, hops=0):
    urls = [f"http://h{number % 3}.test/{number}" for number in range(len(links))]
    anchors, actions, codes = zip(*links, strict=True) if links else ((), (), ())
    actions = np.array(actions, dtype=np.float32).reshape(len(links), 3)
    said = RaggedArray.of([list(each) for each in codes]) if cues and links else None
    return LinkBatch("http://page.test/", path, Outlinks(urls, list(anchors), actions, said), hops)


def contents(batch):
    url, path, (urls, anchors, actions, cues), hops = batch
    cues = silent(len(urls)) if cues is None else cues
    parts = actions.tolist(), cues.codes.tolist(), cues.counts.tolist()
    return url, path, [*urls], [*anchors], *parts, hops


@given(LINKS, PATHS, st.booleans(), st.booleans())
def test_batch_arrives_as_it_was_packed(links, path, cues, hops):
    batch = batch_of(links, path, cues=cues, hops=hops)
    assert contents(LinkBatch.unpacked(batch.packed())) == contents(batch)


PARCEL = batch_of(
    [("a link", (1, 0, 0.5), [1, 2]), ("another", (0, 1, 0.25), [])], Path(1.0, 2, 1, 1)
)


@given(st.data())
def test_damaged_batch_is_refused(data):
    packed = bytearray(PARCEL.packed())
    if data.draw(st.booleans()):
        del packed[data.draw(st.integers(0, len(packed) - 1)) :]
    else:
        bit = data.draw(st.integers(16, 8 * len(packed) - 1))  # two bytes say how it is packed
        packed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match="batch of links"):
        LinkBatch.unpacked(bytes(packed))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"http://h0.test/0"', b'"http://H0.test/0"'),
        (b'"http://h0.test/0"', b'"file://h0.test/0"'),
        (b'"http://h0.test/0"', b"17"),
        (b'"another"', b"null"),
        (b', "another"', b""),
        (b'"hops": ', b'"jumps": '),
        (b"[1.0, 2, 1, 1]", b"[1.0, 2, 1]"),
        (b"[1.0, 2, 1, 1]", b"[1.0, 2, 1, 0]"),
        (b"[1.0, 2, 1, 1]", b"[1.0, -2, 1, 1]"),
        (b"[1.0, 2, 1, 1]", b'["1", 2, 1, 1]'),
        (b"[1.0, 2, 1, 1]", b"[NaN, 2, 1, 1]"),
        (np.float32(0.25).tobytes(), np.float32(math.nan).tobytes()),
        (np.array([1, 2], "<u4").tobytes(), np.array([1, CODES], "<u4").tobytes()),
        (np.array([1, 2], "<u4").tobytes(), np.array([1], "<u4").tobytes()),
    ],
)
def test_impossible_batch_is_refused(old, new):
    text = zlib.decompress(PARCEL.packed())
    assert old in text
    with pytest.raises(ValueError, match="batch of links"):
        LinkBatch.unpacked(zlib.compress(text.replace(old, new)))


def test_batch_is_not_unpacked_without_end(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_BATCH", 1000)
    with pytest.raises(ValueError, match="batch of links"):
        LinkBatch.unpacked(batch_of([("a" * 1000, (0, 0, 0), [])]).packed())

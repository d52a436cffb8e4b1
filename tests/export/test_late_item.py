"""The sending of pages that are relevant only at the end."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, MagicMock

from tres_scrapy.export.late_item import LateItems


def test_bug_ends_the_crawl_once(caplog):
    engine = MagicMock(close_spider_async=AsyncMock())
    late = LateItems(SimpleNamespace(engine=engine))
    session = MagicMock(**{"judge.submit.side_effect": KeyError("broken")})
    asyncio.run(late._send(session, MagicMock()))
    engine.close_spider_async.assert_awaited_once_with(reason=session.ending.reason)
    assert late._is_done
    assert "KeyError: 'broken'" in caplog.text

"""The server, asked by a client of the SDK over standard input and output."""

import asyncio
import json
import sys

import pytest

pytest.importorskip("mcp", reason="pip install tres-scrapy[mcp]")
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tres_scrapy.mcp_server.desk import TOOLS


async def talk(folder, work):
    words = ["-m", "tres_scrapy.cli.main", "mcp", str(folder), "-a", "web=synthetic"]
    server = StdioServerParameters(command=sys.executable, args=words)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await work(session)


async def call(session, tool, **given):
    result = await session.call_tool(tool, given)
    return result.isError, result.content[0].text


@pytest.mark.long
@pytest.mark.slow
def test_agent_drives_a_crawl(tmp_path):
    async def work(session):
        listed = await session.list_tools()
        refused = await call(session, "crawl_state", name="../x")
        seeds = ["http://a.test/"]
        await call(session, "start_crawl", name="one", seeds=seeds, topic="food", pages=1_000)
        while "topic" not in (state := await call(session, "crawl_state", name="one"))[1]:
            await asyncio.sleep(0.2)
        return listed.tools, refused, state, await call(session, "stop_crawl", name="one")

    tools, refused, state, stopped = asyncio.run(asyncio.wait_for(talk(tmp_path, work), 300))
    assert [tool.name for tool in tools] == [tool.__name__ for tool in TOOLS]
    assert all(tool.description for tool in tools)
    assert refused[0]
    assert "no crawl is named" in refused[1]
    assert json.loads(state[1])["is_running"]
    assert not json.loads(stopped[1])["is_running"]

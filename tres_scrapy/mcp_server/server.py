"""The server of the Model Context Protocol, by the official SDK, over standard input and output."""

from __future__ import annotations

from typing import Final

from mcp.server.fastmcp import FastMCP

from tres_scrapy.mcp_server.desk import TOOLS, Desk
from tres_scrapy.mcp_server.reply import NOTE
from tres_scrapy.mcp_server.workplace import Workplace

ABOUT: Final = (
    "TRES collects the web pages of a topic. Start a crawl, look at its state, answer its "
    f"questions from the texts of pages, search and export what it found. {NOTE}"
)


def make_server(workplace: Workplace) -> FastMCP:
    """Return a server whose tools are the methods of the desk."""
    server, desk = FastMCP("tres", instructions=ABOUT, log_level="WARNING"), Desk(workplace)
    for tool in TOOLS:
        bound = getattr(desk, tool.__name__)
        server.add_tool(bound, structured_output=False)
    return server


def serve(workplace: Workplace) -> None:
    """Serve until the client closes the connection; then stop the crawls."""
    try:
        make_server(workplace).run("stdio")
    finally:
        workplace.close()

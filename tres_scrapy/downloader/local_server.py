"""A server on 127.0.0.1 that closes its connections when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LocalServer:
    """Calls `serve` for each connection to a local port, and closes the connection afterwards.

    A broken connection (OSError, EOFError) is ignored. `limit` is the most bytes that a
    StreamReader holds for `readuntil`.
    """

    def __init__(self, serve: Serve, limit: int) -> None:
        self._serve = serve
        self._limit = limit
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on a port, 0 for any free one, and return it; raise OSError if it is taken."""
        self._server = await asyncio.start_server(
            self._connect, "127.0.0.1", port, limit=self._limit
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # every coroutine of the loop runs in a task
        self._connections.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

"""Pools: the connections to one server, apart by the client certificate they were made with.

A certificate belongs to a connection, not to a request; so a new certificate means a new pool. The old one is used for
nothing new, drops what is idle, and ends with its last request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from msgspec import Struct

from kedge.kube.connect.credentials import ClientCertificate
from kedge.kube.connect.dialer import Route, dial
from kedge.kube.connect.failures import HungUp, before_sending
from kedge.kube.connect.http_connection import HttpConnection, HttpReply, HttpRequest
from kedge.kube.connect.line_stream import LineStream
from kedge.kube.transport import ConnectionFailed

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""What may go out again when a kept connection broke: of a write nobody knows whether it was carried out."""

ENDED_WITHIN = 3.0


class PooledAnswer(Struct, frozen=True):
    """An answer, and its connection. An answer with a line stream must be left."""

    reply: HttpReply
    incoming: LineStream | None
    pool: Pool
    connection: HttpConnection

    def leave(self) -> None:
        if self.incoming is not None:
            self.incoming.close()
            self.pool.left(self.connection)


class Pool:
    """Sends requests over connections it keeps."""

    def __init__(
        self, certificate: ClientCertificate | None, route: Route, *, connections: int = 0, keep_alive: float = 55.0
    ) -> None:
        """At most `connections` at once (0: no limit); idle ones live `keep_alive` s. Belongs to one event loop."""
        self.certificate = certificate
        self._route = route
        self._most = connections
        self._keep_alive = keep_alive
        self._loop = asyncio.get_running_loop()
        self._idle: list[HttpConnection] = []
        self._busy: set[HttpConnection] = set()
        self._open: set[HttpConnection] = set()  # with those that are being ended
        self._dialling = 0
        self._wanting: deque[asyncio.Future[None]] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._retired = False
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed or (self._retired and not self._busy and not self._dialling)

    async def ask(self, asked: HttpRequest, deadline: float, incoming: LineStream | None = None) -> PooledAnswer:
        """The answer to a request, by this time of the loop; with `incoming`, its head, and the body to follow there.

        A check that comes with the request has its say when there is a connection, and nothing written to it.
        """
        connection = self._kept()
        if connection is not None:
            try:
                return await self._over(connection, asked, deadline, incoming)
            except HungUp:
                if asked.method not in SAFE or self._closed:
                    raise
        elif asked.check is not None:
            asked.check()  # connecting takes time: what may not be sent now need not wait for it
        return await self._over(await self._connected(deadline), asked, deadline, incoming)

    def left(self, connection: HttpConnection) -> None:
        """Nobody uses this connection any more: keep it, unless an answer is still arriving or it cannot be reused."""
        self._busy.discard(connection)
        if not connection.is_free:
            connection.abort()
        elif self._retired or self._closed:
            connection.close()
        else:
            self._keep(connection)
        self._give_turn()

    def retire(self) -> None:
        """Use it for nothing new: idle connections are closed now, the others after their last request."""
        self._retired = True
        for connection in self._idle:
            connection.close()
        self._idle = []

    async def close(self) -> None:
        """End it, and whatever still uses it. Returns when no socket is left, or none that could be ended."""
        self._closed = True
        self.retire()
        for connection in tuple(self._busy):
            connection.abort()
        while self._wanting:
            self._give_turn()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._ended()
        for connection in self._open:
            connection.abort()
        await self._ended()  # an aborted connection closes its socket on the loop's next turn, which has to come

    async def _ended(self) -> None:
        if self._open:
            await asyncio.wait([connection.lost for connection in self._open], timeout=ENDED_WITHIN)

    async def _over(
        self, connection: HttpConnection, asked: HttpRequest, deadline: float, incoming: LineStream | None
    ) -> PooledAnswer:
        self._busy.add(connection)
        try:
            if asked.check is not None:
                asked.check()
            reply = await connection.ask(asked, deadline, incoming)
        except BaseException:
            self.left(connection)
            raise
        if incoming is None:
            self.left(connection)
        return PooledAnswer(reply, incoming, self, connection)

    # Connections

    def _kept(self) -> HttpConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                return connection
            connection.abort()
        return None

    async def _connected(self, deadline: float) -> HttpConnection:
        """A connection that nobody uses: one left meanwhile, where there may be no more, or else a new one."""
        with before_sending:
            async with asyncio.timeout_at(deadline):
                while self._most and len(self._busy) + self._dialling >= self._most:
                    await self._turn()
                    if (connection := self._kept()) is not None:
                        return connection
                return await self._new_connection()

    async def _new_connection(self) -> HttpConnection:
        """A new connection. A pool that was closed in the meantime has no use for it."""
        self._dialling += 1
        try:
            connection = None if self._closed else await dial(self._route)
        except BaseException:
            self._give_turn()
            raise
        finally:
            self._dialling -= 1
        if connection is None or self._closed:
            if connection is not None:
                connection.abort()
            raise ConnectionFailed("this transport is closed", sent=False)
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    async def _turn(self) -> None:
        """Wait until a connection was left."""
        turn = self._loop.create_future()
        self._wanting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._give_turn()
            raise

    def _give_turn(self) -> None:
        while self._wanting:
            turn = self._wanting.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _keep(self, connection: HttpConnection) -> None:
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._keep_alive, self._close_idle)

    def _close_idle(self) -> None:
        """Close what has been idle for too long. The longest idle come first."""
        self._sweeper = None
        now = self._loop.time()
        while self._idle and self._idle[0].idle_since + self._keep_alive <= now:
            self._idle.pop(0).close()
        if self._idle:
            self._sweeper = self._loop.call_at(self._idle[0].idle_since + self._keep_alive, self._close_idle)


class Pools:
    """The pool for the certificate in use, and those of earlier ones that are not done yet."""

    def __init__(self, make: Callable[[ClientCertificate | None], Awaitable[Pool]]) -> None:
        self._make = make
        self._current: Pool | None = None
        self._earlier: list[Pool] = []
        self._changing = asyncio.Lock()
        self._closed = False

    def current_for(self, certificate: ClientCertificate | None) -> Pool | None:
        """The pool to use with this certificate, if there is one."""
        pool = self._current
        if pool is None or (pool.certificate is not certificate and pool.certificate != certificate):
            return None
        return pool

    async def with_certificate(self, certificate: ClientCertificate | None) -> Pool:
        """The pool to use with this certificate; made if there is none, and then the last one retires."""
        async with self._changing:  # making one takes a thread: others may come in the meantime
            if not self._closed and self.current_for(certificate) is None:
                await self._change(certificate)
        if self._current is None:
            raise ConnectionFailed("this transport is closed", sent=False)
        return self._current

    async def close(self) -> None:
        self._closed = True
        async with self._changing:
            for pool in (*self._earlier, *((self._current,) if self._current else ())):
                await pool.close()
            self._earlier, self._current = [], None

    async def _change(self, certificate: ClientCertificate | None) -> None:
        last, self._current = self._current, await self._make(certificate)
        if last is not None:
            last.retire()
            self._earlier = [pool for pool in (*self._earlier, last) if not pool.closed]

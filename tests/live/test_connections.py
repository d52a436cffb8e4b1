from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.web.resource import Resource
from twisted.web.server import Site

from tres_scrapy.live.resource import CONNECTIONS, NewestConnections


def test_idle_connections_keep_no_browser_out():
    server = NewestConnections(Site(Resource(), reactor=Clock()))
    transports = [StringTransport() for _ in range(CONNECTIONS + 2)]
    for transport in transports:
        server.buildProtocol(None).makeConnection(transport)
    assert [transport.disconnecting for transport in transports] == [True] * 2 + [
        False
    ] * CONNECTIONS

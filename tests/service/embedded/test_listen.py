import socket

import pytest

from service.embedded.listen import bind, url_of
from service.errors import CommandError


def test_zero_picks_a_free_port() -> None:
    with bind("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_wildcard_address_is_reached_by_loopback() -> None:
    with bind("0.0.0.0", 0) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")


def test_a_port_in_use_is_refused_with_advice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"port {port} on 127.0.0.1 is in use.*--port"):
            bind("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "says"),
    [("127.0.0.1", 65536, "not a port"), ("127.0.0.1", -1, "not a port"), ("no host", 80, "not an address")],
)
def test_what_is_no_address_is_refused(host: str, port: int, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        bind(host, port)

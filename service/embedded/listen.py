"""A listening address, bound before the server starts: a port in use is found at once, and 0 picks a free one."""

import errno
import socket

from service.errors import CommandError

_LARGEST_PORT = 65535


def bind(host: str, port: int) -> socket.socket:
    """A TCP socket bound to `host:port` (not yet listening). Raises CommandError when that is not possible."""
    if not 0 <= port <= _LARGEST_PORT:
        raise CommandError(f"{port} is not a port: use 1 to {_LARGEST_PORT}, or 0 for a free one")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror as error:
        raise CommandError(f"{host}:{port} is not an address to listen on: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise CommandError(_refusal(host, port, error)) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """The address a client on this machine uses; a wildcard address becomes loopback."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; stop what uses it, or choose another: --port (0 picks a free one)"
    return f"cannot listen on {host}:{port}: {error.strerror}; choose another address: --host, --port"

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

Respond = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class ScriptedServer:
    """A real HTTP server that answers each request by the next of its steps, and notes what was asked."""

    url: str = ""
    steps: list[Respond] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    script = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            script.requests.append((self.command, self.path, dict(self.headers)))
            script.steps.pop(0)(self)

        do_GET = do_HEAD = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        server.shutdown()
        thread.join()

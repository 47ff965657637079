"""The API as a process of its own, whose connections can be cut and whose memory can be read."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import psutil
import pytest
import redis

from service.settings import Settings

SERVE = """
import socket, sys, uvicorn
from service.main import create_app
from service.settings import Settings
server = uvicorn.Server(uvicorn.Config(create_app(Settings()), log_level="warning", timeout_graceful_shutdown=2))
server.run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


@dataclass(frozen=True)
class Server:
    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def server(settings: Settings, client: redis.Redis) -> Iterator[Server]:
    environment = {**os.environ, "ATOLL_REDIS_URL": settings.redis_url, "ATOLL_STORE": str(settings.store)}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-c", SERVE, str(listener.fileno())]
        process = subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()])
        port = listener.getsockname()[1]
    try:
        httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).raise_for_status()
        yield Server(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(30)

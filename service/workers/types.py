"""A worker: one process on a build node, with the toolchains that it offers."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class ToolchainOffer(BaseModel):
    """What one toolchain on a worker can build. `platform` is like `linux-x86_64`; `gpu` is None for a CPU builder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    toolchain: str
    version: str
    archs: tuple[str, ...]
    platform: str
    gpu: str | None = None
    driver: str | None = None

    def offers(self, arch: str) -> bool:
        """True for one of its archs, and for several joined by `+` where it is an ahead-of-time builder (no GPU)."""
        parts = arch.split("+")
        if len(parts) > 1 and self.gpu is not None:
            return False
        return len(set(parts)) == len(parts) and all(
            part in self.archs and (part != "portable" or len(parts) == 1) for part in parts
        )


class WorkerInfo(BaseModel):
    """What a live worker announces about itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    host: str
    pid: int
    offers: tuple[ToolchainOffer, ...]
    converter_version: str
    memory_bytes: int
    started_at: datetime
    current_build: str | None = None


def queue_name(toolchain: str, version: str, arch: str) -> str:
    """The Celery queue for one kind of engine; multi-arch engines share one queue a toolchain version."""
    return f"build.{toolchain}.{version}.{'multi' if '+' in arch else arch}"

"""The only reader of the environment: every `ATOLL_…` variable is a field here."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What an API or worker process needs to know. Sizes are bytes, times are seconds."""

    model_config = SettingsConfigDict(env_prefix="ATOLL_", frozen=True, extra="ignore")

    redis_url: str = "redis://127.0.0.1:6379/0"
    store: Path = Field(default=Path(".atoll/store"), description="Folder of the object store.")
    scratch: Path | None = Field(default=None, description="Folder for work in progress; default: the store's `tmp`.")

    host: str = "127.0.0.1"
    port: int = 8080

    max_model_bytes: int = Field(default=64 << 30, description="Largest upload that is accepted.")
    max_json_bytes: int = Field(default=1 << 20, description="Largest JSON body that is accepted.")
    scan_memory_bytes: int = Field(default=2 << 30, description="Address space of the child that scans uploads.")
    scan_seconds: int = Field(default=30, description="CPU time of the child that scans uploads.")

    lease_seconds: float = Field(default=20.0, description="Life of a worker's lease on a build.")
    heartbeat_seconds: float = Field(default=5.0, description="How often leases and worker announcements are renewed.")
    reconcile_seconds: float = Field(default=5.0, description="How often lost builds are looked for.")
    build_seconds: float = Field(default=4 * 3600, description="Longest time for one build's child process.")

    log_level: str = "INFO"
    log_json: bool = True

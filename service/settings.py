"""The only reader of the environment: every `ATOLL_…` variable is a field here."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import CommandError


class Settings(BaseSettings):
    """What an API or worker process needs to know. Sizes are bytes, times are seconds."""

    model_config = SettingsConfigDict(env_prefix="ATOLL_", frozen=True, extra="ignore")

    redis_url: str = "redis://127.0.0.1:6379/0"
    store: Path = Field(default=Path(".atoll/store"), description="Folder of the object store.")
    scratch: Path | None = Field(default=None, description="Folder for work in progress; default: the store's `tmp`.")

    host: str = "127.0.0.1"
    port: int = 8080
    server: str = Field(default="http://127.0.0.1:8080", description="Address of the API that commands speak to.")

    max_model_bytes: PositiveInt = Field(default=64 << 30, description="Largest upload that is accepted.")
    max_sample_bytes: PositiveInt = Field(default=1 << 30, description="Largest verification sample that is accepted.")
    max_json_bytes: PositiveInt = Field(default=1 << 20, description="Largest JSON body that is accepted.")
    scan_memory_bytes: PositiveInt = Field(default=2 << 30, description="Address space of the scan of an upload.")
    scan_seconds: PositiveInt = Field(default=30, description="CPU time of the scan of an upload.")

    lease_seconds: PositiveFloat = Field(default=20.0, description="Life of a worker's lease on a build.")
    heartbeat_seconds: PositiveFloat = Field(default=5.0, description="How often leases and announcements are renewed.")
    reconcile_seconds: PositiveFloat = Field(default=5.0, description="How often lost builds are looked for.")
    build_seconds: PositiveFloat = Field(default=4 * 3600, description="Longest time for one build's child process.")

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    log_json: bool = True


def load_settings(**given: Any) -> Settings:
    """Settings from the environment, overridden by the values in `given` that are not None.

    Raises CommandError naming each variable that does not fit.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = "; ".join(f"ATOLL_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        raise CommandError(f"the settings are not usable: {faults}") from None

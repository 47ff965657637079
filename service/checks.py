"""What `atoll doctor` shows: each part answers checks of its own; this is the value they share."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Health = Literal["ok", "absent", "broken"]


class Check(BaseModel):
    """One thing that was looked at. `absent`: atoll works without it; `cure`: what to install or do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    health: Health
    detail: str
    cure: str | None = None

"""The doorbell: Celery messages that carry the id of a build and nothing else. Shared by the API and the workers.

A message may be lost or doubled; the facts in the store say what has to be done, and a reconciler rings again.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any, cast

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from service.errors import Unavailable
from service.settings import Settings

BUILD_TASK = "atoll.build"
HIGHEST_PRIORITY = 9
_STEPS = list(range(HIGHEST_PRIORITY + 1))
_SEPARATOR = "\x06\x16"  # kombu's, between a queue's name and its priority step
_RETRY = {"max_retries": 2, "interval_start": 0.0, "interval_step": 0.1, "interval_max": 0.2}


def celery_app(settings: Settings, name: str) -> Celery:
    """An app that speaks JSON over the broker, keeps no results, and gives up quickly when the broker is away."""
    app = Celery(name, broker=broker_url(settings.redis_url), set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_publish_retry_policy=_RETRY,
        broker_connection_timeout=2.0,
        broker_transport_options={
            "priority_steps": _STEPS,
            "queue_order_strategy": "priority",
            "socket_connect_timeout": 2.0,
            "socket_timeout": 30.0,
            "socket_keepalive": True,
            # Longer than any build: what a dead worker held is rung again by the reconciler, much sooner than this.
            "visibility_timeout": int(settings.build_seconds) + 3600,
        },
    )
    return app


def broker_url(redis_url: str) -> str:
    """kombu's spelling of a redis-py URL; they differ for a socket file."""
    return redis_url.replace("unix://", "redis+socket://", 1)


def ring(app: Celery, build: str, queue: str, priority: int) -> None:
    """Tell the workers of `queue` about `build`; a higher `priority` (0 to 9) goes first. Raises Unavailable."""
    try:
        # Redis transports count the other way round: 0 is the first step.
        app.send_task(BUILD_TASK, args=[build], queue=queue, priority=HIGHEST_PRIORITY - priority)
    except (OperationalError, redis.RedisError, OSError) as error:
        raise Unavailable(f"The broker is away, so build {build} could not be handed to a worker: {error}") from error


def rung(client: redis.Redis, queue: str) -> Iterator[str]:
    """The builds whose messages lie in `queue`, not yet taken by a worker."""
    for step in _STEPS:
        name = f"{queue}{_SEPARATOR}{step}" if step else queue
        for message in cast("list[str]", client.lrange(name, 0, -1)):
            yield _build_of(json.loads(message))


def _build_of(message: dict[str, Any]) -> str:
    args, _, _ = json.loads(base64.b64decode(message["body"]))
    return str(args[0])

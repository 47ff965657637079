"""The one way to Redis: bounded waits, a few quick retries, text instead of bytes."""

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from service.settings import Settings

CONNECT_SECONDS = 2.0
REPLY_SECONDS = 5.0
RETRIES = 3


def connect(settings: Settings) -> redis.Redis:
    """A client for `settings.redis_url`. It connects at first use; errors are redis' own."""
    return redis.Redis.from_url(
        settings.redis_url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=REPLY_SECONDS,
        health_check_interval=15,
        retry=Retry(ExponentialBackoff(cap=0.2, base=0.02), RETRIES),
    )

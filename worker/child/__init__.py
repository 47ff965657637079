"""Work that may crash, hang or run out of memory is done in a child process that the worker survives."""

from worker.child.confine import peak_rss
from worker.child.parent import run_child
from worker.child.serve import Emit, serve

__all__ = ["Emit", "peak_rss", "run_child", "serve"]

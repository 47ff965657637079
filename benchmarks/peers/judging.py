"""The judges in a process of their own, as bad graphs crash runtimes and parsers: `NAME`, then jobs on stdin."""

import sys
from collections.abc import Callable

from benchmarks.peers.batch import serve
from benchmarks.peers.judge_graphs import Answer, parse
from benchmarks.peers.judge_models import build, real, sample
from benchmarks.peers.judge_operators import operator, survey

JUDGES: dict[str, Callable[..., Answer]] = {
    "survey": survey,
    "operator": operator,
    "parse": parse,
    "sample": sample,
    "real": real,
    "build": build,
}

if __name__ == "__main__":
    serve(JUDGES[sys.argv[1]])

"""A peer ready to run, or why it is not."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.batch import BatchBroken, run_batch
from benchmarks.peers.catalogue import Peer
from benchmarks.peers.environments import PeerMissing, python_of, versions_of


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer and the command that starts it; `absent` says why it cannot run, and then there is no command."""

    peer: Peer
    command: tuple[str, ...] = ()
    versions: str = ""
    absent: str = ""


def enter(peer: Peer, cache: Path, reference: Path | None) -> Contender:
    """The peer ready to run, or why it is not."""
    if peer.name == "reference" and reference is None:
        return Contender(peer, absent="its script was not given (--reference)")
    script = [str(reference)] if peer.name == "reference" else []
    try:
        python = python_of(peer, cache)
        command = (str(python), "-m", "benchmarks.peers.converting", peer.name, *script)
        list(run_batch(command, {}, 0))
        return Contender(peer, command, versions_of(peer, python))
    except (PeerMissing, BatchBroken) as reason:
        return Contender(peer, absent=str(reason))

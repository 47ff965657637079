"""The demo's course: start, then for each model upload, watch, download, verify, show; then stop."""

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import typer

from service.builds.profile_text import dump_profiles
from service.builds.types import BuildRecord, Status
from service.cli.progress import StageLines, human_size, outcome
from service.client import AtollClient, LocalModel
from service.demo.models import DemoModel, hint, suggest_profile
from service.demo.proof import evidence
from service.demo.server import running_server


def run_demo(models: Iterable[DemoModel], folder: Path) -> bool:
    """Build all `models` on a service of its own; engines go to `folder`. True if all succeeded."""
    typer.echo("Starting the service (embedded Valkey, API, one worker) …")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="atoll-demo-") as data, running_server(Path(data)) as url:
        typer.echo(f"It answers at {url} after {time.monotonic() - started:.1f} s; API documentation at {url}/docs")
        with AtollClient(url) as client:
            succeeded = [_build(client, model, folder, url) for model in models]
    typer.echo("\nThe service has stopped. To start it for good: make up (or: .venv/bin/atoll up)")
    return all(succeeded)


def _build(client: AtollClient, model: DemoModel, folder: Path, url: str) -> bool:
    typer.echo(f"\n== {model.title}")
    local = LocalModel.read(model.path)
    typer.echo(f"{model.path}: {human_size(local.size)}, {local.scan.nodes} nodes, sha256 {local.id}")
    profiles = model.profiles
    if profiles is None:
        profiles = (suggest_profile(local.scan),)
        typer.echo(f"No profile was given; {hint(profiles[0])}")
    client.upload(local)
    submission = client.submit(local.id, {"profiles": dump_profiles(profiles)})
    typer.echo(f"build {submission.build.id}: {url}/builds/{submission.build.id}")
    record = _watch(client, submission.build.id)
    typer.echo(outcome(record))
    if record.status is not Status.SUCCEEDED or record.engine is None:
        if model.profiles is None:
            typer.echo(f"No profile was given: {hint(profiles[0])}")
        return False
    _fetch(client, record.engine.digest, folder / f"{model.path.stem}.engine")
    for line in evidence(local.size, client.manifest(record.engine.digest), client.report(record.id)):
        typer.echo(f"  {line}")
    return True


def _watch(client: AtollClient, build: str) -> BuildRecord:
    lines = StageLines()
    for record in client.watch(build):
        lines.show(record)
    return record


def _fetch(client: AtollClient, digest: str, target: Path) -> None:
    size = client.download(digest, target)
    typer.echo(f"downloaded {target} ({human_size(size)}); its sha256 is the digest it was asked for by")

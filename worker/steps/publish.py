"""Publish: the engine, the converted graph, the report and the log as blobs, the manifest, and the answer to the key.

The order matters: whoever finds a name finds all that it leads to. `finished` comes after all of it, from the runner.
"""

import json
from dataclasses import dataclass, replace

from service.builds.types import EngineRef, now
from service.engines.repository import EngineRepository
from service.engines.types import EngineManifest
from service.errors import BlobNotFound
from service.store.types import Blob, ObjectStore
from worker.steps.context import Context, Work
from worker.steps.inspect import proof_of
from worker.steps.report import inspection_of, page_of, report_of
from worker.types import EngineResult
from worker.version import CONVERTER_VERSION


@dataclass(frozen=True, slots=True)
class _Graph:
    """The graph that was built from, as blobs; `data_name` is where it looks for its data, relative to itself."""

    onnx: Blob
    data: Blob | None = None
    data_name: str | None = None

    def roles(self) -> dict[str, str]:
        return {"onnx": self.onnx.digest, **({"onnx-data": self.data.digest} if self.data else {})}


def publish(context: Context, work: Work) -> Work:
    """Everything durable. Where another attempt has answered the key before, its engine is the result."""
    graph = _publish_graph(context, work)
    report = _add(context.store, json.dumps(report_of(work), indent=1).encode())
    page = _add(context.store, page_of(work, context.model.name).encode())
    log = _add(context.store, context.journal.text().encode())
    roles = {"report": report.digest, "report-html": page.digest, "log": log.digest}
    work = work.with_(result={**graph.roles(), **roles})
    if work.built is None:
        return _answer_with_graph(context, work, graph.onnx)
    return _answer_with_engine(context, work, _manifest(context, work, work.built, graph))


def _answer_with_graph(context: Context, work: Work, graph: Blob) -> Work:
    context.facts.put_answer(_key(context, context.accepted.platform), graph.digest)
    reference = EngineRef(digest=graph.digest, size=graph.size, url=f"/builds/{context.accepted.id}/onnx")
    return work.with_(onnx=reference, proof=proof_of(work))


def _answer_with_engine(context: Context, work: Work, manifest: EngineManifest) -> Work:
    engines = EngineRepository(context.store)
    engines.put(manifest)
    answer = _answer(context, engines, manifest)
    reference = EngineRef(digest=answer.digest, size=answer.size, url=f"/engines/{answer.digest}")
    if answer.digest == manifest.digest:
        return work.with_(result={**work.result, "engine": manifest.digest}, engine=reference)
    context.journal.note(f"another attempt published {answer.digest} for this key before; that is the result")
    return work.with_(result=_roles(answer), engine=reference, proof=answer.proof)


def _answer(context: Context, engines: EngineRepository, manifest: EngineManifest) -> EngineManifest:
    digest = context.facts.put_answer(manifest.key, manifest.digest)
    found = manifest if digest == manifest.digest else engines.get(digest)
    if found is not None:
        return found
    context.facts.forget_answer(manifest.key)  # the engine that answered before was deleted
    context.facts.put_answer(manifest.key, manifest.digest)
    return manifest


def _publish_graph(context: Context, work: Work) -> _Graph:
    if work.report is None:
        return _uploaded_graph(context)
    folder = work.graph.parent
    others = sorted(path for path in folder.rglob("*") if path.is_file() and path != work.graph)
    if len(others) > 1:  # a converted graph has one data file; this is the upload, which nothing of was in half
        return _uploaded_graph(context)
    graph = _Graph(context.store.add_file(work.graph, work.digests.get(work.graph)))
    for path in others:
        data = context.store.add_file(path, work.digests.get(path))
        graph = replace(graph, data=data, data_name=path.relative_to(folder).as_posix())
    return graph


def _uploaded_graph(context: Context) -> _Graph:
    """The upload's own blobs; of several data files none is named here, as the model names them all."""
    model, store = context.model, context.store
    graph = store.blob(model.graph)
    if graph is None:
        raise BlobNotFound(f"The graph of model {model.id} was deleted while it was built; upload it again.")
    if len(model.external_data) != 1:
        return _Graph(graph)
    [(location, digest)] = model.external_data.items()
    return _Graph(graph, store.blob(digest), location)


def _manifest(context: Context, work: Work, built: EngineResult, graph: _Graph) -> EngineManifest:
    spec = context.spec
    engine = context.store.add_file(built.engine)
    return EngineManifest(
        digest=engine.digest,
        size=engine.size,
        key=_key(context, built.platform),
        build=context.accepted.id,
        attempt=context.attempt.n,
        model=spec.model,
        model_name=context.model.name,
        spec=spec,
        arch=built.arch,
        mode=spec.mode.value,
        trunk=spec.trunk.value,
        toolchain=built.toolchain,
        toolchain_version=built.toolchain_version,
        converter_version=CONVERTER_VERSION,
        platform=built.platform,
        gpu=built.gpu,
        driver=built.driver,
        worker=context.attempt.worker,
        created_at=now(),
        stages=context.journal.stages,
        onnx=graph.onnx.digest,
        onnx_size=graph.onnx.size,
        onnx_data=graph.data.digest if graph.data else None,
        onnx_data_name=graph.data_name,
        report=work.result["report"],
        report_html=work.result["report-html"],
        log=work.result["log"],
        proof=work.proof,
        inspection=inspection_of(built),
    )


def _roles(manifest: EngineManifest) -> dict[str, str]:
    roles = {
        "engine": manifest.digest,
        "onnx": manifest.onnx,
        "onnx-data": manifest.onnx_data,
        "report": manifest.report,
        "report-html": manifest.report_html,
        "log": manifest.log,
    }
    return {role: digest for role, digest in roles.items() if digest is not None}


def _key(context: Context, platform: str) -> str:
    """The key of what was really built: it differs from the accepted one if the worker was upgraded in between."""
    return context.spec.key(converter_version=CONVERTER_VERSION, platform=platform)


def _add(store: ObjectStore, data: bytes) -> Blob:
    with store.new_blob() as writer:
        writer.write(data)
        return writer.commit()

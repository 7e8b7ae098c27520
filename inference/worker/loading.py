"""How does a spec become a loaded model and a thread that works?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inference.backend.base import Model
from inference.backend.fake import FakeEmbedder, fake_from_path
from inference.embedding.shared_thread import SharedThread
from inference.embedding.thread import EmbeddingThread
from inference.engine.runner import EventSink, Runner
from inference.engine.thread import EngineThread
from inference.protocol.replicas import FAKE_PREFIX, ModelKind, ReplicaSpec


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """A model in memory and the thread that computes with it, not yet started."""

    model: Model
    runner: Runner


def build_engine(
    spec: ReplicaSpec,
    sink: EventSink,
    progress: Callable[[float], None],
    *,
    spill_directory: Path | None = None,
) -> LoadedEngine:
    """Load the model of a spec; raises EngineError. A file named ``fake:...`` loads nothing.

    The sink gets all events of one step in one call, on the engine's thread, and must return in
    microseconds. Cold prefixes may go to files in the spill directory, if the profile says so.
    """
    if spec.files[0].startswith(FAKE_PREFIX):
        return _build_fake(spec, sink)
    # Only a replica needs the native library; tests and tools import this module without it.
    from inference.backend.grouped import open_backend
    from inference.backend.llama_draft import open_draft_backend
    from inference.backend.llama_embedder import open_embedder
    from inference.backend.llama_model import load_model

    model, profile = load_model(spec, progress), spec.profile
    if not spec.kind.is_generative:
        embedder = open_embedder(model, profile, is_rank=spec.kind is ModelKind.RERANK)
        return LoadedEngine(model, EmbeddingThread(embedder, sink))
    backend = open_backend(model, profile)
    draft_backend = open_draft_backend(spec, model) if profile.speculation == "draft" else None
    if not profile.serves_embeddings:
        thread = EngineThread(
            backend, profile, sink, draft_backend=draft_backend, spill_directory=spill_directory
        )
        return LoadedEngine(model, thread)
    embedder = open_embedder(model, profile, is_rank=False)
    shared = SharedThread(
        backend,
        embedder,
        profile,
        sink,
        draft_backend=draft_backend,
        spill_directory=spill_directory,
    )
    return LoadedEngine(model, shared)


def _build_fake(spec: ReplicaSpec, sink: EventSink) -> LoadedEngine:
    backend = fake_from_path(spec.files[0], spec.profile)
    model, profile = backend.model, spec.profile
    if not spec.kind.is_generative:
        pooling = "rank" if spec.kind is ModelKind.RERANK else "mean"
        embedder = FakeEmbedder(model, pooling=pooling, token_seconds=backend.token_seconds)
        return LoadedEngine(model, EmbeddingThread(embedder, sink))
    if not profile.serves_embeddings:
        return LoadedEngine(model, EngineThread(backend, profile, sink))
    embedder = FakeEmbedder(model, can_split=True)
    return LoadedEngine(model, SharedThread(backend, embedder, profile, sink))

"""Do the files of one import belong to one model?"""

from collections.abc import Sequence

import msgspec
from django.utils import timezone

from inference.gguf.recognise import FileFacts, FilePart
from inference.gguf.verdict import GgufRejected
from models_registry.models import Upload, UploadState


def facts_of(upload: Upload) -> FileFacts | None:
    """Give what an upload's header says, once it is known."""
    return msgspec.convert(upload.facts, FileFacts) if upload.facts else None


def keep_facts(upload: Upload, facts: FileFacts) -> None:
    """Note what a file is; raises GgufRejected where it is no companion of the others."""
    others = upload.model_import.uploads.exclude(pk=upload.pk).exclude(state=UploadState.REFUSED)
    known = [(other, found) for other in others if (found := facts_of(other)) is not None]
    _check_company(facts, known)
    upload.facts = msgspec.to_builtins(facts)
    Upload.objects.filter(pk=upload.pk).update(facts=upload.facts, touched_at=timezone.now())


def missing_shards(files: Sequence[FileFacts]) -> list[int]:
    """Give the numbers, from 1, of the shards that a set of weights lacks."""
    weights = [file for file in files if file.part is FilePart.WEIGHTS]
    if not weights:
        return []
    here = {file.shard for file in weights}
    return [number + 1 for number in range(weights[0].num_shards) if number not in here]


def _check_company(facts: FileFacts, others: Sequence[tuple[Upload, FileFacts]]) -> None:
    for other, found in others:
        _check_pair(facts, other, found)


def _check_pair(facts: FileFacts, other: Upload, found: FileFacts) -> None:
    parts = {facts.part, found.part}
    known = {facts.architecture, found.architecture} - {""}
    if parts == {FilePart.WEIGHTS}:
        is_set = facts.num_shards == found.num_shards > 1 and len(known) <= 1
        if not is_set:
            raise GgufRejected(
                "another_model", f"This is another model than {other}: import it apart."
            )
        if facts.shard == found.shard:
            words = f"Shard {facts.shard + 1} of {facts.num_shards} is here already, as {other}."
            raise GgufRejected("duplicate_shard", words)
    elif parts == {FilePart.PROJECTOR}:
        raise GgufRejected("another_projector", f"There is a projector already: {other}.")
    elif parts == {FilePart.WEIGHTS, FilePart.ADAPTER} and len(known) > 1:
        adapter, model = (facts, found) if facts.part is FilePart.ADAPTER else (found, facts)
        words = (
            f"The adapter is for {adapter.architecture} models, the model is {model.architecture}."
        )
        raise GgufRejected("adapter_mismatch", words)

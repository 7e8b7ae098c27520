"""Look at files whose bytes are all here: the whole hash, and the whole header."""

from inference.gguf.examine import inspect_file
from inference.gguf.verdict import GgufRejected
from models_registry.incoming.assembling import assemble, is_complete
from models_registry.incoming.companions import keep_facts
from models_registry.incoming.receiving import find_stored, refuse_upload
from models_registry.models import ModelFile, Upload, UploadState
from models_registry.services.store import hash_file, store_lock


def check_upload(upload: Upload) -> None:
    """Hash and inspect a whole file; then go on with its import, if that waits for nothing else.

    The file's state tells what was found; checking twice does no harm.
    """
    if upload.state == UploadState.CHECKING:
        _judge(upload)
    if is_complete(upload.model_import):
        assemble(upload.model_import)


def _judge(upload: Upload) -> None:
    try:
        found = hash_file(upload.path)
    except FileNotFoundError:
        refuse_upload(upload, "lost", "What was here of this file is gone: send it again.")
        return
    if upload.sha256 and upload.sha256 != found:
        words = f"The file that came has the SHA-256 {found}, not {upload.sha256}: send it again."
        refuse_upload(upload, "checksum_mismatch", words)
        return
    try:
        assert upload.size_bytes is not None
        facts = inspect_file(upload.path, upload.size_bytes)
        assert facts is not None, "the file is whole"
        keep_facts(upload, facts)
    except GgufRejected as error:
        refuse_upload(upload, error.code, error.reason)
        return
    _complete(upload, found)


def _complete(upload: Upload, found: str) -> None:
    """Note the hash; a file that the store has already need not be here twice."""
    upload.path.chmod(0o444)
    with store_lock():
        stored: ModelFile | None = find_stored(sha256=found, size_bytes=upload.size_bytes or 0)
        moved = Upload.objects.filter(pk=upload.pk, state=UploadState.CHECKING).update(
            state=UploadState.COMPLETE, found_sha256=found, stored_file=stored
        )
    if moved and stored is not None:
        upload.path.unlink(missing_ok=True)
    upload.refresh_from_db()

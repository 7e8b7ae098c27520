"""What each route does and answers. Whoever adds a route adds it here: a test looks."""

from typing import Any

from rest_framework.views import APIView

from llamero.api.anthropic.views import CountTokensView, MessagesView
from llamero.api.batches.batches import BatchesView, BatchView, CancelBatchView
from llamero.api.batches.files import FileContentView, FilesView, FileView
from llamero.api.conversations import ConversationLookupView, ConversationStreamView
from llamero.api.health import LiveView, ReadyView
from llamero.api.model_imports.imports import ImportsView, ImportView
from llamero.api.model_imports.uploads import UploadsView, UploadView
from llamero.api.native.adapters import AdaptersView
from llamero.api.native.chat import ApplyTemplateView, ChatTokensView, NativeChatView
from llamero.api.native.completion import CompletionView
from llamero.api.native.embedding import EmbeddingView
from llamero.api.native.health import HealthView
from llamero.api.native.infill import InfillView
from llamero.api.native.metrics import MetricsView
from llamero.api.native.status import PropsView, SlotsView, SlotView
from llamero.api.native.text import DetokenizeView, TokenizeView
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.completions import CompletionsView
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.openai.models import ModelListView, ModelView
from llamero.api.openapi.answers_batches import UPLOAD
from llamero.api.openapi.operation import Operation, header, paged, query
from llamero.api.openapi.shapes import (
    ANY_OBJECT,
    COUNT,
    FLAG,
    TEXT,
    either,
    list_of,
    one_of,
    ref,
    shape,
)
from llamero.api.openapi.tags import Tag
from llamero.api.openapi.views import OpenApiView
from llamero.api.rerank import RerankView
from llamero.api.responses.create import InputTokensView, ResponsesView
from llamero.api.responses.stored import CancelView, InputItemsView, ResponseView
from llamero.api.runs import RunEventsView, RunView
from llamero.api.socket_tickets import SocketTicketsView
from llamero.api.usage import UsageView

_MODEL = query("model", "The model, where neither the path nor the body names one.")
_KEY = header(
    "Idempotency-Key",
    "One answer per key: sent again, it is repeated.",
    TEXT | {"pattern": "^[!-~]{1,255}$"},
)
_RESUMABLE = header(
    "X-Llamero-Resumable",
    "`true`: the stream outlives its connection, and can be resumed.",
    one_of("true", "false"),
)
_CONVERSATION = header(
    "X-Conversation-Id", "The stream can be resumed, and is the last one of this name."
)
_TUS = header("Tus-Resumable", "The version of tus.", one_of("1.0.0"))
_LAST_EVENT = header("Last-Event-ID", "The id of the last event the client has.")
_POSTED = (_KEY,)
_STREAMED = (_KEY, _RESUMABLE, _CONVERSATION)
_NAMED = query("conv_id", "The name that the client chose.")
_VERSION = header("anthropic-version", "Named by Anthropic's clients, who get its shapes.")
_ANY_ERROR = either(ref("Error"), ref("AnthropicError"))
_ANTHROPIC_POSTED = (_KEY, _VERSION)
# What goes wrong once a stream has begun is its last event.
_CHAT_EVENT = either(ref("ChatCompletionChunk"), ref("Error"))
_NATIVE_CHAT_EVENT = either(ref("ChatCompletionChunk"), ref("NativeError"))
_TEXT_EVENT = either(ref("CompletionChunk"), ref("Error"))
_NATIVE_TEXT_EVENT = either(ref("NativeCompletionFrame"), ref("NativeError"))
_RESUMED_EVENT = either(
    ref("ChatCompletionChunk"),
    ref("CompletionChunk"),
    ref("NativeCompletionFrame"),
    ref("MessageEvent"),
    ref("ResponseEvent"),
    ref("Error"),
    ref("NativeError"),
)

OPERATIONS: dict[tuple[type[APIView], str], Operation] = {
    (ChatCompletionsView, "POST"): Operation(
        "Answer a conversation.",
        Tag.CHAT,
        ref("ChatCompletion"),
        _CHAT_EVENT,
        parameters=_STREAMED,
    ),
    (NativeChatView, "POST"): Operation(
        "Answer a conversation; the model need not be named.",
        Tag.CHAT,
        ref("ChatCompletion"),
        _NATIVE_CHAT_EVENT,
        parameters=(*_STREAMED, _MODEL),
    ),
    (MessagesView, "POST"): Operation(
        "Answer a conversation, as Anthropic does.",
        Tag.CHAT,
        ref("Message"),
        ref("MessageEvent"),
        parameters=(*_STREAMED, _VERSION),
    ),
    (CountTokensView, "POST"): Operation(
        "Count the tokens of a conversation.",
        Tag.CHAT,
        ref("MessageTokens"),
        parameters=_ANTHROPIC_POSTED,
    ),
    (ChatTokensView, "POST"): Operation(
        "Count the tokens of a conversation.",
        Tag.CHAT,
        ref("InputTokens"),
        parameters=(_KEY, _MODEL),
    ),
    (ApplyTemplateView, "POST"): Operation(
        "Show the prompt that a conversation becomes.",
        Tag.TOKENS,
        ref("Prompt"),
        parameters=(_KEY, _MODEL),
    ),
    (ResponsesView, "POST"): Operation(
        "Answer a turn of a conversation, which may be stored.",
        Tag.RESPONSES,
        ref("Response"),
        ref("ResponseEvent"),
        parameters=_STREAMED,
    ),
    (InputTokensView, "POST"): Operation(
        "Count the tokens of a turn.", Tag.RESPONSES, ref("InputTokens"), parameters=_POSTED
    ),
    (ResponseView, "GET"): Operation(
        "Give a stored response, or tell its events again.",
        Tag.RESPONSES,
        ref("Response"),
        ref("ResponseEvent"),
        parameters=(
            query("stream", "`true`: its events.", FLAG),
            query("starting_after", "The number of the last event the client has.", COUNT),
            _LAST_EVENT,
        ),
    ),
    (ResponseView, "DELETE"): Operation(
        "Delete a stored response.", Tag.RESPONSES, ref("DeletedResponse")
    ),
    (CancelView, "POST"): Operation(
        "Stop a response in the background.", Tag.RESPONSES, ref("Response"), parameters=_POSTED
    ),
    (InputItemsView, "GET"): Operation(
        "List the items a response was made from.",
        Tag.RESPONSES,
        ref("ResponseItems"),
        parameters=(
            query("limit", "How many, up to 100.", COUNT),
            query("order", "`desc`, the newest first, or `asc`."),
            query("after", "The items after this one."),
            query("before", "The items before this one."),
        ),
    ),
    (CompletionsView, "POST"): Operation(
        "Continue a prompt, or several.",
        Tag.TEXT,
        ref("Completion"),
        _TEXT_EVENT,
        parameters=_STREAMED,
    ),
    (CompletionView, "POST"): Operation(
        "Continue a prompt, or several, as llama-server does.",
        Tag.TEXT,
        ref("NativeCompletions"),
        _NATIVE_TEXT_EVENT,
        parameters=(*_STREAMED, _MODEL),
    ),
    (InfillView, "POST"): Operation(
        "Fill a gap in a text.",
        Tag.TEXT,
        ref("NativeCompletions"),
        _NATIVE_TEXT_EVENT,
        parameters=(*_STREAMED, _MODEL),
    ),
    (EmbeddingsView, "POST"): Operation(
        "Turn texts into vectors.", Tag.VECTORS, ref("Embeddings"), parameters=_POSTED
    ),
    (EmbeddingView, "POST"): Operation(
        "Turn texts into vectors, as llama-server does.",
        Tag.VECTORS,
        ref("NativeEmbeddings"),
        parameters=(_KEY, _MODEL),
    ),
    (RerankView, "POST"): Operation(
        "Score texts for a query.", Tag.VECTORS, ref("Ranking"), parameters=(_KEY, _MODEL)
    ),
    (TokenizeView, "POST"): Operation(
        "Cut a text into tokens.", Tag.TOKENS, ref("Tokens"), parameters=(_KEY, _MODEL)
    ),
    (DetokenizeView, "POST"): Operation(
        "Put tokens together to a text.", Tag.TOKENS, ref("Text"), parameters=(_KEY, _MODEL)
    ),
    (ModelListView, "GET"): Operation(
        "List the models this key may use.",
        Tag.MODELS,
        either(ref("ModelList"), ref("AnthropicModelPage")),
        error=_ANY_ERROR,
        parameters=(
            _VERSION,
            query("limit", "Anthropic's: how many.", COUNT),
            query("after_id", "Anthropic's: the models after this one."),
            query("before_id", "Anthropic's: the models before this one."),
        ),
    ),
    (ModelView, "GET"): Operation(
        "Describe a model.",
        Tag.MODELS,
        either(ref("Model"), ref("AnthropicModel")),
        error=_ANY_ERROR,
        parameters=(_VERSION,),
    ),
    (PropsView, "GET"): Operation(
        "Describe a served model and its settings.", Tag.SERVER, ref("Props"), parameters=(_MODEL,)
    ),
    (PropsView, "POST"): Operation(
        "Refused: properties belong to the deployment.",
        Tag.SERVER,
        body=ANY_OBJECT,
        parameters=(_MODEL,),
    ),
    (SlotsView, "GET"): Operation(
        "List the slots of a model's replicas.",
        Tag.SERVER,
        ref("Slots"),
        parameters=(_MODEL, query("fail_on_no_slot", "Anything: 503 where no slot is free.")),
    ),
    (SlotView, "POST"): Operation(
        "Refused: slots are not shared.",
        Tag.SERVER,
        body=ANY_OBJECT,
        parameters=(_MODEL, query("action", "save, restore or erase.")),
    ),
    (AdaptersView, "GET"): Operation(
        "List the adapters that requests may choose.",
        Tag.SERVER,
        ref("Adapters"),
        parameters=(_MODEL,),
    ),
    (AdaptersView, "POST"): Operation(
        "Refused: scales for everybody are set in the admin.",
        Tag.SERVER,
        body={"type": "array", "items": ANY_OBJECT},
        parameters=(_MODEL,),
    ),
    (MetricsView, "GET"): Operation(
        "Measurements for Prometheus.",
        Tag.SERVER,
        TEXT,
        media_type="text/plain",
        parameters=(_MODEL,),
    ),
    (HealthView, "GET"): Operation(
        "Tell whether requests can be answered. Needs no key.", Tag.SERVER, ref("Health")
    ),
    (LiveView, "GET"): Operation(
        "Tell whether this gateway works. Needs no key.", Tag.SERVER, ref("Health")
    ),
    (ReadyView, "GET"): Operation(
        "Tell whether this gateway can serve now. Needs no key.", Tag.SERVER, ref("Ready")
    ),
    (OpenApiView, "GET"): Operation("Give this document. Needs no key.", Tag.SERVER, ANY_OBJECT),
    (FilesView, "POST"): Operation(
        "Upload a file of requests.", Tag.BATCHES, ref("File"), form=UPLOAD, parameters=_POSTED
    ),
    (FilesView, "GET"): Operation(
        "List files.",
        Tag.BATCHES,
        ref("FileList"),
        parameters=(*paged(10_000), query("purpose", "`batch` or `batch_output`.")),
    ),
    (FileView, "GET"): Operation("Describe a file.", Tag.BATCHES, ref("File")),
    (FileView, "DELETE"): Operation("Delete a file.", Tag.BATCHES, ref("DeletedFile")),
    (FileContentView, "GET"): Operation(
        "Give what a file holds.", Tag.BATCHES, TEXT, media_type="application/octet-stream"
    ),
    (BatchesView, "POST"): Operation(
        "Have the requests of a file answered within a day.",
        Tag.BATCHES,
        ref("Batch"),
        parameters=_POSTED,
    ),
    (BatchesView, "GET"): Operation(
        "List batches.", Tag.BATCHES, ref("BatchList"), parameters=paged(100)
    ),
    (BatchView, "GET"): Operation("Tell how far a batch is.", Tag.BATCHES, ref("Batch")),
    (CancelBatchView, "POST"): Operation(
        "Stop a batch; what is answered is kept.", Tag.BATCHES, ref("Batch"), parameters=_POSTED
    ),
    (UploadsView, "POST"): Operation(
        "Begin to upload a model's file by tus 1.0; the answer's Location is where its bytes go.",
        Tag.IMPORTS,
        parameters=(
            _TUS,
            header("Upload-Length", "How many bytes the file has.", COUNT),
            header("Upload-Metadata", "`filename`, `sha256`, `import`, `model`; in base64."),
        ),
    ),
    (UploadsView, "GET"): Operation(
        "Tell whether a file of some size may be here already.",
        Tag.IMPORTS,
        ref("ModelUploadSize"),
        parameters=(query("size", "The file's size in bytes.", COUNT),),
    ),
    (UploadView, "GET"): Operation("Describe an upload.", Tag.IMPORTS, ref("ModelUpload")),
    (UploadView, "PATCH"): Operation(
        "Send a piece of a file.",
        Tag.IMPORTS,
        parameters=(
            _TUS,
            header("Upload-Offset", "Where the piece begins.", COUNT),
            header("Upload-Checksum", "`sha256` or `sha1`, and the piece's digest in base64."),
        ),
    ),
    (UploadView, "DELETE"): Operation("Give an upload up.", Tag.IMPORTS, parameters=(_TUS,)),
    (ImportsView, "POST"): Operation(
        "Begin an import; the server fetches its `sources`.", Tag.IMPORTS, ref("ModelImport")
    ),
    (ImportsView, "GET"): Operation("List imports.", Tag.IMPORTS, ref("ModelImportList")),
    (ImportView, "GET"): Operation("Tell how far an import is.", Tag.IMPORTS, ref("ModelImport")),
    (ImportView, "POST"): Operation(
        "Say what an import is to become.", Tag.IMPORTS, ref("ModelImport")
    ),
    (ImportView, "DELETE"): Operation("Take an import back.", Tag.IMPORTS),
    (UsageView, "GET"): Operation(
        "Tell what the key has used, in buckets of time.",
        Tag.SERVER,
        ref("UsagePage"),
        parameters=(
            query("start_time", "Where it begins: a Unix time or a date."),
            query("end_time", "Where it ends; now, if it is left out."),
            query("bucket_width", "`1d` or `1h`.", one_of("1d", "1h")),
            query("group_by", "`model`: a result for each model.", one_of("model")),
            query("limit", "How many buckets a page has: up to 31 days or 168 hours.", COUNT),
            query("page", "The `next_page` of the page before."),
        ),
    ),
    (SocketTicketsView, "POST"): Operation(
        "Make a ticket that opens a chat socket within half a minute, in the key's place.",
        Tag.CHAT,
        ref("SocketTicket"),
    ),
    (RunEventsView, "GET"): Operation(
        "Go on with a resumable stream, in the shape it began in.",
        Tag.RUNS,
        event=_RESUMED_EVENT,
        parameters=(
            _LAST_EVENT,
            query("starting_after", "The same; the header wins."),
        ),
    ),
    (RunView, "DELETE"): Operation("Cancel a run.", Tag.RUNS, ref("CancelledRun")),
    (ConversationStreamView, "GET"): Operation(
        "Tell the last stream of a conversation again.",
        Tag.RUNS,
        event=_RESUMED_EVENT,
        parameters=(
            _NAMED,
            query("from", "How many bytes of it the client has.", COUNT),
            _LAST_EVENT,
        ),
    ),
    (ConversationStreamView, "DELETE"): Operation(
        "End the last stream of a conversation, and forget it.", Tag.RUNS, parameters=(_NAMED,)
    ),
    (ConversationLookupView, "POST"): Operation(
        "Tell which conversations have a stream.",
        Tag.RUNS,
        list_of(ref("KnownConversation")),
        body=shape({"conversation_ids": list_of(TEXT)}),
    ),
}


def operation_of(view: Any, method: str) -> Operation:
    """Find what a view does; of a route that is not described, its name is all that is known."""
    return OPERATIONS.get((type(view), method)) or Operation(
        type(view).__name__, Tag.SERVER, ANY_OBJECT
    )

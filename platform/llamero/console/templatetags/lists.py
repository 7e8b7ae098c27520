"""What an empty list of the admin says, and how the audit log names what is listed."""

from typing import Any

from django import template
from django.db.models import Model

register = template.Library()

WHEN_EMPTY = {
    "AlertNotice": "What alerts tell is listed here, and whether it arrived.",
    "ApiKey": "Programs need a key to call the API. Its text is shown once, when it is made.",
    "Batch": "Clients make them: POST /v1/files with the requests, then POST /v1/batches.",
    "Change": "Every change of models, deployments, keys and people is written here.",
    "Deployment": "A deployment loads a model onto a node, and answers requests for it.",
    "Group": "Groups give their members rights. “Viewers” and “Operators” are made by migrate.",
    "Identity": "They come by themselves, as people sign in through an identity provider or call "
    "with its tokens.",
    "LedgerRow": "Each request is written here within seconds of its end.",
    "LimitSet": "Nothing is limited. Limits are of a key, a user, a team, a model, or of all "
    "together.",
    "Model": "They come as GGUF files: uploaded, fetched from Hugging Face or a URL, or imported "
    "from a folder of the server.",
    "ModelFile": "Files come with imports. Each is kept once, however many versions use it.",
    "ModelVersion": "Each import makes a version of its model.",
    "Node": "A machine is listed when it has reported once; “manage.py up” starts a node here.",
    "NodeToken": "With a token, machines that do not share this one's files fetch them over HTTP.",
    "StoredFile": "Clients send files of requests by POST /v1/files; batches add those of answers.",
    "StoredResponse": "What clients make by POST /v1/responses is kept here until it expires.",
    "Team": "Members of a team share its keys and its limits.",
    "TokenIssuer": "Signed tokens (JWT) of identity providers that are listed here open the API.",
    "UploadQuota": "Everybody has the quota of LLAMERO_UPLOAD_QUOTA_BYTES. Users who need another "
    "are listed here.",
    "UsageAlert": "An alert tells people or a webhook when a budget is nearly used.",
    "User": "Whoever may sign in is listed here.",
}
"""By the names of the models. Who may add one has a button below: nothing here asks for it."""


@register.filter
def when_empty(change_list: Any) -> str:
    """Say where rows of this list come from."""
    return WHEN_EMPTY[change_list.model.__name__]


@register.filter
def kind_of(thing: Model) -> str:
    """Give the kind of a thing as the audit log writes it."""
    return thing._meta.label_lower

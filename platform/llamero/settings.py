"""Django's settings: all from the environment, secure by default."""

from pathlib import Path

from inference.protocol.names import broker_url
from llamero.accounts.networks import read_trusted_proxies
from llamero.accounts.peppers import read_peppers
from llamero.accounts.sign_in.config import SignInSettings, read_group_map
from llamero.console.theme import UNFOLD as UNFOLD
from llamero.env import BASE_DIR, env, read_home
from llamero.logs import build_logging
from llamero.people.own_key_rules import OwnKeyRules
from llamero.secret_files import read_or_make_secret
from llamero.sockets import valkey_socket

# Where all state lives: database, models, sockets, logs, secrets.
HOME = read_home()
# From the environment, else from a private file made on first use.
SECRET_KEY = env.str("LLAMERO_SECRET_KEY", default="") or read_or_make_secret(HOME / "secret-key")
DEBUG = env.bool("LLAMERO_DEBUG", default=False)
# What API keys are sealed with: "1:secret,2:secret"; the highest number seals new keys.
API_KEY_PEPPERS = read_peppers(env.str("LLAMERO_API_KEY_PEPPERS", default=""), SECRET_KEY)

# --- Who may reach this site, and how ---
ALLOWED_HOSTS = env.list("LLAMERO_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("LLAMERO_TRUSTED_ORIGINS", default=[])
# True where browsers come by HTTPS: secure cookies, redirect from HTTP, HSTS.
IS_HTTPS = env.bool("LLAMERO_HTTPS", default=False)
SECURE_SSL_REDIRECT = IS_HTTPS
SESSION_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_SECURE = IS_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_HTTPS
SECURE_HSTS_PRELOAD = IS_HTTPS
# Networks that proxies of ours are in; without any, whoever connects is believed to be one.
TRUSTED_PROXIES = read_trusted_proxies(env.list("LLAMERO_TRUSTED_PROXIES", default=[]))
# True behind a proxy that sets X-Forwarded-Proto itself and drops the client's.
if env.bool("LLAMERO_BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_NAME = "llamero_session"
SESSION_COOKIE_AGE = 7 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "llamero_csrf"

# Web pages elsewhere that may call the API: https://example.org,https://other.example
CORS_ALLOWED_ORIGINS = env.list("LLAMERO_CORS_ORIGINS", default=[])
CORS_ALLOW_CREDENTIALS = False
CORS_EXPOSE_HEADERS = [
    "x-request-id",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-llamero-run",
    "x-llamero-deployment",
    "x-llamero-version",
    "x-llamero-stands-in-for",
    "idempotent-replayed",
    "openai-processing-ms",
    "openai-version",
    *(
        f"x-ratelimit-{what}-{name}"
        for what in ("limit", "remaining", "reset")
        for name in ("requests", "tokens")
    ),
    *(
        f"anthropic-ratelimit-{name}-{what}"
        for what in ("limit", "remaining", "reset")
        for name in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
]
CORS_ALLOW_HEADERS = [
    "accept",
    "authorization",
    "content-type",
    "cache-control",
    "x-api-key",
    "api-key",
    "user-agent",
    "last-event-id",
    "idempotency-key",
    "x-request-id",
    "x-conversation-id",
    "x-llamero-resumable",
    "x-llamero-run",
    # What the own clients of Anthropic and OpenAI add.
    "anthropic-version",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "x-client-request-id",
    *(f"x-stainless-{one}" for one in ("arch", "async", "lang", "os", "package-version")),
    *(f"x-stainless-{one}" for one in ("custom-poll-interval", "poll-helper", "retry-count")),
    *(f"x-stainless-{one}" for one in ("helper-method", "runtime", "runtime-version", "timeout")),
]
# How long a browser may remember what is allowed.
CORS_PREFLIGHT_MAX_AGE = 3600
# How long a gateway that is told to stop lets answers go on, while new requests go elsewhere.
WEB_DRAIN_SECONDS = env.float("LLAMERO_WEB_DRAIN_SECONDS", default=0.0)

# So many wrong API keys may come from one address in a minute, before it is told to wait; 0: any.
# Whoever shows a good key is served all the same.
WRONG_KEYS_PER_MINUTE = env.int("LLAMERO_WRONG_KEYS_PER_MINUTE", default=30)
# So many attempts to sign in may fail in ten minutes, from an address or for an account; 0: any.
WRONG_PASSWORDS = env.int("LLAMERO_WRONG_PASSWORDS", default=10)
# Hosts, or host:port, with private addresses or without TLS that identity providers may be at.
INTERNAL_HOSTS = env.list("LLAMERO_INTERNAL_HOSTS", default=[])

# --- Metrics: any API key reads those of its models at /metrics; this token reads all ---
METRICS_TOKEN = env.str("LLAMERO_METRICS_TOKEN", default="")

# --- Sizes ---
# The largest request body; the server refuses more while it arrives.
MAX_BODY_BYTES = env.int("LLAMERO_MAX_BODY_BYTES", default=4 * 2**20)
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
DATA_UPLOAD_MAX_NUMBER_FILES = 10
FILE_UPLOAD_MAX_MEMORY_SIZE = 2**20
# How deep the JSON of a body may nest; never beyond what every reader of it can bear.
MAX_JSON_DEPTH = min(env.int("LLAMERO_MAX_JSON_DEPTH", default=64), 256)
# The most messages of one conversation.
MAX_MESSAGES = env.int("LLAMERO_MAX_MESSAGES", default=10_000)
# How long a request may take to arrive, and a second more for each 16 KiB of its body.
ARRIVAL_SECONDS = env.int("LLAMERO_ARRIVAL_SECONDS", default=20)

# --- Idempotency keys ---
# How long answers are kept for their keys; a stream at most an hour after its end.
IDEMPOTENCY_SECONDS = env.int("LLAMERO_IDEMPOTENCY_SECONDS", default=3600)
# What is kept of one API key: so many answers, and so many bytes of them. The oldest make room.
IDEMPOTENCY_ANSWERS = env.int("LLAMERO_IDEMPOTENCY_ANSWERS", default=1000)
IDEMPOTENCY_BYTES = env.int("LLAMERO_IDEMPOTENCY_BYTES", default=8 * 2**20)

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "corsheaders",
    "drf_spectacular_sidecar",
    "channels",
    "llamero",
    "llamero.accounts",
    "llamero.batches",
    "llamero.console",
    "llamero.control",
    "llamero.conversations",
    "llamero.usage",
    "llamero.playground",
    "llamero.limits",
    "models_registry",
    "llamero.audit",
    # The last: it gives roles the permissions of all others' things.
    "llamero.people",
]

# API requests pass these alone: each is asynchronous, and an answer holds no thread.
API_MIDDLEWARE = [
    "corsheaders.middleware.CorsMiddleware",
    "llamero.api.middleware.api_answers",
    "llamero.audit.actors.note_request",
]
# Pages pass these.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "llamero.headers.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "llamero.audit.actors.note_request",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "llamero.urls"
ASGI_APPLICATION = "llamero.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["models_registry.sizes"],
        },
    },
]

# --- Where things are kept ---
# sqlite:///path or postgres://…
DATABASES = {"default": env.db("LLAMERO_DATABASE_URL", default=f"sqlite:///{HOME}/llamero.sqlite3")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    # A server that is cut off is noticed in seconds.
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 3)
# How long keys and models that were known go on being served while the database is out of reach.
# A key that is revoked meanwhile may live as long. 0: not at all.
OUTAGE_SECONDS = env.float("LLAMERO_OUTAGE_SECONDS", default=600.0)
# Connections are given back after each request: an open stream must not hold one.
DATABASES["default"]["CONN_MAX_AGE"] = 0
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# How long responses stay that clients had stored (POST /v1/responses), after their last use;
# 0 stores none.
RESPONSE_RETENTION_DAYS = max(0, env.int("LLAMERO_RESPONSE_DAYS", default=30))
# How many of one key, and how many bytes of the database; the longest unused make room.
KEY_RESPONSES = max(1, env.int("LLAMERO_KEY_RESPONSES", default=10_000))
KEY_RESPONSE_BYTES = env.int("LLAMERO_KEY_RESPONSE_BYTES", default=256 * 2**20)

# How long chats of the playground stay, after their last change; 0: until their owners delete them.
CHAT_RETENTION_DAYS = max(0, env.int("LLAMERO_CHAT_DAYS", default=0))

# Who tells the connection to the data plane which owners of open work may call no more.
OWNER_REVIEW = "llamero.accounts.selectors.review_owners"
# Who tells it what was used of a budget, where the broker has forgotten it.
BUDGET_LEDGER = "llamero.limits.ledger.read_spent"
# Who lists the budgets that alerts watch.
BUDGETS = "llamero.limits.budgets.list_budgets"
# --- Files and batches ---
# The largest file that a client may upload, and what the files of one key may take together.
MAX_FILE_BYTES = env.int("LLAMERO_MAX_FILE_BYTES", default=200 * 2**20)
KEY_FILE_BYTES = env.int("LLAMERO_KEY_FILE_BYTES", default=2 * 2**30)
# How long files stay, and batches after their end.
FILE_DAYS = env.int("LLAMERO_FILE_DAYS", default=30)
# The most requests of one batch, and how many of all batches may run in a deployment at once.
MAX_BATCH_LINES = env.int("LLAMERO_MAX_BATCH_LINES", default=50_000)
BATCH_CONCURRENCY = max(1, env.int("LLAMERO_BATCH_CONCURRENCY", default=16))

# Who notes what people change in the registry.
CHANGE_LOG = "llamero.audit.recording.recorded"
# Who tells the registry's pages how much memory the nodes have left.
NODE_ROOMS = "llamero.control.rooms.read_rooms"
# Who hears that a deployment is wanted now, or is not.
DEPLOYMENT_DEMAND = "llamero.control.demand.note_demand"
# Folders whose files staff may import in the admin, separated by commas.
IMPORT_DIRS = [
    Path(folder) for folder in env.list("LLAMERO_IMPORT_DIRS", default=[str(HOME / "import")])
]

# --- Model files that are uploaded or fetched ---
# The largest of them, and the largest piece of one that a request may carry.
MAX_MODEL_FILE_BYTES = env.int("LLAMERO_MAX_MODEL_FILE_BYTES", default=500 * 2**30)
MAX_CHUNK_BYTES = env.int("LLAMERO_MAX_CHUNK_BYTES", default=64 * 2**20)
# What the files of one user, or of one key that is no user's, may take together; 0: any amount.
UPLOAD_QUOTA_BYTES = env.int("LLAMERO_UPLOAD_QUOTA_BYTES", default=0)
# What uploads leave free on the disk of the models.
DISK_RESERVE_BYTES = env.int("LLAMERO_DISK_RESERVE_BYTES", default=2**30)
# After so long without a byte an upload is given up.
UPLOAD_HOURS = env.float("LLAMERO_UPLOAD_HOURS", default=24.0)
# Hosts that files may be fetched from although their addresses are private: mirror.lan,10.0.0.7
FETCH_PRIVATE_HOSTS = env.list("LLAMERO_FETCH_PRIVATE_HOSTS", default=[])
# The Hugging Face hub, or a mirror of it, and the token for what is not public there.
HUB_ENDPOINT = env.str("HF_ENDPOINT", default="https://huggingface.co").rstrip("/")
HUB_TOKEN = env.str("HF_TOKEN", default="")

# The Redis-protocol server: broker, streams, leases. unix:///path.sock or redis://host:6379/0
REDIS_URL = env.str("LLAMERO_REDIS_URL", default=f"unix://{valkey_socket(HOME)}")

# --- Celery, the control side (replicas set themselves up: they know no Django) ---
CELERY_BROKER_URL = broker_url(REDIS_URL)
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than the longest task; recovery of lost jobs does not wait for it.
    "visibility_timeout": 900,
    "unacked_restore_interval": 5,
    "socket_timeout": 10,
    "socket_connect_timeout": 3,
    "socket_keepalive": True,
    "retry_on_timeout": True,
    "health_check_interval": 10,
    "max_connections": 10,
}
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.2}

# --- E-mail, for alerts: smtp+tls://user:password@host:587; empty: none is sent ---
EMAIL_URL = env.str("LLAMERO_EMAIL_URL", default="")
EMAIL_IS_SET_UP = bool(EMAIL_URL)
vars().update(env.email_url_config(EMAIL_URL or "smtp://localhost:25"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("LLAMERO_EMAIL_FROM", default="llamero@localhost")

# --- Language, time, static files ---
FORMAT_MODULE_PATH = "llamero.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = env.str("LLAMERO_STATIC_ROOT", default=str(HOME / "static"))
Path(STATIC_ROOT).mkdir(parents=True, exist_ok=True)
# What collectstatic gathers is packed beside it: the API's reference alone has 1.6 MB of script.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
# Serve the apps' own files where nobody ran collectstatic.
WHITENOISE_USE_FINDERS = True

# --- Who a person is ---
AUTHENTICATION_BACKENDS = ["llamero.accounts.passwords.PasswordBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
# An identity provider (OpenID Connect) beside the form for passwords; off without an issuer.
SIGN_IN = SignInSettings(
    issuer=env.str("LLAMERO_OIDC_ISSUER", default=""),
    client_id=env.str("LLAMERO_OIDC_CLIENT_ID", default=""),
    client_secret=env.str("LLAMERO_OIDC_CLIENT_SECRET", default=""),
    # As the button says: "Sign in with …".
    name=env.str("LLAMERO_OIDC_NAME", default="single sign-on"),
    scopes=tuple(env.list("LLAMERO_OIDC_SCOPES", default=["openid", "profile", "email"])),
    username_claim=env.str("LLAMERO_OIDC_USERNAME_CLAIM", default="preferred_username"),
    # Who is in one of the provider's groups may enter, as staff or as superuser; nobody else may.
    groups_claim=env.str("LLAMERO_OIDC_GROUPS_CLAIM", default="groups"),
    staff_groups=frozenset(env.list("LLAMERO_OIDC_STAFF_GROUPS", default=[])),
    superuser_groups=frozenset(env.list("LLAMERO_OIDC_SUPERUSER_GROUPS", default=[])),
    # Which of our groups theirs lead to: theirs:ours,other:another
    group_map=read_group_map(env.list("LLAMERO_OIDC_GROUPS", default=[])),
    # False: only users who were made beforehand, by their names.
    creates_users=env.bool("LLAMERO_OIDC_CREATE_USERS", default=True),
    session_hours=env.int("LLAMERO_OIDC_SESSION_HOURS", default=12),
)
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# --- Keys that people make for themselves, at /account ---
OWN_KEYS = OwnKeyRules(
    # So many that live; 0: none.
    most=env.int("LLAMERO_OWN_KEYS", default=5),
    # They end within so many days; 0: they need not.
    longest_days=env.int("LLAMERO_OWN_KEY_DAYS", default=0),
    # The scopes they may have; without any, those of a key that lists none.
    scopes=tuple(env.list("LLAMERO_OWN_KEY_SCOPES", default=[])),
    # The models they may use, by name; without any, all.
    models=tuple(env.list("LLAMERO_OWN_KEY_MODELS", default=[])),
)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["llamero.accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "llamero.accounts.permissions.HasScope",
    ],
    "EXCEPTION_HANDLER": "llamero.api.errors.handle_exception",
    "UNAUTHENTICATED_USER": None,
}

# The document at /openapi.json.
SPECTACULAR_SETTINGS = {
    "TITLE": "Llamero",
    "DESCRIPTION": "Language models over OpenAI's, Anthropic's and llama-server's APIs.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": "/"}],
    "POSTPROCESSING_HOOKS": [],
}

# --- Logs ---
LOGGING = build_logging(env.str("LLAMERO_LOG_LEVEL", default="INFO"))

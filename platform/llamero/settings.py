"""Django's settings: all from the environment, secure by default."""

import secrets

from llamero.env import BASE_DIR, env, read_path

# Where all state lives: database, models, sockets, logs, secrets.
HOME = read_path("LLAMERO_HOME", BASE_DIR / "var")
HOME.mkdir(parents=True, exist_ok=True)


def _read_secret_key() -> str:
    """Take the key from the environment, else from a private file made on first use."""
    value = env.str("LLAMERO_SECRET_KEY", default="")
    if value:
        return value
    path = HOME / "secret-key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(64))
    return path.read_text()


SECRET_KEY = _read_secret_key()
DEBUG = env.bool("LLAMERO_DEBUG", default=False)
ALLOWED_HOSTS = env.list("LLAMERO_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])

INSTALLED_APPS = [
    "daphne",
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "channels",
    "llamero",
    "llamero.accounts",
    "llamero.console",
    "models_registry",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
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
        },
    },
]

# sqlite:///path or postgres://…
DATABASES = {"default": env.db("LLAMERO_DATABASE_URL", default=f"sqlite:///{HOME}/llamero.sqlite3")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DATABASES["default"]["CONN_MAX_AGE"] = 0

# The Redis-protocol server: broker, streams, leases. unix:///path.sock or redis://host:6379/0
REDIS_URL = env.str("LLAMERO_REDIS_URL", default=f"unix://{HOME}/run/valkey.sock")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = HOME / "static"
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["llamero.accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "EXCEPTION_HANDLER": "llamero.api.errors.handle_exception",
    "UNAUTHENTICATED_USER": None,
}

"""Django settings, all from the environment; `vantage up` sets what it embeds."""

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vantage.frontend import frontend_folder
from vantage.web_log import LOGGING as LOGGING

HOME = Path(os.environ.get("VANTAGE_HOME", ".vantage")).absolute()
FRONTEND = frontend_folder()
DEBUG = os.environ.get("VANTAGE_DEBUG") == "1"
SECRET_KEY = os.environ.get("VANTAGE_SECRET_KEY", "")  # `vantage up` makes one; without it Django refuses to start
ALLOWED_HOSTS = os.environ.get("VANTAGE_HOSTS", "127.0.0.1,localhost,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("VANTAGE_ORIGINS", "").split(",") if origin]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "vantage.teams",
    "vantage.algorithms",
    "vantage.datasets",
    "vantage.nodes",
    "vantage.runs",
    "vantage.sharing",
    "vantage.api",
]
APPS = ["teams", "algorithms", "datasets", "nodes", "runs", "sharing", "api"]
MIGRATION_MODULES = {app: f"vantage_migrations.{app}" for app in APPS}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "vantage.headers.content_security_policy",
]
ROOT_URLCONF = "vantage.urls"
ASGI_APPLICATION = "vantage.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FRONTEND / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "vantage.teams.context.team",
            ],
        },
    }
]


LEASE_SECONDS = float(os.environ.get("VANTAGE_LEASE_SECONDS", "30"))  # a supervisor renews it three times as often
USAGE_SECONDS = float(os.environ.get("VANTAGE_USAGE_SECONDS", "5"))  # between two looks at a node's devices
SWEEP_SECONDS = float(os.environ.get("VANTAGE_SWEEP_SECONDS", "10"))
STILL = round(1000 * max(5.0, LEASE_SECONDS))  # ms that one who stands still amid a transaction may keep others waiting


def database(url: str) -> dict[str, object]:
    """Read postgres://user:password@host:port/name; a host that starts with %2F is a socket folder."""
    parts = urlsplit(url)
    host = re.sub(r":\d*$", "", parts.netloc.rpartition("@")[2]).strip("[]")  # parts.hostname would be in lower case
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(host),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"options": f"-c idle_in_transaction_session_timeout={STILL}"},
    }


DATABASES = {"default": database(os.environ.get("DATABASE_URL", "postgres://vantage@127.0.0.1/vantage"))}
BROKER_URL = os.environ.get("BROKER_URL", "redis://127.0.0.1:6379/0")  # redis://... or unix:///path?password=...

AUTH_USER_MODEL = "teams.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"}]
# Behind a proxy that speaks TLS, cookies go over https alone and links begin with it.
HAS_TLS = any(origin.startswith("https://") for origin in CSRF_TRUSTED_ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HAS_TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HAS_TLS else None
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "vantage_session"
CSRF_COOKIE_NAME = "vantage_csrf"

STATIC_URL = "/static/"
STATICFILES_DIRS = [FRONTEND / "static"]
STATIC_ROOT = HOME / "static"  # where `vantage up` puts them, with compressed copies
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG or not STATIC_ROOT.is_dir()
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 2**20
FILE_UPLOAD_TEMP_DIR = None

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TRAINER_MODULE = os.environ.get("VANTAGE_TRAINER_MODULE", "vantage_trainer.train")
JOB_MODULE = os.environ.get("VANTAGE_JOB_MODULE", "vantage_trainer.job")  # for the other kinds
IMPORT_MODULE = os.environ.get("VANTAGE_IMPORT_MODULE", "vantage.runs.importing")  # writes rows to Postgres itself

"""What the web process writes to stderr when a page fails: the traceback, and the address without secrets in it."""

import logging


class WithoutSecrets(logging.Filter):
    """Leave a request's words out of its address: a login link's token is one of them; numbers stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        match = getattr(getattr(record, "request", None), "resolver_match", None)
        if match is not None:
            words = {word for word in match.kwargs.values() if isinstance(word, str) and word}
            record.args = tuple(_without(words, arg) for arg in record.args or ())
        return True


def _without(words: set[str], arg: object) -> object:
    for word in words:
        arg = arg.replace(word, "…") if isinstance(arg, str) else arg
    return arg


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"without_secrets": {"()": WithoutSecrets}},
    "formatters": {"dated": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "dated", "filters": ["without_secrets"]},
    },
    "loggers": {"django": {"handlers": ["stderr"], "level": "ERROR"}},
}

"""Reward code and models run with the trainer's environment: nothing in it may open the site's services."""

from pathlib import Path

import pytest
from django.conf import settings
from vantage.runs.trainer_process import MARK, environment

SECRETS = (
    "BROKER_URL",
    "CELERY_BROKER_READ_URL",
    "CELERY_BROKER_URL",
    "CELERY_BROKER_WRITE_URL",
    "CELERY_RESULT_BACKEND",
    "DATABASE_URL",
    "PGPASSFILE",
    "PGPASSWORD",
    "PGSERVICEFILE",
    "VANTAGE_SECRET_KEY",
)


def test_the_trainer_inherits_no_secret_of_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "redis://:the-password@127.0.0.1/0")
    built = environment(Path("/runs/1"), ["cpu0"])
    assert not [name for name, value in built.items() if name in SECRETS or "the-password" in value]


def test_the_trainer_keeps_what_it_is_found_and_works_by(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"VANTAGE_UP": "/home/vantage", "SPT_NOENV": "1", "VANTAGE_MODELS": "/models", "PATH": "/usr/bin"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    built = environment(Path("/runs/1"), ["cuda1", "cuda3"])
    assert kept.items() <= built.items()
    assert (built[MARK], built["CUDA_VISIBLE_DEVICES"]) == ("/runs/1", "1,3")


def test_models_are_made_once_for_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VANTAGE_MODELS", raising=False)
    assert environment(Path("/runs/1"), [])["VANTAGE_MODELS"] == str(Path(settings.HOME) / "models")

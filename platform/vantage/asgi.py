"""The web process: `uvicorn vantage.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vantage.settings")
application = get_asgi_application()

"""Response headers that every page carries."""

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.utils.decorators import sync_and_async_middleware

POLICY = "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


@sync_and_async_middleware
def content_security_policy(get_response):  # type: ignore[no-untyped-def]
    """Forbid inline script and style: no text from a user or a model ever runs."""
    if iscoroutinefunction(get_response):

        async def respond(request):  # type: ignore[no-untyped-def]
            response = await get_response(request)
            response.headers.setdefault("Content-Security-Policy", POLICY)
            return response

        markcoroutinefunction(respond)
        return respond

    def respond_sync(request):  # type: ignore[no-untyped-def]
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return respond_sync

"""The web process of `vantage up`, on a socket that `up` keeps: while it is started again, browsers wait, not fail."""

import argparse
import socket
import warnings

import uvicorn

OPEN_STREAM_SECONDS = 2  # an open stream would keep uvicorn alive for ever


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the site on an inherited listening socket.")
    parser.add_argument("--fd", type=int, required=True)
    listener = socket.socket(fileno=parser.parse_args().fd)
    warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")  # whitenoise
    config = uvicorn.Config(
        "vantage.asgi:application",
        timeout_graceful_shutdown=OPEN_STREAM_SECONDS,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="off",
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

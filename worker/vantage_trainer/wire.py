"""Carry messages between the trainer and its generator over the socket pair that one inherits from the other."""

import os
import pickle
import socket
from multiprocessing.connection import Connection
from typing import Any


class Wire:
    """One end of a private socket pair: plain pickles, so that tensors travel by value, and file handles."""

    def __init__(self, end: socket.socket) -> None:
        self._connection = Connection(end.detach())

    def tell(self, message: object) -> None:
        self._connection.send_bytes(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))

    def has_word(self, patience: float) -> bool:
        """Wait for a message or a hang-up, at most so many seconds."""
        return self._connection.poll(patience)

    def hear(self) -> Any:
        """Return the next message; EOFError or ConnectionError when the other end is gone."""
        return pickle.loads(self._connection.recv_bytes())

    def fileno(self) -> int:
        return self._connection.fileno()

    def send_handle(self, handle: int) -> None:
        with socket.socket(fileno=os.dup(self.fileno())) as end:
            socket.send_fds(end, [b"h"], [handle])

    def receive_handle(self) -> int:
        with socket.socket(fileno=os.dup(self.fileno())) as end:
            _, [handle], _, _ = socket.recv_fds(end, 1, 1)
        return handle

    def close(self) -> None:
        self._connection.close()

"""The only road from the web to the engine: submit a job, follow it, cancel it, ask about text."""

from llamero.dispatch.dispatcher import Dispatcher, get_dispatcher, stop_waiting
from llamero.dispatch.stream import JobStream

__all__ = ["Dispatcher", "JobStream", "get_dispatcher", "stop_waiting"]

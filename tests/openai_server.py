"""A small OpenAI-compatible server on this machine that answers by the simulated models' rules, slowly or wrongly when asked.

It is the tests' second way to a model, over real connections, and the place where provider faults are injected.
"""

import hashlib
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar

from curate_inspect.simulated import simulated_reply

# Kinds of faults: an HTTP status, no answer (in time), or what is wrong with an answer of status 200.
STATUS = {"429": 429, "500": 500, "503": 503}
TRANSIENT = (*STATUS, "dropped", "slow")
BROKEN = ("malformed", "no_choices")
SILENT = ("empty", "null", "filtered", "cut")
STALL = 30.0  # seconds that a slow answer takes; longer than any client of the tests waits


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """What is done within must end in time; a hang becomes a `TimeoutError`."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Server:
    """Runs while used as a context manager.

    Args:
        latency: Seconds before an answer.
        rate: The share of requests with a fault.
        kinds: The faults to choose from, by the request's text and the seed.
        once: Whether the same request is answered well when it comes again.
        seed: Of the choice.
        models: The models whose requests get faults; all by default.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        rate: float = 0.0,
        kinds: Sequence[str] = (),
        once: bool = True,
        seed: int = 0,
        models: Sequence[str] = (),
    ) -> None:
        self.latency, self.rate, self.kinds, self.once, self.seed, self.models = latency, rate, kinds, once, seed, models
        self.calls: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        self.files: dict[str, bytes] = {}  # of the batch interface: what was uploaded, and the answers to it
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = _HTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> "Server":
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()

    def keep(self, content: bytes) -> str:
        """Keep a file and return its name."""
        with self._lock:
            name = f"file-{len(self.files)}"
            self.files[name] = content
        return name

    def count(self, model: str) -> None:
        """Count a call."""
        with self._lock:
            self.calls[model] += 1

    def fault(self, model: str, body: bytes) -> str | None:
        """The fault of a request, if it is to have one."""
        digest = hashlib.sha256(str(self.seed).encode() + body).hexdigest()
        self.count(model)
        with self._lock:
            again = digest in self._seen
            self._seen.add(digest)
        if not self.kinds or (self.models and model not in self.models) or (self.once and again):
            return None
        if int(digest[:8], 16) / 2**32 >= self.rate:
            return None
        kind = self.kinds[int(digest[8:16], 16) % len(self.kinds)]
        with self._lock:
            self.injected[kind] += 1
        return kind


class _HTTPServer(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of 5 a burst of connections waits a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed or give up are part of the tests."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # the body would wait some 40 ms for the client to confirm the head
    owner: ClassVar[Server]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the client is gone")
        if self.path == "/v1/files":
            self._send(200, json.dumps(_file(self.owner.keep(body))).encode())
            return
        request = json.loads(body)
        if self.path == "/v1/batches":
            lines = self.owner.files[request["input_file_id"]].splitlines()
            answers = [self._batched(json.loads(line)) for line in lines if line.startswith(b"{")]
            self.owner.count("batch")
            self._send(200, json.dumps(_batch(self.owner.keep("\n".join(answers).encode()))).encode())
            return
        name = request["model"]
        fault = self.owner.fault(name, json.dumps(request["messages"]).encode())
        time.sleep(self.owner.latency)
        if fault == "slow":
            self.owner.stopped.wait(STALL)
        if fault in ("dropped", "slow"):
            self.close_connection = True
            return
        if fault in STATUS:
            self._send(STATUS[fault], json.dumps({"error": {"message": f"injected {fault}", "type": "server_error"}}).encode())
            return
        if fault == "malformed":
            self._send(200, b'{"id": "x", "choices": [{"mess')
            return
        self._send(200, json.dumps(_completion(name, _reply(request), fault)).encode())

    def do_GET(self) -> None:
        """A batch, done as soon as it was sent, or the file of its answers."""
        *_, key, last = self.path.split("/")
        if last == "content":
            self._send(200, self.owner.files[key])
        else:
            self._send(200, json.dumps(_batch(last)).encode())

    def _batched(self, line: dict[str, Any]) -> str:
        request = line["body"]
        self.owner.count(request["model"])
        body = _completion(request["model"], _reply(request), None)
        return json.dumps({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None})

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


def _reply(request: dict[str, Any]) -> str:
    messages = [(m["role"], _text(m["content"])) for m in request["messages"]]
    users = [text for role, text in messages if role == "user"]
    system = next((text for role, text in messages if role in ("system", "developer")), "")
    return simulated_reply(request["model"], system, users)


def _file(name: str) -> dict[str, Any]:
    about = {"bytes": 1, "created_at": 0, "filename": name, "purpose": "batch", "status": "processed"}
    return {"id": name, "object": "file", **about}


def _batch(answers: str) -> dict[str, Any]:
    about = {"endpoint": "/v1/chat/completions", "completion_window": "24h", "created_at": 0, "input_file_id": "x"}
    return {"id": answers, "object": "batch", "status": "completed", "output_file_id": answers, **about}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _completion(model: str, text: str, fault: str | None) -> dict[str, Any]:
    content = {"empty": "", "null": None, "filtered": "", "cut": text[: len(text) // 2]}.get(fault or "", text)
    reason = {"filtered": "content_filter", "cut": "length"}.get(fault or "", "stop")
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [] if fault == "no_choices" else [choice],
        "usage": usage,
    }

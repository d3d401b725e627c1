"""A small OpenAI-compatible server on this machine that answers by the simulated models' rules, slowly or wrongly when asked.

It is the tests' second way to a model, over real connections, and the place where provider faults are injected.
"""

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar

from curate_inspect.simulated import simulated_reply

# Kinds of faults: an HTTP status, or what is wrong with an answer of status 200.
STATUS = {"429": 429, "500": 500, "503": 503}
BROKEN = ("malformed", "no_choices")
TRANSIENT = (*STATUS, "dropped")
SILENT = ("empty", "null", "filtered", "cut")


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
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> "Server":
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()

    def fault(self, model: str, body: bytes) -> str | None:
        """The fault of a request, if it is to have one."""
        digest = hashlib.sha256(str(self.seed).encode() + body).hexdigest()
        with self._lock:
            self.calls[model] += 1
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


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[Server]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        name = request["model"]
        fault = self.owner.fault(name, json.dumps(request["messages"]).encode())
        time.sleep(self.owner.latency)
        if fault == "dropped":
            self.close_connection = True
            return
        if fault in STATUS:
            self._send(STATUS[fault], json.dumps({"error": {"message": f"injected {fault}", "type": "server_error"}}).encode())
            return
        if fault == "malformed":
            self._send(200, b'{"id": "x", "choices": [{"mess')
            return
        messages = [(m["role"], _text(m["content"])) for m in request["messages"]]
        users = [text for role, text in messages if role == "user"]
        system = next((text for role, text in messages if role in ("system", "developer")), "")
        self._send(200, json.dumps(_completion(name, simulated_reply(name, system, users), fault)).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


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

"""Record what real instrumentations send: `python services/assembler/tests/record.py [NAME ...]`. A development tool.

Each program of `programs/` runs in an environment of its own with pinned packages, against a model API on loopback that
is imitated here, and exports its spans to a receiver on loopback. `recordings/NAME.pb` has all its requests one after
the other, which is a valid request again. `recordings/NAME.expected.json` has the events made of them: read them before
committing. Machine paths and ports are replaced.
"""

import argparse
import gzip
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
PROGRAMS, RECORDINGS = HERE / "programs", HERE / "recordings"
#: The packages of each program are in its first lines, after `packages:`.
EXPORT = ("opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-proto-http==1.45.2")
ANSWER = "Rows are kept for 90 days."
ARGUMENTS = '{"project": "help"}'
TIMEOUT_S = 120


class Imitation(http.server.ThreadingHTTPServer):
    """The APIs of OpenAI and Anthropic, and an OTLP receiver."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []
        self.binary = True
        self.numbers = itertools.count(1)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    """One request of a program."""

    protocol_version = "HTTP/1.1"
    server: Imitation

    def do_GET(self) -> None:
        self._send({"version": "3.0.0", "status": "OK"})

    def do_POST(self) -> None:
        body = self._body()
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path.endswith("/traces"):
            self.server.bodies.append(body)
            self.server.binary = self.headers.get("content-type") == "application/x-protobuf"
            self._send_raw(b"", self.headers.get("content-type", ""))
        elif self.path.endswith("/chat/completions"):
            self._chat(json.loads(body))
        elif self.path.endswith("/responses"):
            self._send(response(json.loads(body)) | self._number("resp"))
        elif self.path.endswith("/embeddings"):
            given = json.loads(body)
            inputs = given["input"] if isinstance(given["input"], list) else [given["input"]]
            data = [{"object": "embedding", "index": i, "embedding": [0.1, 0.2]} for i in range(len(inputs))]
            usage = {"prompt_tokens": 5, "total_tokens": 5}
            self._send({"object": "list", "model": given["model"], "data": data, "usage": usage})
        elif self.path.endswith("/messages"):
            self._send(anthropic(json.loads(body)) | self._number("msg"))
        else:
            self._send({})

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _chat(self, given: dict[str, Any]) -> None:
        made = completion(given) | self._number("chatcmpl")
        if not given.get("stream"):
            self._send(made)
            return
        events = []
        for part in ({"role": "assistant", "content": ""}, *({"content": f"{word} "} for word in ANSWER.split())):
            choice = {"index": 0, "delta": part, "finish_reason": None}
            events.append({**made, "object": "chat.completion.chunk", "choices": [choice], "usage": None})
        events.append(
            {**made, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        )
        data = "".join(f"data: {json.dumps(each)}\n\n" for each in events) + "data: [DONE]\n\n"
        self._send_raw(data.encode(), "text/event-stream")

    def _number(self, kind: str) -> dict[str, Any]:
        return {"id": f"{kind}-{next(self.server.numbers)}"}

    def _send(self, document: dict[str, Any]) -> None:
        self._send_raw(json.dumps(document).encode(), "application/json")

    def _send_raw(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log no requests."""


def completion(given: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion: a call of the first tool, until its result is there; else the answer."""
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    finish = "stop"
    if given.get("tools") and given["messages"][-1]["role"] != "tool":
        function = {"name": given["tools"][0]["function"]["name"], "arguments": ARGUMENTS}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        finish = "tool_calls"
    return {
        "object": "chat.completion",
        "created": 1767323045,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28},
    }


def response(given: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the responses API."""
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    usage = {"input_tokens": 20, "output_tokens": 8, "total_tokens": 28}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "object": "response",
        "created_at": 1767323045,
        "status": "completed",
        "model": "gpt-4o-mini-2024-07-18",
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}],
        "usage": usage | details,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": given.get("tools", []),
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
    }


def anthropic(given: dict[str, Any]) -> dict[str, Any]:
    """Return a message of Anthropic's API."""
    last = given["messages"][-1]["content"]
    has_result = isinstance(last, list) and any(part.get("type") == "tool_result" for part in last)
    content: list[dict[str, Any]] = [{"type": "text", "text": ANSWER}]
    reason = "end_turn"
    if given.get("tools") and not has_result:
        call = {"type": "tool_use", "id": "toolu_1", "name": given["tools"][0]["name"], "input": json.loads(ARGUMENTS)}
        content, reason = [{"type": "text", "text": "Let me look."}, call], "tool_use"
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 8},
    }


def record(name: str, work: Path) -> None:
    """Run a program in its environment and keep what it sent."""
    api = Imitation()
    run(name, work, api)
    api.shutdown()
    if not api.bodies:
        raise SystemExit(f"{name}: no spans arrived")
    if api.binary:
        keep(name, b"".join(cleaned(body, work) for body in api.bodies), "protobuf")
    else:
        keep(name, cleaned_json(api.bodies, work), "json")


def send(name: str, work: Path, gateway: str, key: str) -> None:
    """Run a program in its environment and let it send to a gateway."""
    api = Imitation()
    headers = f"authorization=Bearer%20{key}"
    run(name, work, api, OTEL_EXPORTER_OTLP_ENDPOINT=gateway, OTEL_EXPORTER_OTLP_HEADERS=headers)
    api.shutdown()


def run(name: str, work: Path, api: Imitation, **changes: str) -> None:
    """Run a program in its environment."""
    program = next(PROGRAMS.glob(f"{name}.*"))
    lines = program.read_text().splitlines()
    packages = [word for line in lines if "packages:" in line for word in line.partition("packages:")[2].split()]
    command = (
        environment(name, packages, work)
        if program.suffix == ".py"
        else node_environment(name, packages, program, work)
    )
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "OTEL_SERVICE_NAME": "support-bot",
        "OTEL_EXPORTER_OTLP_ENDPOINT": api.url,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
        "OPENAI_BASE_URL": f"{api.url}/v1",
        "OPENAI_API_BASE": f"{api.url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "none",
        "IMITATION": api.url,
    } | changes
    subprocess.run(command, env=variables, cwd=work, check=True, timeout=TIMEOUT_S)


def environment(name: str, packages: list[str], work: Path) -> list[str]:
    """Return the command of a Python program in an environment with its packages. It is kept for the next run."""
    folder = work / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *EXPORT, *packages], check=True)
    return [str(python), str(PROGRAMS / f"{name}.py")]


def node_environment(name: str, packages: list[str], program: Path, work: Path) -> list[str]:
    """Return the command of a JavaScript program in a folder with its packages."""
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *packages], cwd=folder, check=True)
    for shared in PROGRAMS.glob("_*.mjs"):
        shutil.copy(shared, folder)
    return ["node", str(shutil.copy(program, folder))]


def cleaned_json(bodies: list[bytes], work: Path) -> bytes:
    """Return requests in JSON as one, without machine paths, addresses and process numbers."""
    groups = [group for body in bodies for group in json.loads(body)["resourceSpans"]]
    for group in groups:
        pairs = group["resource"]["attributes"]
        pairs[:] = [pair for pair in pairs if not pair["key"].startswith(("process.", "host.", "os."))]
    text = json.dumps({"resourceSpans": groups}, indent=1, ensure_ascii=False).replace(str(work), "/work")
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text).encode()


def cleaned(body: bytes, work: Path) -> bytes:
    """Return a request without machine paths, addresses and process numbers."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest.FromString(body)
    for group in request.resource_spans:
        clean(group.resource.attributes, work)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                for attributes in [span.attributes, *(event.attributes for event in span.events)]:
                    clean(attributes, work)
    return request.SerializeToString()


def clean(attributes: Any, work: Path) -> None:
    """Remove or replace attributes that only this machine has."""
    for pair in list(attributes):
        if pair.key == "exception.stacktrace" or pair.key.startswith(("process.", "host.", "os.", "code.", "thread.")):
            attributes.remove(pair)
    for pair in attributes:
        if pair.key == "server.port":
            pair.value.int_value = 8000
        replace_in(pair.value, work)


def replace_in(value: Any, work: Path) -> None:
    """Replace what only this machine has in an attribute's value."""
    if value.HasField("string_value"):
        value.string_value = re.sub(
            r"127\.0\.0\.1:\d+", "127.0.0.1:8000", value.string_value.replace(str(work), "/work")
        )
    for each in [*value.array_value.values, *(pair.value for pair in value.kvlist_value.values)]:
        replace_in(each, work)


def keep(name: str, body: bytes, encoding: Literal["protobuf", "json"]) -> None:
    """Write a recording and the events made of it."""
    RECORDINGS.mkdir(exist_ok=True)
    suffix = "pb" if encoding == "protobuf" else "json"
    (RECORDINGS / f"{name}.{suffix}").write_bytes(body)
    sys.path.insert(0, str(HERE.parents[2]))
    from tests.support.recordings import expectation

    expected = expectation(body, encoding)
    (RECORDINGS / f"{name}.expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    print(f"{name}: {len(body)} bytes, {[event['kind'] for event in expected['events']]}, {expected['counts']}")


def main() -> None:
    """Record the programs named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs to record; default: all")
    parser.add_argument("--work", type=Path, default=None, help="folder for environments; default: a temporary one")
    parser.add_argument("--gateway", help="send to this gateway instead, with the key in ASSAY_CAPTURE_KEY")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.stem for path in PROGRAMS.glob("[a-z]*.*"))
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).resolve()
        for name in names:
            if arguments.gateway:
                send(name, work, arguments.gateway, os.environ["ASSAY_CAPTURE_KEY"])
            else:
                record(name, work)


if __name__ == "__main__":
    main()

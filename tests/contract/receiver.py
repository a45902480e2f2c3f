"""A receiver of webhooks for tests. It verifies each delivery with the package of Standard Webhooks.

It prints its address and serves until it is killed. `PUT /PATH` with a secret trusts that secret for deliveries to the
path. `GET /` lists what came. Deliveries are answered by their path: /ok 204, /fails 500, /gone 410, /moved 307 to /ok;
/once and /hangs refuse or never answer the first delivery of an id, and take the next one.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

SECRETS: dict[str, str] = {}
RECEIVED: list[dict] = []
LOCK = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", "0")))

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        SECRETS[self.path] = self.body().decode()
        self.answer(204)

    def do_GET(self) -> None:
        with LOCK:
            body = json.dumps(RECEIVED).encode()
        self.answer(200, body)

    def do_POST(self) -> None:
        body = self.body()
        name = self.headers["webhook-id"]
        entry = {"path": self.path, "id": name, "type": self.headers["content-type"], "fault": None}
        entry["signatures"] = len(self.headers["webhook-signature"].split(" "))
        try:
            entry["event"] = Webhook(SECRETS.get(self.path, "whsec_bm9uZQ==")).verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            entry["fault"] = str(error)
        with LOCK:
            is_first = all((it["id"], it["path"]) != (name, self.path) for it in RECEIVED)
            RECEIVED.append(entry)
        if self.path == "/hangs" and is_first:
            time.sleep(3600)
        refuses = {"/fails": 500, "/gone": 410, "/once": 500 if is_first else 204, "/moved": 307}
        self.answer(refuses.get(self.path, 204), headers={"location": "/ok"} if self.path == "/moved" else None)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()

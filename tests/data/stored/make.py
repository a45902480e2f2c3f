"""Makes what this folder holds: databases and a data folder as an older binary stores them.

    python3 make.py PATH/TO/OLD/reprise [postgres://HOST/EMPTY_DATABASE]

Without a database: `sqlite.sql`, `data/` and `sqlite.json`. With one: `postgres.sql` and `postgres.json`. The JSON
files hold searches and what the older binary answered. Needs ffmpeg, and pg_dump for Postgres.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

HERE = Path(__file__).parent
SHOTS = {
    "dive": ["testsrc2", "color=c=red", "mandelbrot"],
    "lovr": ["smptebars", "color=c=blue"],
    "fixed": ["color=c=green", "testsrc"],
    "given": ["rgbtestsrc", "color=c=white"],
    "talk": ["color=c=gray", "color=c=black"],
    "anew": ["yuvtestsrc", "color=c=orange", "pal75bars"],
    "first": ["color=c=purple", "smptehdbars"],
    "first-given": ["color=c=cyan", "testsrc2"],
}
SUBTITLES = """1
00:00:00,200 --> 00:00:01,400
The diver leaves the platform.

2
00:00:01,600 --> 00:00:02,400
Two and a half twists.

3
00:00:03,600 --> 00:00:05,200
A clean entry into the water.
"""
GIVEN = [{"start": 0.5, "end": 1.5, "metadata": {"label": "one"}}, {"start": 1.5, "end": 3.5}]
SEGMENTATIONS = {
    "dive": None,
    "lovr": {"params": {"preset": "lovr", "max_clip_seconds": 1.2}},
    "fixed": {"policy": "fixed", "params": {"every_seconds": 1.5}},
    "given": {"policy": "given", "clips": GIVEN},
    "talk": {"policy": "subtitle", "params": {"pause_seconds": 0.5}},
    "anew": {"policy": "hybrid", "params": {"detector": "adaptive", "weights": {"edges": 0.5}}},
    "first": {"policy": "content", "params": {"threshold": 30, "max_clip_seconds": 1.25}},
    "first-given": {"policy": "given", "clips": GIVEN},
}
# As the first release stored its segmentations.
FIRST_RELEASE = {
    "first": {"policy": "content", "params": {"threshold": 30.0, "max_clip_seconds": 1.25, "min_scene_frames": 15}},
    "first-given": {"policy": "given", "params": {}},
}
SEARCHES = [
    {"query": {"text": "a red floor"}, "limit": 50},
    {"query": {"text": "bars"}, "level": "video", "limit": 50},
    {"query": {"text": "the diver"}, "level": "both", "limit": 50, "exact": True},
    {"query": {"text": "clean entry"}, "limit": 5},
    {"query": {"text": "blue"}, "filter": {"field": "metadata.event", "eq": "vault"}, "limit": 50},
]


def film(folder, name):
    path = folder / f"{name}.mp4"
    command = ["ffmpeg", "-v", "error", "-y"]
    for shot in SHOTS[name]:
        command += ["-t", "2", "-f", "lavfi", "-i", f"{shot}{':' if '=' in shot else '='}s=96x64:r=10"]
    inputs = "".join(f"[{at}:v]format=yuv420p,setsar=1[s{at}];" for at in range(len(SHOTS[name])))
    joined = "".join(f"[s{at}]" for at in range(len(SHOTS[name])))
    command += ["-filter_complex", f"{inputs}{joined}concat=n={len(SHOTS[name])}:v=1[v]", "-map", "[v]"]
    subprocess.run(command + ["-c:v", "libx264", "-crf", "40", "-preset", "slow", str(path)], check=True)
    return path


class Server:
    def __init__(self, binary, data, database, *more):
        arguments = [binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(data), *more]
        arguments += ["--database-url", database] if database else []
        environment = dict(os.environ, REPRISE_MODEL="builtin:tiny")
        log = open(data / "server.log", "w")
        self.process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.base = line.split()[-1]
                return
        sys.exit((data / "server.log").read_text())

    def ask(self, method, path, body=None, content_type="application/json"):
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        request = urllib.request.Request(self.base + path, data, {"content-type": content_type}, method=method)
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def add(self, file, segmentation, metadata):
        boundary = uuid.uuid4().hex
        parts = [("metadata", "", json.dumps(metadata).encode())]
        if segmentation:
            parts.append(("segmentation", "", json.dumps(segmentation).encode()))
        parts.append(("file", f'; filename="{file.name}"', file.read_bytes()))
        body = b"".join(
            f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + data + b"\r\n"
            for name, more, data in parts
        )
        body += f"--{boundary}--\r\n".encode()
        return self.ask("POST", "/v1/videos", body, f"multipart/form-data; boundary={boundary}")

    def wait(self, job):
        while True:
            state = self.ask("GET", f"/v1/jobs/{job}")["state"]
            if state not in ("queued", "running"):
                assert state == "succeeded", state
                return
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0


def fill(binary, data, database, films):
    """Videos of every policy, subtitles, and one job that waits; what searches answer."""
    server, ids = Server(binary, data, database), {}
    for number, name in enumerate(SHOTS):
        answer = server.add(film(films, name), SEGMENTATIONS[name], {"event": "vault" if number % 2 else "floor"})
        ids[name] = answer["video"]["id"]
        if name in ("dive", "talk"):
            server.ask("PUT", f"/v1/videos/{ids[name]}/subtitles/en", SUBTITLES.encode(), "application/x-subrip")
        server.wait(answer["job"]["id"])
    for job in server.ask("GET", "/v1/jobs?limit=100")["items"]:
        server.wait(job["id"])
    video = ids["talk"]
    server.wait(server.ask("POST", f"/v1/videos/{video}/resegment", SEGMENTATIONS["talk"])["job"]["id"])
    answers = [{"body": body, "results": server.ask("POST", "/v1/search", body)["results"]} for body in SEARCHES]
    for answer in answers:
        answer["results"] = [[it["video_id"], it["start"], it["end"], it["score"]] for it in answer["results"]]
    server.stop()
    # The job waits: it is for the version under test.
    server = Server(binary, data, database, "--runners", "0")
    body = {"policy": "fixed", "params": {"every_seconds": 2}}
    job = server.ask("POST", f"/v1/videos/{ids['anew']}/resegment", body)["job"]["id"]
    shown = {name: server.ask("GET", f"/v1/videos/{video}")["segmentation"] for name, video in ids.items()}
    server.stop()
    return {"videos": ids, "segmentations": shown, "waiting": job, "searches": answers}


def dump_sqlite(path):
    connection = sqlite3.connect(path)
    lines = []
    tables = []
    order = "CASE type WHEN 'table' THEN 0 WHEN 'trigger' THEN 1 ELSE 2 END, rowid"
    for name, sql in connection.execute(f"SELECT name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY {order}"):
        # The full-text index makes its own tables, and triggers fill it.
        if name.startswith("cue_words_") or name == "sqlite_sequence":
            continue
        lines.append(sql + ";")
        if sql.startswith("CREATE TABLE"):
            tables.append(name)
    for name in tables + ["sqlite_sequence"]:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        if name == "sqlite_sequence":
            lines.append("DELETE FROM sqlite_sequence;")
        values = " || ', ' || ".join(f'quote("{column}")' for column in columns)
        for (row,) in connection.execute(f"SELECT {values} FROM {name} ORDER BY 1"):
            lines.append(f"INSERT INTO {name} VALUES ({row});")
    # Tables stand in the order in which they were made.
    lines = ["PRAGMA foreign_keys = OFF;", "BEGIN;", *lines, "COMMIT;"]
    (HERE / "sqlite.sql").write_text("\n".join(lines) + "\n")


def sqlite(binary, folder):
    films, data = folder / "films", folder / "data"
    films.mkdir()
    data.mkdir()
    answers = fill(binary, data, None, films)
    connection = sqlite3.connect(data / "catalog.sqlite")
    for name, segmentation in FIRST_RELEASE.items():
        text = (json.dumps(segmentation), uuid.UUID(answers["videos"][name]).bytes)
        connection.execute("UPDATE videos SET segmentation = ? WHERE id = ?", text)
    connection.commit()
    connection.close()
    dump_sqlite(data / "catalog.sqlite")
    video = answers["videos"]["anew"]
    shutil.rmtree(HERE / "data", ignore_errors=True)
    shutil.copytree(data / "features" / video, HERE / "data" / "features" / video)
    (HERE / "data" / "videos").mkdir()
    shutil.copy(data / "videos" / f"{video}.mp4", HERE / "data" / "videos")
    (HERE / "sqlite.json").write_text(json.dumps(answers, indent=1) + "\n")


def postgres(binary, folder, database):
    films, data = folder / "films", folder / "data"
    films.mkdir()
    data.mkdir()
    answers = fill(binary, data, database, films)
    for name, segmentation in FIRST_RELEASE.items():
        sql = f"UPDATE videos SET segmentation = '{json.dumps(segmentation)}' WHERE id = '{answers['videos'][name]}'"
        subprocess.run(["psql", "-q", "-d", database, "-c", sql], check=True)
    command = ["pg_dump", "--inserts", "--rows-per-insert=64", "--no-owner", "--no-privileges", "-d", database]
    dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Commands of psql, and what other versions of the server don't know.
    unknown = ("\\", "--", "SET transaction_timeout")
    lines = [line for line in dumped.splitlines() if line and not line.startswith(unknown)]
    (HERE / "postgres.sql").write_text("\n".join(lines) + "\n")
    (HERE / "postgres.json").write_text(json.dumps(answers, indent=1) + "\n")


with tempfile.TemporaryDirectory() as folder:
    if len(sys.argv) == 2:
        sqlite(sys.argv[1], Path(folder))
    else:
        postgres(sys.argv[1], Path(folder), sys.argv[2])

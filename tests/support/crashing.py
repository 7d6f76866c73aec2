"""Annotators at a real server that is killed again and again."""

import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field


def free_port():
    from galaxy_al.server.run import listen

    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    listening.close()
    return port


def start(folder, port):
    """Start the server as its own process; it listens when this returns."""
    command = [sys.executable, "-m", "galaxy_al", "label", str(folder), "--no-open"]
    process = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    for line in process.stdout:
        if line.startswith("Label at"):
            return process
    raise AssertionError(f"The server ended with {process.wait()}.")


@dataclass
class Annotator(threading.Thread):
    """Labels until `is_over`, and carries on after the server was away."""

    port: int
    name_of_person: str
    n_classes: int
    think: float
    seconds: list = field(default_factory=list)
    acknowledged: dict = field(default_factory=dict)  # example: label
    problems: list = field(default_factory=list)
    is_over: bool = False

    def __post_init__(self):
        super().__init__(daemon=True)
        self._random = random.Random(self.name_of_person)
        self.cookie = None
        self._connection = None

    __hash__ = threading.Thread.__hash__

    def run(self):
        try:
            self._work()
        finally:
            self._hang_up()

    def _hang_up(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _work(self):
        example = None
        while not self.is_over:
            try:
                if self.cookie is None:
                    self._call("/api/sign-in", {"name": self.name_of_person})
                if example is None:
                    example = self._call("/api/next")["example"]["id"]
                time.sleep(self._random.expovariate(1 / self.think) if self.think else 0)
                label = f"class {self._random.randrange(self.n_classes)}"
                begin = time.perf_counter()
                answer = self._call("/api/label", {"labels": {example: label}})
                self.seconds.append(time.perf_counter() - begin)
                self.acknowledged[example] = label
                example = answer["example"] and answer["example"]["id"]
                if example is None:
                    return
            except (OSError, http.client.HTTPException):
                self._hang_up()
                time.sleep(0.05)
            except KeyError as error:
                self.problems.append(error)
                example = None

    def _call(self, path, body=None):
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json", "Cookie": self.cookie or ""}
        self._connection.request("POST", path, json.dumps(body or {}), headers)
        response = self._connection.getresponse()
        content = json.loads(response.read())
        if response.getheader("set-cookie"):
            self.cookie = response.getheader("set-cookie").split(";")[0]
        if response.status == 409:  # the lease was lost with the server
            raise KeyError(content["error"])
        if response.status != 200:
            raise AssertionError(content)
        return content


def log_of(folder):
    """The entries of the log, in order: (annotator, example, label)."""
    db = sqlite3.connect(f"file:{folder / 'labels.sqlite'}?mode=ro", uri=True)
    rows = db.execute("select annotator, example, label from entries order by number").fetchall()
    db.close()
    return rows


def run_and_kill(folder, n_kills, n_annotators, n_classes, alive=1.0, think=0.02):
    """Kill the server while people label; returns the acknowledged labels, and those lost."""
    port = free_port()
    server = start(folder, port)
    people = [Annotator(port, f"person {i}", n_classes, think) for i in range(n_annotators)]
    for person in people:
        person.start()
    pauses = random.Random(0)
    for _ in range(n_kills):
        time.sleep(pauses.uniform(0.1, alive))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        server.stdout.close()
        server = start(folder, port)
    time.sleep(0.5)
    for person in people:
        person.is_over = True
    for person in people:
        person.join()
    server.send_signal(signal.SIGINT)
    assert server.wait() == 0
    server.stdout.close()
    logged = set(log_of(folder))
    said = {(p.name_of_person, *pair) for p in people for pair in p.acknowledged.items()}
    return said, said - logged

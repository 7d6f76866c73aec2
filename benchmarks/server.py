"""Fifty annotators at once on a pool of 1,000,000, and a server that is killed fifty times.

Run:  .venv/bin/python benchmarks/server.py      (about ten minutes)

The server is the real one, a process of its own, with the log on disk. The annotators are threads
of this process, on the same machine; each thinks for half a second on average, and has the stream
of events open as the page has. Prints the table of docs/appendix/benchmarks.md.
"""

from __future__ import annotations

import selectors
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.crashing import Annotator, free_port, log_of, run_and_kill, start
from support.projects import numbered_project

SIZE, WIDTH, N_CLASSES = 1_000_000, 256, 10
N_ANNOTATORS, N_LABELS, THINK = 50, 10_000, 0.5


def open_events(port, cookie):
    """Open the stream of events as a page does; returns the socket."""
    connection = socket.create_connection(("127.0.0.1", port))
    request = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


def watch_events(connections, people):
    """Read all streams until enough labels are given; returns the events, and those in training."""
    reading = selectors.DefaultSelector()
    seen = Counter()
    for connection in connections:
        reading.register(connection, selectors.EVENT_READ)
    while sum(len(person.acknowledged) for person in people) < N_LABELS:
        for ready, _ in reading.select(timeout=1):
            text = ready.fileobj.recv(1 << 20)
            if ready.fileobj is connections[0]:
                seen["events"] += text.count(b"data: ")
                seen["training"] += text.count(b'"is_running":true')
    return seen["events"], seen["training"]


def many_annotators(folder):
    project = numbered_project(folder, SIZE, WIDTH, N_CLASSES, batch_size=500)
    port = free_port()
    begin = time.perf_counter()
    server = start(project.folder, port)
    started = time.perf_counter() - begin
    people = [Annotator(port, f"person {i}", N_CLASSES, THINK) for i in range(N_ANNOTATORS)]
    begin = time.perf_counter()
    for person in people:
        person.start()
    while any(person.cookie is None for person in people):
        time.sleep(0.1)
    connections = [open_events(port, person.cookie) for person in people]
    n_events, n_training = watch_events(connections, people)
    for person in people:
        person.is_over = True
    for person in people:
        person.join()
    elapsed = time.perf_counter() - begin
    for connection in connections:
        connection.close()
    server.send_signal(signal.SIGINT)
    server.wait()
    rows = log_of(project.folder)
    said = {(p.name_of_person, *pair) for p in people for pair in p.acknowledged.items()}
    seconds = np.concatenate([person.seconds for person in people]) * 1000
    doubled = sum(n > 1 for n in Counter(example for _, example, _ in rows).values())
    p50, p95, p99 = np.percentile(seconds, [50, 95, 99])
    print(f"| labels acknowledged | {len(said):,} in {elapsed:.0f} s |")
    print(f"| lost, doubled | {len(said - set(rows))}, {doubled} |")
    print(f"| events to each page, while training | {n_events}, {n_training} |")
    print(f"| label + next: median, p95, p99 | {p50:.1f} ms, {p95:.1f} ms, {p99:.1f} ms |")
    print(f"| start of the server | {started:.1f} s |", flush=True)


def many_kills(folder):
    project = numbered_project(folder)
    said, lost = run_and_kill(project.folder, n_kills=50, n_annotators=10, n_classes=4)
    print(f"| labels acknowledged over 50 kills, lost | {len(said):,}, {len(lost)} |", flush=True)


def main():
    print("| what | measured |")
    print("|---|---|")
    for work in (many_annotators, many_kills):
        with tempfile.TemporaryDirectory() as folder:
            work(Path(folder))


if __name__ == "__main__":
    main()

"""A server that is killed loses no label that it has acknowledged."""

import signal
import subprocess
import sys

import pytest

from support.crashing import free_port, run_and_kill, start
from support.projects import numbered_project

pytestmark = pytest.mark.slow


def test_no_acknowledged_label_is_lost_when_the_server_is_killed(tmp_path):
    project = numbered_project(tmp_path)
    said, lost = run_and_kill(project.folder, n_kills=4, n_annotators=5, n_classes=4)
    assert len(said) > 20
    assert lost == set()


def test_a_second_server_refuses_and_the_first_continues(tmp_path):
    project = numbered_project(tmp_path, size=200)
    port = free_port()
    first = start(project.folder, port)
    command = [sys.executable, "-m", "galaxy_al", "label", str(project.folder), "--no-open"]
    second = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert second.stderr == f"galaxy-al: Another server is already running on {project.folder}.\n"
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    first.wait(timeout=20)
    first.stdout.close()

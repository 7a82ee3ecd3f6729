/* Reserves a gigabyte of disk in one call, between two measurements of what the workspace wrote. Bounded. */

#include "try.h"

static const off_t GIGABYTE = (off_t)1 << 30;

static void reserve(const char *folder) {
    char path[64];
    snprintf(path, sizeof path, "%s/reserved-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0) {
        tried("to create a file", strerror(errno));
        return;
    }
    unlink(path);
    if (fallocate(fd, 0, 0, GIGABYTE) == 0)
        got("a reserved gigabyte in", folder);
    else
        tried("to reserve a gigabyte", strerror(errno));
    close(fd);
}

int main(void) {
    /* In gVisor, the limit of a file's size ends the program, and otherwise the call fails. */
    signal(SIGXFSZ, SIG_IGN);
    reserve("/tmp");
    reserve("/var/tmp");
    reserve("");
    return 0;
}

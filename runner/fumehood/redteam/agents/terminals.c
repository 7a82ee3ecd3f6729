/* Floods pseudo-terminals, whose input threads of the kernel process. No limit of a box counts their time. The
   character Ctrl-R displays the current line again, so each byte of input costs the kernel the work of the
   line. Bounded. */

#include "try.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

enum { TERMINALS = 4, LINE_BYTES = 4000, FLOOD_S = 2, QUIET_MS = 50, FACTOR_MIN = 100 };

/* Returns how many bytes the kernel displayed for each Ctrl-R. */
static long flood(int own_end) {
    char line[LINE_BYTES], reprint[16], shown[1 << 16];
    long sent = 0, displayed = 0;
    memset(line, 'a', sizeof line);
    memset(reprint, CTRL('R'), sizeof reprint);
    fcntl(own_end, F_SETFL, O_NONBLOCK);
    if (write(own_end, line, sizeof line) < 0)
        return 0;
    struct pollfd more = {.fd = own_end, .events = POLLIN};
    for (time_t end = time(NULL) + FLOOD_S; time(NULL) < end;) {
        long size = write(own_end, reprint, sizeof reprint);
        sent += size > 0 ? size : 0;
        /* The kernel drops what is not read. */
        while (poll(&more, 1, QUIET_MS) > 0 && (size = read(own_end, shown, sizeof shown)) > 0)
            displayed += size;
    }
    return displayed / (sent ? sent : 1);
}

static void open_and_flood(const char *path) {
    int own_end = open(path, O_RDWR | O_NOCTTY);
    if (own_end < 0) {
        tried(path, strerror(errno));
        return;
    }
    got("a pseudo-terminal at", path);
    int unlocked = 0;
    if (ioctl(own_end, TIOCSPTLCK, &unlocked) || ioctl(own_end, TIOCGPTPEER, O_RDWR | O_NOCTTY) < 0) {
        tried("to open the other end", strerror(errno));
        return;
    }
    long factor = flood(own_end);
    char text[64];
    snprintf(text, sizeof text, "%ld bytes of work for each byte of input", factor);
    if (factor >= FACTOR_MIN)
        got("the kernel to do", text);
    else
        tried("to let the kernel work", text);
}

int main(void) {
    for (int i = 0; i < TERMINALS; i++)
        if (fork() == 0) {
            open_and_flood(i % 2 ? "/dev/pts/ptmx" : "/dev/ptmx");
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    return 0;
}

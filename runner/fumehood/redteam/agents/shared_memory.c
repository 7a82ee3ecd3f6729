/* Takes shared memory that belongs to no process and outlives all of them. Bounded. */

#include "try.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { PIECE = 16 << 20, PIECES = 24 };

static int segments(void) {
    int made = 0;
    for (; made < PIECES; made++) {
        int id = shmget(IPC_PRIVATE, PIECE, IPC_CREAT | 0600);
        char *place = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
        if (place == (char *)-1)
            break;
        memset(place, 1, PIECE);
        shmdt(place);
    }
    return made;
}

static int nameless_files(void) {
    int made = 0;
    char *filling = malloc(PIECE);
    memset(filling, 2, PIECE);
    for (; made < PIECES; made++) {
        int fd = memfd_create("piece", 0);
        int written = 0;
        while (fd >= 0 && written < PIECE) {
            long now = write(fd, filling, PIECE - written);
            if (now <= 0)
                break;
            written += now;
        }
        if (written < PIECE)
            break;
    }
    free(filling);
    return made;
}

static void judge(const char *kind, int made, long limit) {
    int exceeds = (long)made * PIECE > limit;
    dprintf(1, "%s memory without an owner: %d %s of %d MiB\n", exceeds ? "got" : "tried", made, kind, PIECE >> 20);
}

int main(int argc, char **argv) {
    long limit = atol(given(argc, argv, "memory", "268435456")) + (64 << 20);
    signal(SIGXFSZ, SIG_IGN);
    tried("memory without an owner", "begun");
    judge("segments", segments(), limit);
    judge("files without a name", nameless_files(), limit);
    mq_open("/queue", O_CREAT | O_RDWR, 0600, NULL);
    semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
    msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    sleep(2);
    return 0;
}

/* Takes shared memory that belongs to no process and outlives all of them. Bounded. */

#include "try.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { PIECE = 16 << 20, PIECES = 48 };

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

int main(void) {
    signal(SIGXFSZ, SIG_IGN);
    tried("memory without an owner", "begun");
    dprintf(1, "tried segments: %d of %d MiB\n", segments(), PIECE >> 20);
    dprintf(1, "tried files without a name: %d of %d MiB\n", nameless_files(), PIECE >> 20);
    mq_open("/queue", O_CREAT | O_RDWR, 0600, NULL);
    semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
    msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    sleep(2);
    return 0;
}

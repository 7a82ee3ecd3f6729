/* Forks until an error; each child stays and forks too. Without a limit, as in the control, these
   are 256 processes: more than the limit of a box, and few enough for the host. */

#include "try.h"

#include <sys/mman.h>

enum { GENERATIONS = 8, STAY_S = 2 };

int main(void) {
    int *born = mmap(NULL, sizeof *born, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    signal(SIGCHLD, SIG_IGN);
    tried("fork without end", "begun");
    pid_t first = getpid();
    for (int i = 0; i < GENERATIONS; i++)
        for (int again = 0; again < 10; again++) {
            pid_t child = fork();
            if (child == 0)
                __atomic_add_fetch(born, 1, __ATOMIC_SEQ_CST);
            if (child >= 0)
                break;
            usleep(1000);
        }
    sleep(STAY_S);
    if (getpid() == first)
        dprintf(1, "tried %d forks: that many children\n", *born);
    return 0;
}

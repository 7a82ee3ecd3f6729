/* Leaves zombies and running orphans. Bounded. */

#include "try.h"

enum { CHILDREN = 600 };

int main(void) {
    int dead = 0, orphans = 0;
    tried("dead children", "begun");
    for (; dead < CHILDREN; dead++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0)
            _exit(0);
    }
    for (; orphans < CHILDREN; orphans++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            setsid();
            if (fork() == 0)
                sleep(3);
            _exit(0);
        }
    }
    dprintf(1, "tried dead children: %d, orphans: %d\n", dead, orphans);
    sleep(2);
    return 0;
}

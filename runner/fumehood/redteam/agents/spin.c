/* Keeps every processor busy for a while, from many processes. */

#include "try.h"

#include <time.h>

enum { SPINNERS = 16, SPIN_S = 5 };

int main(void) {
    tried("every processor", "begun");
    for (int i = 1; i < SPINNERS; i++)
        if (fork() == 0)
            break;
    time_t end = time(NULL) + SPIN_S;
    for (volatile unsigned n = 0; time(NULL) < end; n++)
        ;
    while (wait(NULL) > 0)
        ;
    return 0;
}

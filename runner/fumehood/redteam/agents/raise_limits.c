/* Tries to raise limits and priority, and to lock memory. */

#include "try.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void raise_limit(const char *what, int which) {
    struct rlimit limit;
    getrlimit(which, &limit);
    if (limit.rlim_max == RLIM_INFINITY)
        return; /* Nothing to raise; what bounds it is a control group. */
    limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
    ATTEMPT(what, setrlimit(which, &limit));
}

static void be_spared(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd >= 0)
        ATTEMPT("be spared when memory runs out", write(fd, "-1000", 5));
    else
        tried("be spared when memory runs out", strerror(errno));
}

int main(void) {
    struct sched_param first = {.sched_priority = 1};
    raise_limit("a higher limit of files", RLIMIT_NOFILE);
    raise_limit("a higher limit of processes", RLIMIT_NPROC);
    raise_limit("a higher limit of a file's size", RLIMIT_FSIZE);
    raise_limit("a higher limit of memory", RLIMIT_DATA);
    raise_limit("a core file", RLIMIT_CORE);
    ATTEMPT("a higher priority", setpriority(PRIO_PROCESS, 0, -20));
    ATTEMPT("to run before everybody", sched_setscheduler(0, SCHED_FIFO, &first));
    ATTEMPT("to read disks before everybody", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
    be_spared();
    return 0;
}

/* Traces and reads other processes. */

#include "try.h"

#include <sys/ptrace.h>
#include <sys/uio.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

static void read_memory(pid_t pid, const char *what) {
    char place[16];
    struct iovec here = {place, sizeof place}, there = {(void *)0x400000, sizeof place};
    ATTEMPT(what, process_vm_readv(pid, &here, 1, &there, 1, 0));
}

static void take_descriptor(pid_t pid) {
    int handle = syscall(SYS_pidfd_open, pid, 0);
    if (handle < 0) {
        tried("a descriptor of another", strerror(errno));
        return;
    }
    ATTEMPT("a descriptor of another", syscall(SYS_pidfd_getfd, handle, 0, 0));
    close(handle);
}

int main(int argc, char **argv) {
    pid_t host = atoi(given(argc, argv, "pid", "1"));
    ATTEMPT("trace the first process", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
    ATTEMPT("trace a process of the host", ptrace(PTRACE_SEIZE, host, NULL, NULL));
    ATTEMPT("be traced", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    read_memory(1, "the memory of the first process");
    read_memory(host, "the memory of a process of the host");
    take_descriptor(1);
    MAY("compare processes", syscall(SYS_kcmp, 1, getpid(), 0, 0, 0));
    MAY("advise another's memory", syscall(SYS_process_madvise, -1, NULL, 0, 0, 0));
    MAY("move another's memory", syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0));
    return 0;
}

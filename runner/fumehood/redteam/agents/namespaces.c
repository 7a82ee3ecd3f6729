/* Creates namespaces in which it would be root, and enters those of other processes. */

#include "try.h"

#include <sched.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

struct clone_arguments {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

static void make(const char *what, int kind) {
    pid_t child = fork();
    if (child == 0) {
        ATTEMPT(what, unshare(kind));
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void start_inside(const char *what, uint64_t flags) {
    struct clone_arguments arguments = {.flags = flags, .exit_signal = SIGCHLD};
    errno = 0;
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0)
        _exit(0);
    report(what, child);
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void enter(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) {
        tried(path, strerror(errno));
        return;
    }
    ATTEMPT(path, setns(fd, 0));
    close(fd);
}

int main(void) {
    make("a user namespace", CLONE_NEWUSER);
    make("a mount namespace", CLONE_NEWNS);
    make("a network namespace", CLONE_NEWNET);
    make("a process namespace", CLONE_NEWPID);
    make("a new host name", CLONE_NEWUTS);
    make("a namespace of control groups", CLONE_NEWCGROUP);
    make("a new time namespace", CLONE_NEWTIME);
    start_inside("a child in a user namespace", CLONE_NEWUSER);
    start_inside("a child in every namespace", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET);
    enter("/proc/1/ns/mnt");
    enter("/proc/1/ns/pid");
    enter("/proc/1/ns/net");
    enter("/proc/1/ns/user");
    return 0;
}

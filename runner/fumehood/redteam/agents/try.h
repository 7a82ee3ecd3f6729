/* Shared by the agents in C: the report of attempts.

   EPERM, EACCES and ENOSYS-like errors mean that a call was refused. Any other error means that the call was
   permitted: most calls here have invalid arguments, so that they do no harm and fail with EINVAL. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int is_refusal(int error) {
    switch (error) {
    case EPERM: case EACCES: case ENOSYS: case ENOENT: case ENODEV: case ENXIO: case EROFS: case ESRCH:
    case EAFNOSUPPORT: case EPROTONOSUPPORT: case ESOCKTNOSUPPORT: case EOPNOTSUPP: case ENOSPC:
    case ENETUNREACH: case EHOSTUNREACH: case EAGAIN: case ENOMEM: case EMFILE: case ENOPROTOOPT:
        return 1;
    default:
        return 0;
    }
}

static inline void tried(const char *what, const char *answer) {
    dprintf(1, "tried %s: %s\n", what, answer);
}

static inline void got(const char *what, const char *prize) {
    dprintf(1, "got %s: %s\n", what, prize);
}

/* Says how a call went whose result is -1 when it fails, and returns that result. */
static inline long report(const char *what, long result) {
    if (result == -1 && is_refusal(errno))
        tried(what, strerror(errno));
    else
        got(what, result == -1 ? strerror(errno) : "allowed");
    return result;
}

/* Reports a call with invalid arguments: only a permission error is a refusal. */
static inline long report_permission(const char *what, long result) {
    if (result == -1 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
        tried(what, strerror(errno));
    else
        got(what, result == -1 ? strerror(errno) : "allowed");
    return result;
}

#define MAY(what, call) (errno = 0, report_permission(what, (long)(call)))
#define ATTEMPT(what, call) (errno = 0, report(what, (long)(call)))

static inline const char *given(int argc, char **argv, const char *key, const char *otherwise) {
    size_t length = strlen(key);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], key, length) && argv[i][length] == '=')
            return argv[i] + length + 1;
    return otherwise;
}

/* What the hostile agents in C share: how they say what they tried and got.

   A refusal is an error that says "you may not" or "there is no such thing here". Whatever else comes back,
   the caller was let through: most calls here are made such that nobody could carry them out, so that an
   agent that is allowed to makes no harm either and learns "invalid argument" instead. */

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

/* Says how a call went that nobody could carry out: only "you may not" is a refusal. */
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

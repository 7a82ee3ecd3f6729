/* Forwards a port on loopback to the seat, for clients that only take a base URL.
 *
 * The agent replaces this process, so that its exit status and signals are passed on. The forwarder is an
 * orphaned grandchild; it ends with the last process of the agent. */
#define _GNU_SOURCE
#include "helper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, BUFFER_BYTES = 1 << 16 };

/* Bytes in transit from one file descriptor to another. */
struct direction {
    int from, to;
    size_t start, end;
    int ended; /* `from` was closed, and `to` was shut down for writing */
    char buffer[BUFFER_BYTES];
};

struct pair {
    struct direction out, back;
};

static struct pair *pairs[CONNECTIONS_MAX];

static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0) return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, CONNECTIONS_MAX) == 0) {
        return listener;
    }
    int reason = errno;
    close(listener);
    errno = reason;
    return -1;
}

static void accept_client(int listener) {
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) return;
    for (int slot = 0; slot < CONNECTIONS_MAX; slot++) {
        if (pairs[slot]) continue;
        int seat = connect_to_seat();
        struct pair *pair = seat < 0 ? NULL : malloc(sizeof *pair);
        if (!pair) {
            if (seat >= 0) close(seat);
            break;
        }
        fcntl(client, F_SETFL, O_NONBLOCK);
        fcntl(seat, F_SETFL, O_NONBLOCK);
        pair->out = (struct direction){.from = client, .to = seat};
        pair->back = (struct direction){.from = seat, .to = client};
        pairs[slot] = pair;
        return;
    }
    close(client);
}

/* Transfers available bytes; returns -1 if the connection is broken. */
static int transfer(struct direction *direction) {
    if (!direction->ended && direction->start == direction->end) {
        ssize_t got = read(direction->from, direction->buffer, BUFFER_BYTES);
        if (got < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (got == 0) {
            direction->ended = 1;
            shutdown(direction->to, SHUT_WR);
            return 0;
        }
        direction->start = 0;
        direction->end = (size_t)got;
    }
    while (direction->start < direction->end) {
        ssize_t put = send(direction->to, direction->buffer + direction->start, direction->end - direction->start, MSG_NOSIGNAL);
        if (put < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
        direction->start += (size_t)put;
    }
    return 0;
}

static void watch(const struct direction *direction, struct pollfd *from, struct pollfd *to) {
    if (direction->start < direction->end) {
        to->events |= POLLOUT;
    } else if (!direction->ended) {
        from->events |= POLLIN;
    }
}

static void serve_pair(int slot, const struct pollfd *client, const struct pollfd *seat) {
    struct pair *pair = pairs[slot];
    int broken = 0;
    if ((client->revents & (POLLIN | POLLHUP)) | (seat->revents & POLLOUT)) broken |= transfer(&pair->out);
    if ((seat->revents & (POLLIN | POLLHUP)) | (client->revents & POLLOUT)) broken |= transfer(&pair->back);
    broken |= (client->revents | seat->revents) & (POLLERR | POLLNVAL);
    if (!broken && !(pair->out.ended && pair->back.ended)) return;
    close(pair->out.from);
    close(pair->out.to);
    free(pair);
    pairs[slot] = NULL;
}

static void forward(int listener, int agent) {
    struct pollfd all[2 + 2 * CONNECTIONS_MAX];
    for (;;) {
        all[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        all[1] = (struct pollfd){.fd = agent};
        for (int slot = 0; slot < CONNECTIONS_MAX; slot++) {
            struct pollfd *two = all + 2 + 2 * slot;
            struct pair *pair = pairs[slot];
            two[0] = (struct pollfd){.fd = pair ? pair->out.from : -1};
            two[1] = (struct pollfd){.fd = pair ? pair->out.to : -1};
            if (!pair) continue;
            watch(&pair->out, &two[0], &two[1]);
            watch(&pair->back, &two[1], &two[0]);
            /* poll would report the hang-up of an idle end again and again. */
            for (int end = 0; end < 2; end++) {
                if (!two[end].events) two[end].fd = -1;
            }
        }
        if (poll(all, 2 + 2 * CONNECTIONS_MAX, -1) < 0 && errno != EINTR) return;
        if (all[1].revents) return;
        for (int slot = 0; slot < CONNECTIONS_MAX; slot++) {
            if (pairs[slot]) serve_pair(slot, &all[2 + 2 * slot], &all[3 + 2 * slot]);
        }
        if (all[0].revents & POLLIN) accept_client(listener);
    }
}

/* Starts the forwarder as a grandchild, so that the agent need not wait for it. */
static int start_forwarder(int listener, int pipe_ends[2]) {
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        if (fork() == 0) {
            signal(SIGPIPE, SIG_IGN);
            close(pipe_ends[1]);
            forward(listener, pipe_ends[0]);
        }
        _exit(0);
    }
    return waitpid(child, NULL, 0) < 0 ? -1 : 0;
}

static void set_variables(int port) {
    char base[64];
    snprintf(base, sizeof base, "http://127.0.0.1:%d", port);
    setenv("ANTHROPIC_BASE_URL", base, 1);
    strcat(base, "/v1");
    setenv("OPENAI_BASE_URL", base, 1);
    setenv("OPENAI_API_BASE", base, 1);
    /* Clients refuse to start without a key. The gateway outside the box adds the real one. */
    setenv("OPENAI_API_KEY", "none", 0);
    setenv("ANTHROPIC_API_KEY", "none", 0);
}

int run_behind_port(int port, char **command) {
    int pipe_ends[2];
    int listener = listen_on(port);
    if (listener < 0 || pipe(pipe_ends) < 0 || start_forwarder(listener, pipe_ends) < 0) {
        fprintf(stderr, "fumehood: 127.0.0.1:%d: %s\n", port, strerror(errno));
        return NOT_REACHABLE;
    }
    /* The write end stays open in the agent and its children; the forwarder ends when all have closed it. */
    close(pipe_ends[0]);
    close(listener);
    set_variables(port);
    execvp(command[0], command);
    fprintf(stderr, "fumehood: %s: %s\n", command[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

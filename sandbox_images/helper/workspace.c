/* `workspace`: executes commands and reads and writes files in a workspace, over a socket of the service.
 *
 * A message is its length in four bytes, big-endian, then one byte and fields. A field is its length in four
 * bytes, then its bytes. The first byte of a request is the operation, that of a reply `=` (done) or `!` (error).
 */
#define _GNU_SOURCE
#include "helper.h"
#include "scan.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS_MAX = 4, SESSIONS_MAX = 8, NAME_BYTES = 33, REQUEST_BYTES_MAX = 16 << 20, OUTPUT_BYTES = 64 << 10 };

/* The shell reports the status of each command at descriptor 8 and reads the next one at descriptor 9. */
static const char LOOP[] = "while printf '%d ' \"$?\" >&8; read -r -d '' -u 9; do "
                           "eval \"$REPLY\" </dev/null 8>&- 9<&-; done";

struct output {
    char head[OUTPUT_BYTES / 2], tail[OUTPUT_BYTES / 2];
    size_t total; /* bytes written so far; the tail is a ring */
};

struct session {
    char name[NAME_BYTES]; /* empty if there is none */
    pid_t shell;
    int commands, printed, status;
    struct output output;
};

struct field {
    char *bytes;
    size_t size;
};

static struct session sessions[SESSIONS_MAX];
static struct text reply;
/* While this file exists, the episode has ended, and the workspace stays for tests that run inside it. */
static char ended_path[sizeof((struct sockaddr_un *)0)->sun_path + 8];

static int has_ended(void) {
    return access(ended_path, F_OK) == 0;
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void begin(char kind) {
    reply.used = 4;
    add_bytes(&reply, &kind, 1);
}

static void add_field(const void *bytes, size_t size) {
    uint32_t length = htonl((uint32_t)size);
    add_bytes(&reply, &length, sizeof length);
    add_bytes(&reply, bytes, size);
}

static void add_number(long long number) {
    char text[24];
    add_field(text, (size_t)snprintf(text, sizeof text, "%lld", number));
}

static void fail(const char *reason) {
    begin('!');
    add_field(reason, strlen(reason));
}

static void keep(struct output *output, const char *bytes, size_t size) {
    for (size_t at = 0; at < size; at++, output->total++) {
        if (output->total < sizeof output->head) output->head[output->total] = bytes[at];
        else output->tail[(output->total - sizeof output->head) % sizeof output->tail] = bytes[at];
    }
}

/* Adds two fields: the kept output, and how many bytes between its two halves were dropped. */
static void add_output(struct output *output) {
    size_t head = output->total < sizeof output->head ? output->total : sizeof output->head;
    size_t rest = output->total - head, kept = rest < sizeof output->tail ? rest : sizeof output->tail;
    size_t first = (rest - kept) % sizeof output->tail, end = sizeof output->tail - first;
    uint32_t length = htonl((uint32_t)(head + kept));
    add_bytes(&reply, &length, sizeof length);
    add_bytes(&reply, output->head, head);
    add_bytes(&reply, output->tail + first, kept < end ? kept : end);
    if (kept > end) add_bytes(&reply, output->tail, kept - end);
    add_number((long long)(rest - kept));
    output->total = 0;
}

/* Reads what a session has printed; returns 0 at the end of its output. */
static int drain(struct session *session) {
    char bytes[16384];
    ssize_t got;
    while ((got = read(session->printed, bytes, sizeof bytes)) > 0) keep(&session->output, bytes, (size_t)got);
    return got < 0;
}

static void close_pipes(struct session *session) {
    close(session->commands);
    close(session->printed);
    close(session->status);
    session->name[0] = 0;
}

/* Kills the processes of a session, except those that left its process group. */
static int end_session(struct session *session, int is_killed) {
    int status = 0;
    if (is_killed) kill(-session->shell, SIGKILL);
    waitpid(session->shell, &status, 0);
    drain(session);
    close_pipes(session);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void run_shell(int commands, int printed, int status) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    /* The numbers of the pipes are above 9, so that no dup2 overwrites one of them. */
    dup2(nothing, 0);
    dup2(printed, 1);
    dup2(printed, 2);
    dup2(status, 8);
    dup2(commands, 9);
    execlp("bash", "bash", "-c", LOOP, (char *)NULL);
    _exit(127);
}

static int high_pipe(int ends[2]) {
    int low[2];
    if (pipe(low) < 0) return -1;
    for (int end = 0; end < 2; end++) {
        ends[end] = fcntl(low[end], F_DUPFD_CLOEXEC, 20);
        close(low[end]);
    }
    return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static int open_session(struct session *session, const char *name) {
    int commands[2], printed[2], status[2];
    if (high_pipe(commands) < 0 || high_pipe(printed) < 0 || high_pipe(status) < 0) return -1;
    session->shell = fork();
    if (session->shell == 0) run_shell(commands[0], printed[1], status[1]);
    close(commands[0]);
    close(printed[1]);
    close(status[1]);
    session->commands = commands[1];
    session->printed = printed[0];
    session->status = status[0];
    session->output.total = 0;
    fcntl(session->printed, F_SETFL, O_NONBLOCK);
    /* The shell says that it is ready; it does not if the image has no bash. */
    char ready[4];
    if (session->shell < 0 || read(session->status, ready, 2) != 2) {
        close_pipes(session);
        return -1;
    }
    snprintf(session->name, NAME_BYTES, "%s", name);
    return 0;
}

static struct session *session_of(const char *name) {
    for (int at = 0; at < SESSIONS_MAX; at++)
        if (!strcmp(sessions[at].name, name)) return &sessions[at];
    for (int at = 0; at < SESSIONS_MAX; at++)
        if (!sessions[at].name[0]) return open_session(&sessions[at], name) < 0 ? NULL : &sessions[at];
    errno = EMFILE;
    return NULL;
}

/* Waits for the status of a command; returns 0, -1 if the shell ended, or -2 if it must end. */
static int wait_for_status(struct session *session, long long deadline_ms, int *status) {
    char text[16];
    size_t used = 0;
    for (;;) {
        long long left_ms = deadline_ms - now_ms();
        if (left_ms < 0 || has_ended()) return -2;
        struct pollfd ready[2] = {{session->printed, POLLIN, 0}, {session->status, POLLIN, 0}};
        if (poll(ready, 2, left_ms > 1000 ? 1000 : (int)left_ms + 1) < 0 && errno != EINTR) return -1;
        if (ready[0].revents && !drain(session)) ready[0].fd = -1;
        if (!ready[1].revents) continue;
        ssize_t got = read(session->status, text + used, sizeof text - 1 - used);
        if (got <= 0) return -1;
        used += (size_t)got;
        text[used] = 0;
        if (text[used - 1] == ' ' || used == sizeof text - 1) break;
    }
    *status = atoi(text);
    drain(session);
    return 0;
}

/* Fields: session, command, timeout in milliseconds. Replies with how it ended, its status and its output. */
static void execute(struct field *fields) {
    struct session *session = session_of(fields[0].bytes);
    if (!session) {
        fail(errno == EMFILE ? "too many sessions" : "the shell does not start: the image needs bash");
        return;
    }
    long long deadline_ms = now_ms() + atoll(fields[2].bytes);
    int status = 0, ended = -1;
    const char *how = "exited";
    if (write_all(session->commands, fields[1].bytes, fields[1].size + 1) == 0)
        ended = wait_for_status(session, deadline_ms, &status);
    if (ended < 0) {
        how = ended == -2 ? "timed_out" : "ended";
        status = end_session(session, ended == -2);
    }
    begin('=');
    add_field(how, strlen(how));
    add_number(status);
    add_output(&session->output);
}

static int open_regular(const char *path, int flags, struct stat *facts) {
    int file = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    if (file < 0) return -1;
    if (fstat(file, facts) < 0 || !S_ISREG(facts->st_mode)) {
        errno = S_ISDIR(facts->st_mode) ? EISDIR : EINVAL;
        close(file);
        return -1;
    }
    return file;
}

/* Fields: path, offset, size. Replies with the bytes and the size of the file. */
static void read_part(struct field *fields) {
    struct stat facts = {0};
    int file = open_regular(fields[0].bytes, O_RDONLY, &facts);
    size_t wanted = (size_t)atoll(fields[2].bytes);
    char *bytes = file < 0 || wanted > REQUEST_BYTES_MAX ? NULL : malloc(wanted + 1);
    ssize_t got = bytes ? pread(file, bytes, wanted, atoll(fields[1].bytes)) : -1;
    if (got < 0) fail(strerror(errno));
    else {
        begin('=');
        add_field(bytes, (size_t)got);
        add_number(facts.st_size);
    }
    free(bytes);
    if (file >= 0) close(file);
}

static void make_parents(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
}

/* Fields: path, content, mode in octal or nothing. */
static void write_file(struct field *fields) {
    struct stat facts = {0};
    make_parents(fields[0].bytes);
    int file = open_regular(fields[0].bytes, O_WRONLY | O_CREAT, &facts);
    int failed = file < 0 || ftruncate(file, 0) < 0 || write_all(file, fields[1].bytes, fields[1].size) < 0 ||
                 (fields[2].size && fchmod(file, (mode_t)strtol(fields[2].bytes, NULL, 8)) < 0);
    if (failed) fail(strerror(errno));
    else begin('=');
    if (file >= 0) close(file);
}

/* Field: path. Replies with a kind and a name for each entry, each followed by a zero byte. */
static void list_folder(struct field *fields) {
    DIR *folder = opendir(fields[0].bytes);
    if (!folder) {
        fail(strerror(errno));
        return;
    }
    struct text names = {0};
    for (struct dirent *entry; names.used < 1 << 20 && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        add_bytes(&names, entry->d_type == DT_DIR ? "d" : entry->d_type == DT_LNK ? "l" : "f", 1);
        add_bytes(&names, entry->d_name, strlen(entry->d_name) + 1);
    }
    closedir(folder);
    begin('=');
    add_field(names.bytes, names.used);
    free(names.bytes);
}

/* Splits a request into fields, each followed by a zero byte; returns their number, or -1. */
static int split(char *bytes, size_t size, struct field *fields) {
    int count = 0;
    for (size_t at = 1; at < size; count++) {
        uint32_t length;
        if (count == FIELDS_MAX || size - at < sizeof length) return -1;
        memcpy(&length, bytes + at, sizeof length);
        length = ntohl(length);
        at += sizeof length;
        if (size - at < length) return -1;
        fields[count].bytes = malloc(length + 1);
        if (!fields[count].bytes) return -1;
        memcpy(fields[count].bytes, bytes + at, length);
        fields[count].bytes[length] = 0;
        fields[count].size = length;
        at += length;
    }
    return count;
}

static void answer(char *bytes, size_t size, struct scan *scan) {
    struct field fields[FIELDS_MAX] = {0};
    int count = split(bytes, size, fields);
    int is_read = bytes[0] == 'r' || bytes[0] == 'l';
    if (bytes[0] == 'x' && count == 3) execute(fields);
    else if (bytes[0] == 'r' && count == 3) read_part(fields);
    else if (bytes[0] == 'w' && count == 3) write_file(fields);
    else if (bytes[0] == 'l' && count == 1) list_folder(fields);
    else fail("not a request");
    if (!is_read) {
        uint32_t length = 0;
        size_t at = reply.used;
        add_bytes(&reply, &length, sizeof length);
        add_changes(scan, &reply);
        length = htonl((uint32_t)(reply.used - at - sizeof length));
        memcpy(reply.bytes + at, &length, sizeof length);
    }
    for (int at = 0; at < FIELDS_MAX; at++) free(fields[at].bytes);
}

/* Waits for a request; meanwhile reads what background processes print, so that none of them waits. */
static void wait_for_request(int service) {
    struct pollfd ready[SESSIONS_MAX + 1] = {{service, POLLIN, 0}};
    do {
        for (int at = 0; at < SESSIONS_MAX; at++) {
            if (ready[at + 1].revents && !drain(&sessions[at])) end_session(&sessions[at], 1);
            ready[at + 1] = (struct pollfd){sessions[at].name[0] ? sessions[at].printed : -1, POLLIN, 0};
        }
    } while (poll(ready, SESSIONS_MAX + 1, -1) < 0 || !ready[0].revents);
}

static int read_exactly(int file, char *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t got = read(file, bytes + at, size - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        at += (size_t)got;
    }
    return 0;
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int low = socket(AF_UNIX, SOCK_STREAM, 0), service;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (low < 0 || connect(low, (struct sockaddr *)&address, sizeof address) < 0) return -1;
    service = fcntl(low, F_DUPFD_CLOEXEC, 20);
    close(low);
    return service;
}

int serve_workspace(const char *socket_path, char **watched) {
    signal(SIGPIPE, SIG_IGN);
    snprintf(ended_path, sizeof ended_path, "%s.ended", socket_path);
    struct scan *scan = begin_scan(watched);
    int service = connect_to(socket_path);
    if (service < 0 || !scan) {
        perror(socket_path);
        return NOT_REACHABLE;
    }
    for (;;) {
        uint32_t length;
        wait_for_request(service);
        if (read_exactly(service, (char *)&length, sizeof length) < 0) {
            /* It still reads what programs print, so that none of them waits. */
            if (has_ended()) wait_for_request(-1);
            return DONE;
        }
        length = ntohl(length);
        char *bytes = length && length <= REQUEST_BYTES_MAX ? malloc(length) : NULL;
        if (!bytes || read_exactly(service, bytes, length) < 0) return REFUSED;
        answer(bytes, length, scan);
        free(bytes);
        length = htonl((uint32_t)reply.used - 4);
        memcpy(reply.bytes, &length, sizeof length);
        if (write_all(service, reply.bytes, reply.used) < 0) return DONE;
    }
}

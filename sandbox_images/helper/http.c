/* One request to the seat and its answer. HTTP/1.0: the answer ends with the connection. */
#include "helper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char NAME[] = "http.sock";

const char *socket_path(void) {
    static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    const char *beside = getenv("FUMEHOOD_SOCKET");
    const char *end = beside ? strrchr(beside, '/') : NULL;
    int folder = end ? (int)(end - beside) : (int)strlen("/fumehood");
    int written = snprintf(path, sizeof path, "%.*s/%s", folder, end ? beside : "/fumehood", NAME);
    return written < (int)sizeof path ? path : "";
}

int connect_to_seat(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int seat = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (seat < 0) return -1;
    strncpy(address.sun_path, socket_path(), sizeof address.sun_path - 1);
    if (connect(seat, (struct sockaddr *)&address, sizeof address) == 0) return seat;
    int reason = errno;
    close(seat);
    errno = reason;
    return -1;
}

int write_all(int file, const char *text, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(file, text, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -1;
        text += written;
        bytes -= (size_t)written;
    }
    return 0;
}

char *read_all(int file, size_t *bytes) {
    size_t capacity = 1 << 16, used = 0;
    char *text = malloc(capacity);
    while (text) {
        if (used + 1 >= capacity) {
            char *larger = realloc(text, capacity *= 2);
            if (!larger) break;
            text = larger;
        }
        ssize_t got = read(file, text + used, capacity - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        if (got == 0) {
            text[used] = 0;
            *bytes = used;
            return text;
        }
        used += (size_t)got;
    }
    free(text);
    return NULL;
}

/* Copies the value of a header from the zero-terminated head into `value`. */
static void read_header(const char *head, const char *name, char *value, size_t capacity) {
    size_t length = strlen(name);
    value[0] = 0;
    for (const char *line = strstr(head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
        const char *start = line + 3 + length + strspn(line + 3 + length, " ");
        size_t bytes = strcspn(start, "\r\n");
        if (bytes >= capacity) return;
        memcpy(value, start, bytes);
        value[bytes] = 0;
        return;
    }
}

static int parse_answer(char *text, size_t bytes, struct answer *answer) {
    char *end = strstr(text, "\r\n\r\n");
    if (!end || sscanf(text, "HTTP/1.%*d %d", &answer->status) != 1) {
        errno = EPROTO;
        return -1;
    }
    end[2] = 0;
    read_header(text, "mcp-session-id", answer->session, sizeof answer->session);
    char ended[8];
    read_header(text, "fumehood-ended", ended, sizeof ended);
    answer->ended = !strcmp(ended, "true");
    answer->body_bytes = bytes - (size_t)(end + 4 - text);
    answer->body = malloc(answer->body_bytes + 1);
    if (!answer->body) return -1;
    memcpy(answer->body, end + 4, answer->body_bytes + 1);
    return 0;
}

int exchange(const char *method, const char *path, const char *headers, const char *body, size_t body_bytes,
             struct answer *answer) {
    char head[4096];
    int seat = connect_to_seat();
    if (seat < 0) return -1;
    int length = snprintf(head, sizeof head, "%s %s HTTP/1.0\r\nhost: box\r\ncontent-length: %zu\r\n%s\r\n",
                          method, path, body_bytes, headers);
    char *text = NULL;
    size_t bytes = 0;
    if (length >= (int)sizeof head) {
        errno = EMSGSIZE;
    } else if (write_all(seat, head, (size_t)length) == 0) {
        /* A server that rejects the body early has sent an answer too, so errors are ignored. */
        write_all(seat, body, body_bytes);
        text = read_all(seat, &bytes);
    }
    int reason = errno;
    close(seat);
    int result = text ? parse_answer(text, bytes, answer) : -1;
    if (!text) errno = reason;
    free(text);
    return result;
}

/* The in-box command: declarations shared by its files. It is linked statically and has no dependencies. */
#ifndef HELPER_H
#define HELPER_H

#include <stddef.h>

/* Exit statuses. `run` exits with the status of the agent. */
enum { DONE = 0, TOOL_FAILED = 1, REFUSED = 2, NOT_REACHABLE = 3, USAGE = 64 };

struct answer {
    int status;          /* HTTP status */
    char session[128];   /* header mcp-session-id; empty if there is none */
    int ended;           /* whether the episode has ended */
    char *body;          /* body_bytes long, zero-terminated; the caller frees it */
    size_t body_bytes;
};

/* Path of the seat's HTTP socket: in the folder of FUMEHOOD_SOCKET, otherwise /fumehood/http.sock. */
const char *socket_path(void);

/* Connects to the seat; returns -1 and sets errno on failure. */
int connect_to_seat(void);

/* Sends a request and reads the answer; returns 0, or -1 and sets errno. `headers` are complete lines. */
int exchange(const char *method, const char *path, const char *headers, const char *body, size_t body_bytes,
             struct answer *answer);

/* Writes all bytes, or returns -1. */
int write_all(int file, const char *text, size_t bytes);

/* Reads a file to its end; the caller frees the result. NULL and errno on failure. */
char *read_all(int file, size_t *bytes);

/* A value in a JSON text; `start` is NULL if there is none. A string includes its quotation marks. */
struct json {
    const char *start, *end;
};

/* The value with which a text begins. */
struct json json_of(const char *text, size_t bytes);

/* The member of an object; keys must be written without escapes. */
struct json json_member(struct json object, const char *name);

/* The element of an array after the element `before`, or the first one if that is empty. */
struct json json_element(struct json array, struct json before);

/* Whether a value is the string `text`, written without escapes. */
int json_is(struct json value, const char *text);

/* `run`: forwards 127.0.0.1:port to the seat while `command` runs. Returns only on failure. */
int run_behind_port(int port, char **command);

/* `mcp`: forwards JSON-RPC messages, one per line, between standard input and output and the seat. */
int speak_mcp(void);

/* `acp`: plays the episode with an ACP agent, the program `command`, and returns only on failure. `model` is NULL for the
 * first one of the list; `answers`, to questions for permissions, is "allow" or "reject". */
int drive_acp_agent(const char *model, const char *answers, char **command);

/* `workspace`: answers requests at the socket until the service closes it; reports changes below `watched`. */
int serve_workspace(const char *socket_path, char **watched);

#endif

/* The in-box helper: what its files know of each other. It links with nothing and needs nothing at run time. */
#ifndef HELPER_H
#define HELPER_H

#include <stddef.h>

/* Exit statuses. An agent's own status is passed on untouched by `run`. */
enum { DONE = 0, TOOL_SAID_NO = 1, REFUSED = 2, NOT_REACHABLE = 3, USAGE = 64 };

struct answer {
    int status;          /* of HTTP */
    char session[128];   /* the header mcp-session-id; empty when there is none */
    int ended;           /* whether it says that no further call will be carried out */
    char *body;          /* to be freed; body_bytes long, and a zero after that */
    size_t body_bytes;
};

/* Where the seat's HTTP socket is: beside FUMEHOOD_SOCKET, else /fumehood/http.sock. */
const char *socket_path(void);

/* Connects to the seat; -1 and errno when nobody answers. */
int connect_to_seat(void);

/* Sends one request and reads its whole answer; 0, or -1 and errno. `headers` are whole lines. */
int exchange(const char *method, const char *path, const char *headers, const char *body, size_t body_bytes,
             struct answer *answer);

/* Writes everything, or returns -1. */
int write_all(int file, const char *text, size_t bytes);

/* Reads a file to its end into memory that is to be freed; NULL and errno. */
char *read_all(int file, size_t *bytes);

/* `run`: forwards 127.0.0.1:port to the seat while `command` runs. Returns only when that is impossible. */
int run_behind_port(int port, char **command);

/* `mcp`: JSON-RPC, a message a line, between standard input and output and the seat's MCP server. */
int speak_mcp(void);

#endif

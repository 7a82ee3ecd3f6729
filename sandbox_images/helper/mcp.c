/* MCP's stdio transport: posts each line of standard input to the seat and prints each answer as a line. */
#define _GNU_SOURCE
#include "helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An answer is one JSON text; a line break would end the message early. */
static int print_line(char *body, size_t bytes) {
    for (size_t at = 0; at < bytes; at++) {
        if (body[at] == '\n' || body[at] == '\r') body[at] = ' ';
    }
    return write_all(STDOUT_FILENO, body, bytes) == 0 && write_all(STDOUT_FILENO, "\n", 1) == 0 ? 0 : -1;
}

int speak_mcp(void) {
    char session[128] = "", headers[512];
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    while ((bytes = getline(&line, &capacity, stdin)) > 0) {
        if (strspn(line, " \r\n\t") == (size_t)bytes) continue;
        struct answer answer = {0};
        snprintf(headers, sizeof headers, session[0] ? "mcp-session-id: %s\r\n" : "%s", session);
        if (exchange("POST", "/mcp/line", headers, line, (size_t)bytes, &answer) < 0) {
            perror(socket_path());
            return NOT_REACHABLE;
        }
        if (answer.session[0]) memcpy(session, answer.session, sizeof session);
        int printed = answer.body_bytes > 0 ? print_line(answer.body, answer.body_bytes) : 0;
        free(answer.body);
        if (printed < 0) break;
    }
    free(line);
    return DONE;
}

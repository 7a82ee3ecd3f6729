/* The command `fumehood` inside a box: tools for shell agents, and a port or a pipe for other clients. */
#include "helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "fumehood task                       print the task\n"
    "fumehood tools                      print the tools, as JSON\n"
    "fumehood left                       print the remaining budget, as JSON\n"
    "fumehood call [--id ID] NAME [JSON | -]\n"
    "                                    call a tool; - reads its arguments from standard input;\n"
    "                                    a repeated ID runs the call only once\n"
    "fumehood submit [--confidence C] [TEXT | -]\n"
    "                                    end the episode with an answer; C is the probability, 0 to 1,\n"
    "                                    that the task is done correctly\n"
    "fumehood give-up [--confidence C] [TEXT | -]\n"
    "                                    end the episode without an answer\n"
    "fumehood report PROBLEM             record a problem with your model, such as turn_limit\n"
    "fumehood stop PROBLEM               end the episode because of a problem with your model\n"
    "fumehood run --port N -- COMMAND    run COMMAND with models and tools at 127.0.0.1:N\n"
    "fumehood mcp                        MCP server on standard input and output\n"
    "fumehood acp [--model NAME] [--permissions allow | reject] -- COMMAND\n"
    "                                    play the episode with COMMAND, an agent that speaks ACP\n"
    "fumehood workspace SOCKET FOLDER... execute commands of the service in a workspace\n"
    "\n"
    "Exit status: 0 success; 1 the tool failed (its answer is printed); 2 the service rejected the request\n"
    "(also printed); 3 the service does not answer; 64 wrong usage. `run` exits with the status of COMMAND.\n";

static int ask(const char *method, const char *path, const char *headers, const char *body,
               size_t body_bytes) {
    struct answer answer = {0};
    if (exchange(method, path, headers, body, body_bytes, &answer) < 0) {
        perror(socket_path());
        return NOT_REACHABLE;
    }
    int written = write_all(STDOUT_FILENO, answer.body, answer.body_bytes);
    if (written == 0) written = write_all(STDOUT_FILENO, "\n", 1);
    int status = answer.status;
    free(answer.body);
    if (written < 0) return NOT_REACHABLE;
    if (answer.ended) fputs("fumehood: the episode has ended\n", stderr);
    return status == 200 ? DONE : status == 422 ? TOOL_FAILED : REFUSED;
}

/* Posts an argument of the command line, or standard input if it is "-". */
static int post(const char *path, const char *headers, const char *word) {
    if (strcmp(word, "-") != 0) return ask("POST", path, headers, word, strlen(word));
    size_t bytes = 0;
    char *text = read_all(STDIN_FILENO, &bytes);
    if (!text) {
        perror("standard input");
        return USAGE;
    }
    int status = ask("POST", path, headers, text, bytes);
    free(text);
    return status;
}

static int call(const char *tool, const char *arguments, const char *id) {
    static const char HEX[] = "0123456789ABCDEF";
    char path[3600] = "/call/", named[128] = "";
    size_t at = strlen(path);
    for (const unsigned char *byte = (const unsigned char *)tool; *byte && at + 4 < sizeof path; byte++) {
        path[at++] = '%';
        path[at++] = HEX[*byte >> 4];
        path[at++] = HEX[*byte & 15];
    }
    path[at] = 0;
    /* A line break would start another header. */
    if (strpbrk(id, "\r\n")) return -1;
    if (*id && snprintf(named, sizeof named, "fumehood-call-id: %s\r\n", id) >= (int)sizeof named) return -1;
    return post(path, named, arguments);
}

static int call_with_arguments(int count, char **words) {
    const char *id = "";
    if (count > 0 && !strcmp(words[0], "--id")) {
        id = count > 1 ? words[1] : "";
        words += 2;
        count -= 2;
    }
    return count == 1 || count == 2 ? call(words[0], count == 2 ? words[1] : "", id) : -1;
}

static int end_work(const char *path, int count, char **words) {
    char stated[128] = "";
    if (count > 1 && !strcmp(words[0], "--confidence")) {
        if (strpbrk(words[1], "\r\n")) return -1;
        if (snprintf(stated, sizeof stated, "fumehood-confidence: %s\r\n", words[1]) >= (int)sizeof stated)
            return -1;
        words += 2;
        count -= 2;
    }
    return count <= 1 ? post(path, stated, count ? words[0] : "") : -1;
}

static int run(int count, char **words) {
    if (count < 4 || strcmp(words[0], "--port") != 0 || strcmp(words[2], "--") != 0) return -1;
    char *end;
    long port = strtol(words[1], &end, 10);
    if (*end || port < 1 || port > 65535) return -1;
    return run_behind_port((int)port, words + 3);
}

static int drive(int count, char **words) {
    const char *answers = "allow", *model = NULL;
    for (; count > 1 && strcmp(words[0], "--"); words += 2, count -= 2) {
        const char **option = !strcmp(words[0], "--model") ? &model : !strcmp(words[0], "--permissions") ? &answers : NULL;
        if (!option) return -1;
        *option = words[1];
    }
    if (strcmp(answers, "allow") && strcmp(answers, "reject")) return -1;
    return count > 1 && !strcmp(words[0], "--") ? drive_acp_agent(model, answers, words + 1) : -1;
}

int main(int count, char **words) {
    const char *command = count > 1 ? words[1] : "", *second = count > 2 ? words[2] : "";
    int status = -1;
    if (!strcmp(command, "task") && count == 2) status = ask("GET", "/task", "", "", 0);
    if (!strcmp(command, "tools") && count == 2) status = ask("GET", "/tools", "", "", 0);
    if (!strcmp(command, "left") && count == 2) status = ask("GET", "/left", "", "", 0);
    if (!strcmp(command, "call")) status = call_with_arguments(count - 2, words + 2);
    if (!strcmp(command, "submit")) status = end_work("/submit", count - 2, words + 2);
    if (!strcmp(command, "give-up")) status = end_work("/give_up", count - 2, words + 2);
    if (!strcmp(command, "report") && count == 3) status = post("/report", "", second);
    if (!strcmp(command, "stop") && count == 3) status = post("/stop", "", second);
    if (!strcmp(command, "mcp") && count == 2) status = speak_mcp();
    if (!strcmp(command, "acp")) status = drive(count - 2, words + 2);
    if (!strcmp(command, "workspace") && count > 2) status = serve_workspace(second, words + 3);
    if (!strcmp(command, "run")) status = run(count - 2, words + 2);
    if (!strcmp(command, "--help")) status = fputs(HELP, stdout) < 0;
    if (status >= 0) return status;
    fputs(HELP, stderr);
    return USAGE;
}

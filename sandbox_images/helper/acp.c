/* The client of an agent that speaks the Agent Client Protocol 1: it sends the task, answers questions, and submits the
 * last message. JSON strings are copied with their escapes, so none is decoded.
 * Source: https://agentclientprotocol.com/protocol/overview */
#define _GNU_SOURCE
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LENGTH(value) (int)((value).end - (value).start), (value).start
#define FOLDER "\"/tmp\""

/* Time for the agent to end by itself, less than the runner gives a box after the end of an episode. */
enum { GRACE_S = 1, STEP_MS = 10 };

static pid_t agent;
static FILE *to_agent, *from_agent;
static const char *policy;
static char *line; /* the last message of the agent */
static size_t line_capacity;
static int requests;
static char *session; /* ID as a JSON string */
static int is_cancelled;

/* What the agent said since its last tool call: the content of a JSON string. */
static char *said;
static size_t said_bytes, said_capacity;

static void kill_agent(void) {
    if (agent > 0) kill(-agent, SIGKILL);
}

static void end_late(int signal) {
    (void)signal;
    kill_agent();
    _exit(DONE);
}

/* Closes the agent's input, waits for its end, and ends this program. */
static _Noreturn void end(int status) {
    if (to_agent) fclose(to_agent);
    for (int waited_ms = 0; agent > 0 && waited_ms < GRACE_S * 1000; waited_ms += STEP_MS) {
        if (waitpid(agent, NULL, WNOHANG) != 0) break;
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    kill_agent();
    exit(status);
}

/* Returns whether the work of the seat has ended, and sets the number of the user's message. */
static int has_ended(long *turn) {
    struct answer answer = {0};
    if (exchange("GET", "/left", "", "", 0, &answer) < 0) return 1;
    struct json number = json_member(json_of(answer.body, answer.body_bytes), "turn");
    if (number.start) *turn = strtol(number.start, NULL, 10);
    free(answer.body);
    return answer.ended;
}

/* Ends because of the agent. That is no failure if the work has ended before. */
__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...) {
    long turn;
    va_list values;
    va_start(values, format);
    fputs("fumehood: the ACP agent: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    end(has_ended(&turn) ? DONE : TOOL_FAILED);
}

/* The agent has closed its output: ends with its exit status. */
static _Noreturn void end_with_agent(const char *method) {
    int status = 0;
    long turn;
    fclose(to_agent);
    to_agent = NULL;
    for (int waited_ms = 0; waited_ms < GRACE_S * 1000; waited_ms += STEP_MS) {
        if (waitpid(agent, &status, WNOHANG) == agent) {
            agent = 0;
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    if (has_ended(&turn)) end(DONE);
    if (agent) fail("it closed its output before it answered %s", method);
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    fprintf(stderr, "fumehood: the ACP agent ended with status %d before it answered %s\n", code, method);
    end(code ? code : TOOL_FAILED);
}

/* Asks the service and returns its answer; the caller frees the body. */
static struct answer ask_service(const char *path, const char *body, size_t bytes) {
    struct answer answer = {0};
    if (exchange("POST", path, "", body, bytes, &answer) < 0) {
        perror(socket_path());
        end(NOT_REACHABLE);
    }
    return answer;
}

/* Like ask_service, with a body that is formatted. */
__attribute__((format(printf, 2, 3))) static struct answer post(const char *path, const char *format, ...) {
    char *body;
    va_list values;
    va_start(values, format);
    int bytes = vasprintf(&body, format, values);
    va_end(values);
    if (bytes < 0) end(NOT_REACHABLE);
    struct answer answer = ask_service(path, body, (size_t)bytes);
    free(body);
    return answer;
}

__attribute__((format(printf, 1, 2))) static void send_to_agent(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("{\"jsonrpc\":\"2.0\",", to_agent);
    vfprintf(to_agent, format, values);
    fputs("}\n", to_agent);
    fflush(to_agent);
    va_end(values);
}

static struct json option_of_kind(struct json options, const char *kind) {
    for (struct json option = json_element(options, (struct json){0}); option.start; option = json_element(options, option)) {
        if (json_is(json_member(option, "kind"), kind)) return json_member(option, "optionId");
    }
    return (struct json){0};
}

/* Answers a permission question by the policy, and records it. Once is preferred, so that each use is asked for. */
static void answer_question(struct json id, struct json params) {
    struct json options = json_member(params, "options"), chosen = {0};
    struct json title = json_member(json_member(params, "toolCall"), "title");
    char kind[16] = "cancelled";
    for (int always = 0; !is_cancelled && !chosen.start && always < 2; always++) {
        char wanted[16];
        snprintf(wanted, sizeof wanted, "%s_%s", policy, always ? "always" : "once");
        chosen = option_of_kind(options, wanted);
        if (chosen.start) memcpy(kind, wanted, sizeof kind);
    }
    if (!title.start || *title.start != '"') title = json_of("\"\"", 2);
    struct answer recorded = post("/permission", "{\"title\":%.*s,\"answer\":\"%s\"}", LENGTH(title), kind);
    free(recorded.body);
    if (chosen.start) {
        send_to_agent("\"id\":%.*s,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":%.*s}}", LENGTH(id), LENGTH(chosen));
    } else {
        send_to_agent("\"id\":%.*s,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}", LENGTH(id));
    }
}

static void keep_text(struct json text) {
    if (!text.start || text.end - text.start < 2 || *text.start != '"') return;
    size_t bytes = (size_t)(text.end - text.start) - 2;
    if (said_bytes + bytes > said_capacity) {
        char *larger = realloc(said, said_capacity = 2 * (said_bytes + bytes));
        if (!larger) fail("its message is too long");
        said = larger;
    }
    memcpy(said + said_bytes, text.start + 1, bytes);
    said_bytes += bytes;
}

/* Cancels the turn if a tool call has ended the work, so that the agent stops asking its model. */
static void cancel_after_end(void) {
    long turn;
    if (is_cancelled || !has_ended(&turn)) return;
    is_cancelled = 1;
    signal(SIGALRM, end_late);
    alarm(GRACE_S);
    send_to_agent("\"method\":\"session/cancel\",\"params\":{\"sessionId\":%s}", session);
}

static void read_update(struct json update) {
    struct json kind = json_member(update, "sessionUpdate"), status = json_member(update, "status");
    if (json_is(kind, "agent_message_chunk")) keep_text(json_member(json_member(update, "content"), "text"));
    if (json_is(kind, "tool_call")) said_bytes = 0;
    if (json_is(status, "completed") || json_is(status, "failed")) cancel_after_end();
}

static void serve(struct json message, struct json method) {
    struct json id = json_member(message, "id"), params = json_member(message, "params");
    if (json_is(method, "session/update")) {
        read_update(json_member(params, "update"));
    } else if (json_is(method, "session/request_permission") && id.start) {
        answer_question(id, params);
    } else if (id.start) {
        send_to_agent("\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}", LENGTH(id));
    }
}

/* Waits for the answer to the last request, and serves the agent meanwhile. The result is valid until the next request. */
static struct json await_result(const char *method) {
    for (;;) {
        ssize_t bytes = getline(&line, &line_capacity, from_agent);
        if (bytes < 0) end_with_agent(method);
        struct json message = json_of(line, (size_t)bytes), called = json_member(message, "method");
        struct json id = json_member(message, "id"), error = json_member(message, "error");
        if (*message.start != '{') fprintf(stderr, "%.*s", (int)bytes, line);
        if (called.start) serve(message, called);
        if (called.start || !id.start || strtol(id.start, NULL, 10) != requests) continue;
        if (error.start) fail("%s: %.*s", method, LENGTH(error));
        return json_member(message, "result");
    }
}

static void start(char **command) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(output, O_CLOEXEC) < 0 || (agent = fork()) < 0) {
        perror("fumehood");
        exit(NOT_REACHABLE);
    }
    if (agent == 0) {
        setpgid(0, 0);
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        execvp(command[0], command);
        fprintf(stderr, "fumehood: %s: %s\n", command[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    setpgid(agent, agent);
    close(input[0]);
    close(output[1]);
    signal(SIGPIPE, SIG_IGN);
    to_agent = fdopen(input[1], "w");
    from_agent = fdopen(output[0], "r");
    if (!to_agent || !from_agent) end(NOT_REACHABLE);
}

/* Names a model in variables that programs read. */
static void name_model(const char *model) {
    static const char *const NAMES[] = {"OPENAI_MODEL", "ANTHROPIC_MODEL", "GEMINI_MODEL"};
    for (size_t each = 0; each < sizeof NAMES / sizeof *NAMES; each++) setenv(NAMES[each], model, 0);
}

static void name_first_model(void) {
    struct answer answer = {0};
    if (exchange("GET", "/v1/models", "", "", 0, &answer) < 0) return;
    struct json models = json_member(json_of(answer.body, answer.body_bytes), "data");
    struct json id = json_member(json_element(models, (struct json){0}), "id");
    if (id.start && !memchr(id.start, '\\', (size_t)(id.end - id.start))) {
        char *name = strndup(id.start + 1, (size_t)(id.end - id.start) - 2);
        if (name) name_model(name);
        free(name);
    }
    free(answer.body);
}

static void open_session(void) {
    char self[512], variables[640] = "";
    const char *socket = getenv("FUMEHOOD_SOCKET");
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
    self[bytes > 0 ? bytes : 0] = 0;
    if (socket) snprintf(variables, sizeof variables, "{\"name\":\"FUMEHOOD_SOCKET\",\"value\":\"%s\"}", socket);
    send_to_agent("\"id\":%d,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,\"clientCapabilities\":"
                  "{\"fs\":{\"readTextFile\":false,\"writeTextFile\":false},\"terminal\":false},"
                  "\"clientInfo\":{\"name\":\"fumehood\",\"version\":\"1\"}}",
                  ++requests);
    struct json version = json_member(await_result("initialize"), "protocolVersion");
    if (!version.start || strtol(version.start, NULL, 10) != 1) fail("it does not speak version 1 of the protocol");
    /* A box can be started before its episode. The service then answers when the episode begins. An agent would not
       wait so long for the tools of its session. */
    free(ask_service("/fumehood.v1.ToolService/GetTask", "{}", 2).body);
    send_to_agent("\"id\":%d,\"method\":\"session/new\",\"params\":{\"cwd\":" FOLDER ",\"mcpServers\":"
                  "[{\"name\":\"seat\",\"command\":\"%s\",\"args\":[\"mcp\"],\"env\":[%s]}]}",
                  ++requests, self, variables);
    struct json id = json_member(await_result("session/new"), "sessionId");
    if (!id.start) fail("session/new: it returned no sessionId");
    session = strndup(id.start, (size_t)(id.end - id.start));
}

/* Removes space around what the agent said. */
static struct json trimmed(void) {
    struct json text = {said, said + said_bytes};
    for (;;) {
        size_t bytes = (size_t)(text.end - text.start);
        int is_break = bytes > 1 && text.end[-1] == 'n' && text.end[-2] == '\\' && (bytes == 2 || text.end[-3] != '\\');
        if (is_break) {
            text.end -= 2;
        } else if (bytes > 0 && text.end[-1] == ' ') {
            text.end--;
        } else if (bytes > 0 && *text.start == ' ') {
            text.start++;
        } else if (bytes > 1 && text.start[0] == '\\' && text.start[1] == 'n') {
            text.start += 2;
        } else {
            return text;
        }
    }
}

/* Submits what the agent said as `field`; returns whether the user sends another message. */
static int submit(const char *field, const char *before) {
    struct json text = trimmed();
    struct answer answer = post("/fumehood.v1.ToolService/Submit", "{\"%s\":\"%s%.*s\"}", field, before, LENGTH(text));
    struct json reply = json_of(answer.body, answer.body_bytes);
    if (answer.status != 200 || json_member(reply, "refusal").start) fail("its answer was refused: %s", answer.body);
    int has_next = json_member(reply, "next").start != NULL;
    free(answer.body);
    return has_next;
}

static void stop(const char *problem) {
    free(ask_service("/stop", problem, strlen(problem)).body);
}

/* Sends the message of the user and ends the turn as the agent does; returns whether there is another message. */
static int play_turn(void) {
    struct answer task = ask_service("/fumehood.v1.ToolService/GetTask", "{}", 2);
    struct json view = json_of(task.body, task.body_bytes), instruction = json_member(view, "instruction");
    struct json number = json_member(view, "turn");
    long turn = number.start ? strtol(number.start, NULL, 10) : 0, now = turn;
    if (!instruction.start) instruction = json_of("\"\"", 2);
    said_bytes = 0;
    send_to_agent("\"id\":%d,\"method\":\"session/prompt\",\"params\":{\"sessionId\":%s,\"prompt\":[{\"type\":\"text\",\"text\":%.*s}]}",
                  ++requests, session, LENGTH(instruction));
    free(task.body);
    struct json reason = json_member(await_result("session/prompt"), "stopReason");
    if (has_ended(&now)) return 0;
    /* The agent has submitted an answer itself, with the tool of that name. */
    if (now != turn) return 1;
    if (json_is(reason, "end_turn")) return submit("answer", "");
    if (json_is(reason, "max_tokens")) {
        stop("reply_truncated");
    } else if (json_is(reason, "max_turn_requests")) {
        stop("turn_limit");
    } else if (json_is(reason, "refusal") || json_is(reason, "cancelled")) {
        submit("giveUpReason", json_is(reason, "refusal") ? "refusal: " : "cancelled: ");
    } else {
        fail("unknown stopReason: %.*s", LENGTH(reason));
    }
    return 0;
}

int drive_acp_agent(const char *model, const char *answers, char **command) {
    policy = answers;
    if (model) {
        name_model(model);
    } else {
        name_first_model();
    }
    start(command);
    open_session();
    while (play_turn()) continue;
    end(DONE);
}

/* Reads members of JSON texts without building a tree. Texts that are not JSON give wrong parts, never a read beyond their end. */
#include "helper.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end) {
    while (at < end && strchr(" \t\r\n", *at)) at++;
    return at;
}

/* Returns the end of the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end) {
    int depth = 0, in_string = 0;
    for (; at < end; at++) {
        if (in_string) {
            if (*at == '\\' && at + 1 < end) {
                at++;
            } else if (*at == '"') {
                in_string = 0;
                if (depth == 0) return at + 1;
            }
        } else if (*at == '"') {
            in_string = 1;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        } else if (depth == 0 && strchr(", \t\r\n:", *at)) {
            return at;
        }
    }
    return end;
}

struct json json_of(const char *text, size_t bytes) {
    const char *end = text + bytes, *start = skip_space(text, end);
    return (struct json){start, skip_value(start, end)};
}

/* Returns what begins after `at` and one separator, up to `end`. */
static struct json value_after(const char *at, const char *end) {
    at = skip_space(at, end);
    at = skip_space(at < end ? at + 1 : end, end);
    return (struct json){at, skip_value(at, end)};
}

struct json json_element(struct json array, struct json before) {
    if (!array.start || array.end - array.start < 2 || *array.start != '[') return (struct json){0};
    const char *end = array.end - 1;
    struct json element = value_after(before.start ? before.end : array.start, end);
    return element.start < element.end ? element : (struct json){0};
}

struct json json_member(struct json object, const char *name) {
    if (!object.start || object.end - object.start < 2 || *object.start != '{') return (struct json){0};
    const char *end = object.end - 1;
    struct json key = value_after(object.start, end);
    while (key.start < key.end) {
        struct json value = value_after(key.end, end);
        if (value.start >= value.end) break;
        if (json_is(key, name)) return value;
        key = value_after(value.end, end);
    }
    return (struct json){0};
}

int json_is(struct json value, const char *text) {
    size_t bytes = strlen(text);
    return value.start && (size_t)(value.end - value.start) == bytes + 2 && *value.start == '"' &&
           !memcmp(value.start + 1, text, bytes);
}

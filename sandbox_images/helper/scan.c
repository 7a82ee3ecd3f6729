/* Finds what differs in watched folders. The content of a file is hashed only if its times, size or number changed. */
#define _GNU_SOURCE
#include "scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, HASHED_BYTES_MAX = 16 << 20, HASH_BYTES = 32, CLOCK_TICK_NS = 20000000 };

struct entry {
    char *path;
    struct stat facts;
    int is_hashed;
    unsigned char hash[HASH_BYTES];
};

struct entries {
    struct entry *all;
    size_t count, capacity;
};

struct scan {
    char **folders;
    struct entries before, last;
    long long last_ns; /* wall time at the beginning of the last look */
};

void add_bytes(struct text *text, const void *bytes, size_t size) {
    if (text->used + size > text->capacity) {
        text->capacity = 2 * (text->used + size) + 256;
        text->bytes = realloc(text->bytes, text->capacity);
        if (!text->bytes) _exit(1);
    }
    if (size) memcpy(text->bytes + text->used, bytes, size);
    text->used += size;
}

/* SHA-256. Source: FIPS 180-4, sections 4.2.2, 5.3.3 and 6.2. The constants are roots of primes, as in 4.2.2. */
static uint32_t constants[64], initial[8];

static uint32_t fraction_bits(long double root) {
    return (uint32_t)((root - (long double)(uint64_t)root) * 4294967296.0L);
}

static void make_constants(void) {
    for (uint32_t prime = 2, count = 0; count < 64; prime++) {
        int is_prime = 1;
        for (uint32_t divisor = 2; divisor * divisor <= prime; divisor++) is_prime &= prime % divisor != 0;
        if (!is_prime) continue;
        long double cube = prime, square = prime;
        for (int step = 0; step < 60; step++) {
            cube = (2 * cube + prime / (cube * cube)) / 3;
            square = (square + prime / square) / 2;
        }
        if (count < 8) initial[count] = fraction_bits(square);
        constants[count++] = fraction_bits(cube);
    }
}

static uint32_t turn(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void add_block(uint32_t *state, const unsigned char *block) {
    uint32_t words[64], old[8];
    for (int at = 0; at < 16; at++)
        words[at] = (uint32_t)block[4 * at] << 24 | (uint32_t)block[4 * at + 1] << 16 |
                    (uint32_t)block[4 * at + 2] << 8 | block[4 * at + 3];
    for (int at = 16; at < 64; at++) {
        uint32_t low = words[at - 15], high = words[at - 2];
        words[at] = words[at - 16] + words[at - 7] + (turn(low, 7) ^ turn(low, 18) ^ low >> 3) +
                    (turn(high, 17) ^ turn(high, 19) ^ high >> 10);
    }
    memcpy(old, state, sizeof old);
    for (int at = 0; at < 64; at++) {
        uint32_t a = old[0], e = old[4];
        uint32_t first = old[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & old[5]) ^ (~e & old[6])) +
                         constants[at] + words[at];
        uint32_t second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                          ((a & old[1]) ^ (a & old[2]) ^ (old[1] & old[2]));
        memmove(old + 1, old, 7 * sizeof *old);
        old[4] += first;
        old[0] = first + second;
    }
    for (int at = 0; at < 8; at++) state[at] += old[at];
}

static void hash_all(const unsigned char *bytes, size_t size, uint64_t total, int is_last, uint32_t *state) {
    size_t at = 0;
    for (; size - at >= 64; at += 64) add_block(state, bytes + at);
    if (!is_last) return;
    unsigned char end[128] = {0};
    size_t rest = size - at, length = rest < 56 ? 64 : 128;
    memcpy(end, bytes + at, rest);
    end[rest] = 0x80;
    for (int byte = 0; byte < 8; byte++) end[length - 1 - (size_t)byte] = (unsigned char)(total * 8 >> 8 * byte);
    for (at = 0; at < length; at += 64) add_block(state, end + at);
}

static void finish(const uint32_t *state, unsigned char *hash) {
    for (int at = 0; at < HASH_BYTES; at++) hash[at] = (unsigned char)(state[at / 4] >> (24 - 8 * (at % 4)));
}

/* Hashes the first bytes of a file; a file that cannot be read counts as empty. */
static void hash_file(int file, unsigned char *hash) {
    static unsigned char bytes[1 << 16];
    uint32_t state[8];
    uint64_t total = 0;
    size_t used = 0;
    memcpy(state, initial, sizeof state);
    for (;;) {
        ssize_t got = file < 0 || total >= HASHED_BYTES_MAX ? 0 : read(file, bytes + used, sizeof bytes - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
        total += (uint64_t)got;
        if (used < sizeof bytes) continue;
        hash_all(bytes, used, total, 0, state);
        used = 0;
    }
    hash_all(bytes, used, total, 1, state);
    finish(state, hash);
}

static void hash_entry(struct entry *entry) {
    if (S_ISLNK(entry->facts.st_mode)) {
        unsigned char target[PATH_BYTES];
        ssize_t size = readlink(entry->path, (char *)target, sizeof target);
        uint32_t state[8];
        memcpy(state, initial, sizeof state);
        hash_all(target, size < 0 ? 0 : (size_t)size, size < 0 ? 0 : (uint64_t)size, 1, state);
        finish(state, entry->hash);
    } else {
        int file = open(entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        hash_file(file, entry->hash);
        if (file >= 0) close(file);
    }
    entry->is_hashed = 1;
}

static void add_entry(struct entries *entries, const char *path, const struct stat *facts) {
    if (entries->count == entries->capacity) {
        entries->capacity = 2 * entries->capacity + 256;
        entries->all = realloc(entries->all, entries->capacity * sizeof *entries->all);
        if (!entries->all) _exit(1);
    }
    entries->all[entries->count++] = (struct entry){strdup(path), *facts, 0, {0}};
}

static void walk(struct entries *entries, int parent, const char *name, char *path, dev_t device) {
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = folder < 0 ? NULL : fdopendir(folder);
    size_t length = strlen(path);
    if (!stream) {
        if (folder >= 0) close(folder);
        return;
    }
    for (struct dirent *found; (found = readdir(stream));) {
        struct stat facts;
        size_t size = strlen(found->d_name);
        if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, "..") || length + size + 2 > PATH_BYTES) continue;
        if (fstatat(folder, found->d_name, &facts, AT_SYMLINK_NOFOLLOW) < 0) continue;
        /* A file of an overlay can have another device than its folder. */
        if (S_ISDIR(facts.st_mode) && facts.st_dev != device) continue;
        path[length] = '/';
        memcpy(path + length + 1, found->d_name, size + 1);
        add_entry(entries, path, &facts);
        if (S_ISDIR(facts.st_mode)) walk(entries, folder, found->d_name, path, device);
        path[length] = 0;
    }
    closedir(stream);
}

static int by_path(const void *left, const void *right) {
    return strcmp(((const struct entry *)left)->path, ((const struct entry *)right)->path);
}

static struct entries look(char **folders) {
    struct entries entries = {0};
    for (; *folders; folders++) {
        char path[PATH_BYTES];
        struct stat facts;
        snprintf(path, sizeof path, "%s", *folders);
        if (lstat(path, &facts) < 0) continue;
        add_entry(&entries, path, &facts);
        walk(&entries, AT_FDCWD, *folders, path, facts.st_dev);
    }
    if (entries.count) qsort(entries.all, entries.count, sizeof *entries.all, by_path);
    return entries;
}

static struct entry *entry_of(const struct entries *entries, const char *path) {
    struct entry key = {.path = (char *)path};
    return entries->count ? bsearch(&key, entries->all, entries->count, sizeof key, by_path) : NULL;
}

static int is_same(const struct stat *left, const struct stat *right) {
    if (left->st_mode != right->st_mode) return 0;
    /* The times of a folder change with its entries, which are compared themselves. */
    return S_ISDIR(left->st_mode) ||
           (left->st_ino == right->st_ino && left->st_size == right->st_size &&
            !memcmp(&left->st_mtim, &right->st_mtim, sizeof left->st_mtim) &&
            !memcmp(&left->st_ctim, &right->st_ctim, sizeof left->st_ctim));
}

/* A file can change twice within one tick of the clock of the file system. */
static int is_older(const struct stat *facts, long long moment_ns) {
    return facts->st_ctim.tv_sec * 1000000000LL + facts->st_ctim.tv_nsec < moment_ns - CLOCK_TICK_NS;
}

static void add_change(struct text *text, struct entry *entry) {
    char facts[128];
    mode_t mode = entry->facts.st_mode;
    int length = snprintf(facts, sizeof facts, "%s %o", S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder"
                          : S_ISLNK(mode) ? "link" : "special", (unsigned)mode & 07777);
    if (S_ISREG(mode) || S_ISLNK(mode)) {
        length += snprintf(facts + length, sizeof facts - (size_t)length, " %lld ", (long long)entry->facts.st_size);
        for (int at = 0; at < HASH_BYTES; at++) length += sprintf(facts + length, "%02x", entry->hash[at]);
    }
    add_bytes(text, entry->path, strlen(entry->path) + 1);
    add_bytes(text, facts, (size_t)length + 1);
}

static void drop(struct entries *entries) {
    for (size_t at = 0; at < entries->count; at++) free(entries->all[at].path);
    free(entries->all);
}

struct scan *begin_scan(char **folders) {
    struct scan *scan = calloc(1, sizeof *scan);
    make_constants();
    if (!scan) return NULL;
    scan->folders = folders;
    scan->before = look(folders);
    return scan;
}

void add_changes(struct scan *scan, struct text *text) {
    struct timespec started;
    clock_gettime(CLOCK_REALTIME, &started);
    struct entries now = look(scan->folders), *before = &scan->before;
    size_t old = 0;
    for (size_t at = 0; at <= now.count; at++) {
        struct entry *entry = at < now.count ? &now.all[at] : NULL;
        for (; old < before->count && (!entry || strcmp(before->all[old].path, entry->path) < 0); old++) {
            add_bytes(text, before->all[old].path, strlen(before->all[old].path) + 1);
            add_bytes(text, "deleted", sizeof "deleted");
        }
        if (!entry) break;
        struct entry *first = old < before->count && !strcmp(before->all[old].path, entry->path)
                                  ? &before->all[old++] : NULL;
        if (first && is_same(&first->facts, &entry->facts)) continue;
        struct entry *last = entry_of(&scan->last, entry->path);
        if (last && last->is_hashed && is_same(&last->facts, &entry->facts) && is_older(&last->facts, scan->last_ns)) {
            memcpy(entry->hash, last->hash, HASH_BYTES);
            entry->is_hashed = 1;
        } else if (S_ISREG(entry->facts.st_mode) || S_ISLNK(entry->facts.st_mode)) hash_entry(entry);
        add_change(text, entry);
    }
    drop(&scan->last);
    scan->last = now;
    scan->last_ns = started.tv_sec * 1000000000LL + started.tv_nsec;
}

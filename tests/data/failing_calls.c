/* Preloaded into a process, this lets some of its system calls fail. FAULT names them: "call errno first times path".

   Calls on files whose path contains `path` are counted from 1; those from `first` on fail, `times` of them. The environment is read at
   each call, so that the process can say what fails next; a new value begins a new count. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char last[512];
static int count;

static int fails(const char *call, const char *path) {
    const char *fault = getenv("FAULT");
    char name[32], within[256];
    int error, first, times;
    if (!fault || sscanf(fault, "%31s %d %d %d %255s", name, &error, &first, &times, within) != 5) return 0;
    if (strcmp(call, name) || !strstr(path, within)) return 0;
    if (strcmp(last, fault)) {
        snprintf(last, sizeof last, "%s", fault);
        count = 0;
    }
    count++;
    if (count < first || count >= first + times) return 0;
    errno = error;
    return 1;
}

static int fails_on(const char *call, int file) {
    char link[64], path[4096];
    const char *fault = getenv("FAULT");
    if (!fault || strncmp(fault, call, strlen(call))) return 0; /* before a link is looked up: there are many calls */
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return fails(call, path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int fsync(int file) {
    REAL(fsync);
    return fails_on("fsync", file) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return fails("rename", to) ? -1 : real(from, to);
}

ssize_t read(int file, void *bytes, size_t n) {
    REAL(read);
    return fails_on("read", file) ? -1 : real(file, bytes, n);
}

ssize_t write(int file, const void *bytes, size_t n) {
    REAL(write);
    return fails_on("write", file) ? -1 : real(file, bytes, n);
}

ssize_t preadv64(int file, const struct iovec *parts, int n, off64_t at) {
    REAL(preadv64);
    return fails_on("preadv", file) ? -1 : real(file, parts, n, at);
}

ssize_t preadv64v2(int file, const struct iovec *parts, int n, off64_t at, int flags) {
    REAL(preadv64v2);
    return fails_on("preadv", file) ? -1 : real(file, parts, n, at, flags);
}

ssize_t pwrite64(int file, const void *bytes, size_t n, off64_t at) {
    REAL(pwrite64);
    return fails_on("pwrite", file) ? -1 : real(file, bytes, n, at);
}

/* A disk that fails: loaded before SQLite, it lets DISK_AFTER writes to DISK_FILE pass once the
 * file DISK_FLAG exists. Later ones fail with the number DISK_ERROR; 0 kills the process instead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int file) {
    static long passed;
    const char *name = getenv("DISK_FILE");
    char link[32], path[PATH_MAX];
    if (name == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strcmp(path, name) || access(getenv("DISK_FLAG"), F_OK)) return 0;
    if (passed++ < atol(getenv("DISK_AFTER"))) return 0;
    errno = atoi(getenv("DISK_ERROR"));
    if (errno == 0) kill(getpid(), SIGKILL);
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
    int error = errno;
    if (fails(file)) return -1;
    errno = error;
    return NEXT(write)(file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    return fails(file) ? -1 : NEXT(pwrite64)(file, data, size, place);
}

int ftruncate64(int file, off64_t size) {
    return fails(file) ? -1 : NEXT(ftruncate64)(file, size);
}

int fdatasync(int file) {
    return fails(file) ? -1 : NEXT(fdatasync)(file);
}

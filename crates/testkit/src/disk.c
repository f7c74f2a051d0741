/* A disk that fails on demand, loaded before the C library of a PostgreSQL server (LD_PRELOAD). Files in the folder DISK_ORDERS say what fails:
   full-data and full-wal (no file there grows, while the order is there), eio-data and eio-wal (one fsync fails, and takes the order away). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* "data", "wal", or nothing for files that are neither, such as sockets. */
static const char *kind(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return NULL;
    path[n] = 0;
    if (strstr(path, "/postgres/pg_wal/")) return "wal";
    if (strstr(path, "/postgres/base/")) return "data";
    return NULL;
}

static int ordered(const char *what, int fd, int once) {
    const char *folder = getenv("DISK_ORDERS"), *of = folder ? kind(fd) : NULL;
    if (!of) return 0;
    char order[PATH_MAX];
    snprintf(order, sizeof order, "%s/%s-%s", folder, what, of);
    return once ? unlink(order) == 0 : access(order, F_OK) == 0;
}

static int is_full(int fd, off_t end) {
    struct stat now;
    if (fstat(fd, &now) != 0 || end <= now.st_size || !ordered("full", fd, 0)) return 0;
    errno = ENOSPC;
    return 1;
}

static off_t length(const struct iovec *parts, int n) {
    off_t sum = 0;
    for (int i = 0; i < n; i++) sum += (off_t) parts[i].iov_len;
    return sum;
}

static int fails(int fd) {
    if (!ordered("eio", fd, 1)) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

int fsync(int fd) { return fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(fd) ? -1 : REAL(fdatasync)(fd); }

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    return is_full(fd, at + (off_t) n) ? -1 : REAL(pwrite)(fd, bytes, n, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    return is_full(fd, at + (off_t) n) ? -1 : REAL(pwrite64)(fd, bytes, n, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) {
    return is_full(fd, at + length(parts, n)) ? -1 : REAL(pwritev)(fd, parts, n, at);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at) {
    return is_full(fd, at + length(parts, n)) ? -1 : REAL(pwritev64)(fd, parts, n, at);
}
int posix_fallocate(int fd, off_t at, off_t n) {
    return is_full(fd, at + n) ? ENOSPC : REAL(posix_fallocate)(fd, at, n);
}
int posix_fallocate64(int fd, off64_t at, off64_t n) {
    return is_full(fd, at + n) ? ENOSPC : REAL(posix_fallocate64)(fd, at, n);
}

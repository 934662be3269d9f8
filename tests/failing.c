/* Makes chosen writes of a process fail.  It is preloaded, and armed from within the process.
 *
 * It counts the calls that change files below one folder: writing, syncing, truncating, renaming
 * and making hard links.  Counting starts at 0 when it is armed.  There nothing is really synced:
 * a process that fails or is killed leaves the same either way, and no test here cuts the power.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, ONCE, FROM_THEN_ON, KILLED, STOPPED };

static char folder[PATH_MAX];
static size_t folder_length;
static int mode = OFF, error_number = ENOSPC;
static long chosen = -1;
static atomic_long count;

enum { MOST_CALLS = 1 << 15 };
static char *calls[MOST_CALLS];

void arm(const char *below, int how, long number, int error) {
    strncpy(folder, below, sizeof folder - 1);
    folder_length = strlen(folder);
    mode = how, chosen = number, error_number = error;
    atomic_store(&count, 0);
}

long counted(void) { return atomic_load(&count); }

/* What was counted at a number: the call and the path. */
const char *call_at(long number) {
    return number >= 0 && number < MOST_CALLS && calls[number] ? calls[number] : "";
}

static int is_below(const char *path) {
    return folder_length && strncmp(path, folder, folder_length) == 0;
}

/* Stop all threads before this one goes on: once its parent sees that, nothing changes. */
static void stop(void) {
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&turn);
    raise(SIGSTOP);
    pthread_mutex_unlock(&turn);
}

static int is_chosen(const char *call, const char *path) {
    long number = atomic_fetch_add(&count, 1);
    if (number < MOST_CALLS && asprintf(&calls[number], "%s %s", call, path) < 0) abort();
    if (mode == STOPPED) stop();
    if (chosen < 0 || !(number == chosen || (mode == FROM_THEN_ON && number > chosen))) return 0;
    if (mode == KILLED) kill(getpid(), SIGKILL);
    errno = error_number;
    return 1;
}

/* Put the path of an open file where there is room for it; whether that is below the folder. */
static int is_open_below(int descriptor, char path[PATH_MAX]) {
    if (!folder_length) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below(path);
}

static int fails_at(const char *call, int descriptor) {
    char path[PATH_MAX];
    return is_open_below(descriptor, path) && is_chosen(call, path);
}

static int fails_on(const char *call, const char *path) {
    return is_below(path) && is_chosen(call, path);
}

static int synced(int descriptor, int (*real)(int)) {
    char path[PATH_MAX];
    if (!is_open_below(descriptor, path)) return real(descriptor);
    return is_chosen("fsync", path) ? -1 : 0;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t size) {
    REAL(write);
    return fails_at("write", fd) ? -1 : real(fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    REAL(pwrite);
    return fails_at("write", fd) ? -1 : real(fd, bytes, size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    REAL(pwrite64);
    return fails_at("write", fd) ? -1 : real(fd, bytes, size, at);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    REAL(writev);
    return fails_at("write", fd) ? -1 : real(fd, parts, number);
}

int fsync(int fd) {
    REAL(fsync);
    return synced(fd, real);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return synced(fd, real);
}

int ftruncate(int fd, off_t size) {
    REAL(ftruncate);
    return fails_at("truncate", fd) ? -1 : real(fd, size);
}

int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    return fails_at("truncate", fd) ? -1 : real(fd, size);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return fails_on("rename", to) ? -1 : real(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    return fails_on("rename", to) ? -1 : real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    REAL(renameat2);
    return fails_on("rename", to) ? -1 : real(from_folder, from, to_folder, to, flags);
}

int link(const char *from, const char *to) {
    REAL(link);
    return fails_on("link", to) ? -1 : real(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    REAL(linkat);
    return fails_on("link", to) ? -1 : real(from_folder, from, to_folder, to, flags);
}

/* Preloaded into a PostgreSQL server on a copy that pgdyno made and throws away: makes flushes of
 * WAL, flushes of data and reads slower by some nanoseconds, leaves the flushes out, or believes a
 * disk that lies. What it does is told by words in a shared file, named by PGDYNO_SHIM, so that it
 * changes while the server runs; what it did is counted there. Without the file everything passes
 * through. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { WAL, DATA, READ, KINDS };

/* The layout is read and written by pgdyno/intervention/shim.py. */
struct words {
  uint64_t delay_ns[KINDS];
  uint64_t skip[KINDS];
  uint64_t units[KINDS];
  uint64_t spent_ns[KINDS];
  uint64_t added_ns[KINDS];
  uint64_t loaded; /* programs that have the library */
  uint64_t lies;   /* the disk does: a flush ends when it has the data, be it in its cache only */
};

static struct words *words;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("PGDYNO_SHIM");
  if (path == NULL) return;
  int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file == -1) return;
  void *map = mmap(NULL, sizeof(struct words), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map == MAP_FAILED) return;
  words = map;
  __atomic_fetch_add(&words->loaded, 1, __ATOMIC_RELAXED);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add(uint64_t *to, uint64_t what) { __atomic_fetch_add(to, what, __ATOMIC_RELAXED); }

static uint64_t get(const uint64_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }

/* Counts a call that began then, and makes it longer; errno stays. */
static void ended(enum kind kind, uint64_t began_ns) {
  int error = errno;
  uint64_t returned_ns = now_ns(), delay_ns = get(&words->delay_ns[kind]);
  add(&words->units[kind], 1);
  add(&words->spent_ns[kind], returned_ns - began_ns);
  if (delay_ns != 0) {
    /* The kernel may be late by 50 us where it is not told otherwise. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    struct timespec left = {(time_t)(delay_ns / 1000000000u), (long)(delay_ns % 1000000000u)};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {}
    add(&words->added_ns[kind], now_ns() - returned_ns);
  }
  errno = error;
}

static enum kind kind_of(int file) {
  char link[32] = "/proc/self/fd/", path[4096], digits[12];
  int n = 0, error = errno;
  do digits[n++] = (char)('0' + file % 10);
  while ((file /= 10) > 0 && n < 11);
  size_t end = strlen(link);
  while (n > 0) link[end++] = digits[--n];
  link[end] = '\0';
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = error;
  if (length <= 0) return DATA;
  path[length] = '\0';
  return strstr(path, "/pg_wal/") != NULL ? WAL : DATA;
}

/* What a flush comes to on a disk that acknowledges what lies in its volatile cache: all is written
 * to it and has arrived, and nothing has asked it to keep that. */
static int handed_over(int file) {
  unsigned how =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  return sync_file_range(file, 0, 0, how);
}

static int flush(int file, int (*real)(int)) {
  if (words == NULL) return real(file);
  enum kind kind = kind_of(file);
  /* What is left out is not counted: means are those of flushes that took place. */
  if (get(&words->skip[kind]) != 0) return 0;
  uint64_t began_ns = now_ns();
  int result = get(&words->lies) != 0 ? handed_over(file) : real(file);
  ended(kind, began_ns);
  return result;
}

/* The C library's own. */
#define REAL(name)                       \
  static __typeof__(&name) real;         \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int fdatasync(int file) {
  REAL(fdatasync);
  return flush(file, real);
}

int fsync(int file) {
  REAL(fsync);
  return flush(file, real);
}

#define READS(name, parameters, arguments)     \
  ssize_t name parameters {                    \
    REAL(name);                                \
    if (words == NULL) return real arguments;  \
    uint64_t began_ns = now_ns();              \
    ssize_t result = real arguments;           \
    ended(READ, began_ns);                     \
    return result;                             \
  }

READS(pread, (int file, void *to, size_t size, off_t at), (file, to, size, at))
READS(pread64, (int file, void *to, size_t size, off64_t at), (file, to, size, at))
READS(preadv, (int file, const struct iovec *to, int n, off_t at), (file, to, n, at))
READS(preadv64, (int file, const struct iovec *to, int n, off64_t at), (file, to, n, at))

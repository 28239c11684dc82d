/* The record: what is written down, by whom, and in which order. */
#include "record.h"

#define LAST_WORDS 26 /* what ends a record always fits */

volatile uint64_t *words;
int record = -1;
char top[PATH_MAX];
size_t top_length;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

int real_open(const char *path, int how) {
  static int (*real)(const char *, int, ...);
  if (real == NULL) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  return real(path, how | O_CLOEXEC);
}

void real_close(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
  int error = errno;
  real(file);
  errno = error;
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((constructor)) static void load(void) {
  const char *of_words = getenv("PGDYNO_DISK_WORDS"), *of_record = getenv("PGDYNO_DISK_RECORD");
  const char *of_data = getenv("PGDYNO_DISK_DATA");
  if (of_words == NULL || of_record == NULL || of_data == NULL) return;
  int file = real_open(of_words, O_RDWR | O_NOFOLLOW);
  record = real_open(of_record, O_RDWR | O_NOFOLLOW);
  if (file == -1 || record == -1 || strlen(of_data) >= sizeof top) return;
  void *map = mmap(NULL, WORDS * sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  real_close(file);
  if (map == MAP_FAILED) return;
  strcpy(top, of_data);
  top_length = strlen(top);
  words = map;
  __atomic_fetch_add(&words[LOADED], 1, __ATOMIC_RELAXED);
}

void end_record(uint64_t why) {
  if (words[ENDED] == GOES_ON) {
    words[ENDED_NS] = now_ns();
    words[ENDED] = why;
  }
}

static void lock(int kind) {
  struct flock all = {.l_type = (short)kind, .l_whence = SEEK_SET};
  static int (*real)(int, int, ...);
  if (real == NULL) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
  while (real(record, F_SETLKW, &all) == -1 && errno == EINTR) {}
}

/* Nobody else changes anything until `leave`. False: the power is gone. */
int enter(sigset_t *before) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, before);
  pthread_mutex_lock(&threads);
  int error = errno;
  lock(F_WRLCK);
  errno = error;
  if (words[GONE_NS] == 0) {
    /* It was killed: what it did last is not known. */
    if (words[BUSY] != 0) end_record(DIED_BETWEEN);
    words[BUSY] = (uint64_t)getpid();
    return 1;
  }
  lock(F_UNLCK);
  pthread_mutex_unlock(&threads);
  pthread_sigmask(SIG_SETMASK, before, NULL);
  errno = EIO;
  return 0;
}

void leave(const sigset_t *before) {
  int error = errno;
  words[BUSY] = 0;
  lock(F_UNLCK);
  pthread_mutex_unlock(&threads);
  pthread_sigmask(SIG_SETMASK, before, NULL);
  errno = error;
}

void number(struct fields *to, uint64_t value, size_t bytes) {
  for (size_t n = 0; n < bytes; n++) to->bytes[to->length++] = (unsigned char)(value >> (8 * n));
}

struct fields event(enum event_kind kind, uint64_t inode) {
  struct fields new = {.length = 4}; /* its length is known last */
  number(&new, kind, 1);
  number(&new, now_ns(), 8);
  number(&new, inode, 8);
  return new;
}

/* Write an event down, with what it carries. Whoever made the call hears of no error. */
void put(struct fields *what, const void *data, size_t bytes) {
  size_t length = what->length + bytes, done = 0;
  if (words[ENDED] != GOES_ON) return;
  if (words[BYTES] + length + LAST_WORDS > words[BYTES_MAX]) {
    end_record(NO_ROOM);
    return;
  }
  for (int n = 0; n < 4; n++) what->bytes[n] = (unsigned char)(length >> (8 * n));
  static ssize_t (*real)(int, const struct iovec *, int, off64_t);
  if (real == NULL) {
    real = (ssize_t(*)(int, const struct iovec *, int, off64_t))dlsym(RTLD_NEXT, "pwritev64");
  }
  int error = errno;
  while (done < length) {
    size_t head = done < what->length ? what->length - done : 0;
    size_t skipped = done > what->length ? done - what->length : 0;
    struct iovec both[2] = {
        {what->bytes + what->length - head, head},
        {(char *)data + skipped, bytes - skipped},
    };
    ssize_t wrote = real(record, both, 2, (off64_t)(words[BYTES] + done));
    if (wrote <= 0) {
      end_record(UNWRITTEN);
      errno = error;
      return;
    }
    done += (size_t)wrote;
  }
  words[BYTES] += length;
  errno = error;
}

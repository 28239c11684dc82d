/* Data are written. */
#include "record.h"

#define PART (1 << 20)

/* Of whoever has entered; O_DIRECT takes it from no other places. */
static char part[PART] __attribute__((aligned(4096)));

/* Bytes of a vector that come after so many, as many as a part takes. */
static size_t gathered(const struct iovec *from, int n, size_t skipped) {
  size_t filled = 0;
  for (int one = 0; one < n && filled < PART; one++) {
    if (skipped >= from[one].iov_len) {
      skipped -= from[one].iov_len;
      continue;
    }
    size_t bytes = from[one].iov_len - skipped;
    if (bytes > PART - filled) bytes = PART - filled;
    memcpy(part + filled, (char *)from[one].iov_base + skipped, bytes);
    filled += bytes;
    skipped = 0;
  }
  return filled;
}

/* A part is copied first: what is written is what is written down, though others change a page. */
static ssize_t write_part(int file, const struct stat *facts, const struct iovec *from, int n,
                          size_t done, off64_t at) {
  static ssize_t (*real)(int, const void *, size_t);
  static ssize_t (*real_at)(int, const void *, size_t, off64_t);
  if (real == NULL) {
    real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    real_at = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  }
  struct stat is;
  sigset_t before;
  if (!enter(&before)) return -1;
  size_t bytes = gathered(from, n, done);
  off64_t begin = at + (off64_t)done;
  ssize_t wrote = at == -1 ? real(file, part, bytes) : real_at(file, part, bytes, begin);
  if (wrote > 0) {
    off64_t end = begin + wrote;
    if (at == -1) end = lseek64(file, 0, SEEK_CUR);
    else if (has(file, APPENDS) && fstat(file, &is) == 0) end = is.st_size; /* wherever it asked */
    put_written(called(facts), (uint64_t)(end - wrote), part, (size_t)wrote);
    if (has(file, DATA_SYNC | FULL_SYNC)) {
      uint64_t sync = words[SYNCS]++;
      put_sync(SYNC_BEGUN, called(facts), sync, 0);
      put_sync(SYNC_ENDED, called(facts), sync, has(file, DATA_SYNC));
    }
  }
  leave(&before);
  return wrote;
}

static ssize_t write_all(int file, const struct stat *facts, const struct iovec *from, int n,
                         off64_t at) {
  size_t bytes = 0, done = 0;
  for (int one = 0; one < n; one++) bytes += from[one].iov_len;
  if (words[FAULT] != NOTHING) {
    off64_t end = (at == -1 ? lseek64(file, 0, SEEK_CUR) : at) + (off64_t)bytes;
    if (!meets_none_of(end > facts->st_size ? GROW : WRITE, file)) return -1;
  }
  do {
    ssize_t wrote = write_part(file, facts, from, n, done, at);
    if (wrote <= 0) return done > 0 ? (ssize_t)done : wrote;
    done += (size_t)wrote;
  } while (done < bytes);
  return (ssize_t)done;
}

ssize_t write(int file, const void *from, size_t bytes) {
  REAL(write);
  struct stat facts;
  if (!facts_of(file, &facts) || bytes == 0) return real(file, from, bytes);
  struct iovec one = {(void *)from, bytes};
  return write_all(file, &facts, &one, 1, -1);
}

ssize_t writev(int file, const struct iovec *from, int n) {
  REAL(writev);
  struct stat facts;
  if (!facts_of(file, &facts)) return real(file, from, n);
  return write_all(file, &facts, from, n, -1);
}

#define WRITES_AT(name, offset)                                             \
  ssize_t name(int file, const void *from, size_t bytes, offset at) {       \
    REAL(name);                                                             \
    struct stat facts;                                                      \
    if (!facts_of(file, &facts) || bytes == 0 || at < 0) {                  \
      return real(file, from, bytes, at);                                   \
    }                                                                       \
    struct iovec one = {(void *)from, bytes};                               \
    return write_all(file, &facts, &one, 1, at);                            \
  }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

#define WRITES_ALL_AT(name, offset)                                       \
  ssize_t name(int file, const struct iovec *from, int n, offset at) {    \
    REAL(name);                                                           \
    struct stat facts;                                                    \
    if (!facts_of(file, &facts) || at < 0) return real(file, from, n, at); \
    return write_all(file, &facts, from, n, at);                          \
  }
WRITES_ALL_AT(pwritev, off_t)
WRITES_ALL_AT(pwritev64, off64_t)

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *where, size_t bytes, unsigned how) {
  REAL(copy_file_range);
  struct stat facts;
  sigset_t before;
  if (!facts_of(to, &facts)) return real(from, at, to, where, bytes, how);
  off64_t begin = where == NULL ? lseek64(to, 0, SEEK_CUR) : *where;
  if (words[FAULT] != NOTHING) {
    enum asked asked = begin + (off64_t)bytes > facts.st_size ? GROW : WRITE;
    if (!meets_none_of(asked, to)) return -1;
  }
  if (!enter(&before)) return -1;
  ssize_t copied = real(from, at, to, where, bytes, how);
  if (copied > 0) put_again(to, begin, begin + copied);
  leave(&before);
  return copied;
}

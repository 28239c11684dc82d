/* Files become shorter or longer. */
#include "record.h"

static void put_resized(uint64_t inode, uint64_t was, uint64_t is) {
  if (is != was) put_size(is < was ? CUT : GROWN, inode, is);
}

typedef int resizer(int, off64_t);

static int resized(int file, off64_t size, resizer *real) {
  struct stat facts;
  sigset_t before;
  if (!facts_of(file, &facts)) return real(file, size);
  if (!enter(&before)) return -1;
  int done = fstat(file, &facts) == 0 ? real(file, size) : -1;
  if (done == 0) put_resized(called(&facts), (uint64_t)facts.st_size, (uint64_t)size);
  leave(&before);
  return done;
}

int ftruncate(int file, off_t size) {
  REAL(ftruncate);
  return resized(file, size, (resizer *)real);
}

int ftruncate64(int file, off64_t size) {
  REAL(ftruncate64);
  return resized(file, size, real);
}

static int resized_at(const char *path, off64_t size, int (*real)(const char *, off64_t)) {
  struct place place;
  if (!located(AT_FDCWD, path, &place)) return real(path, size);
  real_close(place.folder);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file == -1) return -1;
  int done = ftruncate64(file, size), error = errno;
  close(file);
  errno = error;
  return done;
}

int truncate(const char *path, off_t size) {
  REAL(truncate);
  return resized_at(path, size, (int (*)(const char *, off64_t))real);
}

int truncate64(const char *path, off64_t size) {
  REAL(truncate64);
  return resized_at(path, size, real);
}

/* Room for data: the call's result, be it an error's number or -1. */
#define ALLOCATES(name, parameters, arguments, refuses)             \
  int name parameters {                                                     \
    REAL(name);                                                             \
    struct stat was, is;                                                    \
    sigset_t before;                                                        \
    if (!facts_of(file, &was)) return real arguments;                       \
    refuses                                                                 \
    enum asked asked = from + length > was.st_size ? GROW : WRITE;          \
    if (!meets_none_of(asked, file) || !enter(&before)) return FAILS;       \
    int done = fstat(file, &was) == 0 ? real arguments : FAILS;             \
    if (done == 0 && fstat(file, &is) == 0) {                               \
      put_resized(called(&was), (uint64_t)was.st_size, (uint64_t)is.st_size); \
    }                                                                       \
    leave(&before);                                                         \
    return done;                                                            \
  }
#define FAILS errno
ALLOCATES(posix_fallocate, (int file, off_t from, off_t length), (file, from, length), )
ALLOCATES(posix_fallocate64, (int file, off64_t from, off64_t length), (file, from, length), )
#undef FAILS
#define FAILS (-1)
/* What else there is than room at the end, the model does not know. */
#define REFUSES          \
  if (how != 0) {        \
    errno = EOPNOTSUPP;  \
    return -1;           \
  }
ALLOCATES(fallocate, (int file, int how, off_t from, off_t length), (file, how, from, length),
          REFUSES)
ALLOCATES(fallocate64, (int file, int how, off64_t from, off64_t length),
          (file, how, from, length), REFUSES)
#undef FAILS

/* Files are opened and closed. */
#include "record.h"

typedef int opener(int, const char *, int, ...);

static int open_by(opener *real, int from, const char *path, int how, mode_t mode) {
  struct place place;
  int changes = (how & (O_CREAT | O_TRUNC)) != 0 && (how & O_TMPFILE) != O_TMPFILE;
  if (!changes || !located(from, path, &place)) {
    int file = real(from, path, how, mode);
    follow(file, how);
    return file;
  }
  struct stat was;
  sigset_t before;
  int file = -1, there = facts_at(&place, &was);
  if ((there || meets_none(GROW, place.first)) && enter(&before)) {
    there = facts_at(&place, &was);
    file = real(from, path, how, mode);
    if (file != -1 && !there) put_made(&place, A_FILE, "");
    if (file != -1 && there && (how & O_TRUNC) && was.st_size > 0) put_size(CUT, called(&was), 0);
    leave(&before);
    follow(file, how);
  }
  real_close(place.folder);
  return file;
}

static opener *real_openat(void) {
  static opener *real;
  if (real == NULL) real = (opener *)dlsym(RTLD_NEXT, "openat");
  return real;
}

#define MODE_OF(how, last)                                     \
  mode_t mode = 0;                                             \
  if (((how) & O_CREAT) || ((how) & O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                              \
    va_start(more, last);                                      \
    mode = (mode_t)va_arg(more, int);                          \
    va_end(more);                                              \
  }

#define OPENS(name, also)                                         \
  int name(const char *path, int how, ...) {                      \
    MODE_OF(how, how)                                             \
    return open_by(real_openat(), AT_FDCWD, path, how | also, mode); \
  }
OPENS(open, 0)
OPENS(open64, O_LARGEFILE)

#define OPENS_AT(name, also)                               \
  int name(int from, const char *path, int how, ...) {     \
    MODE_OF(how, how)                                      \
    return open_by(real_openat(), from, path, how | also, mode); \
  }
OPENS_AT(openat, 0)
OPENS_AT(openat64, O_LARGEFILE)

/* What they are called where the compiler looks after their arguments. */
int __open_2(const char *path, int how);
int __open64_2(const char *path, int how);
int __openat_2(int from, const char *path, int how);
int __openat64_2(int from, const char *path, int how);
int __open_2(const char *path, int how) { return open(path, how, 0); }
int __open64_2(const char *path, int how) { return open64(path, how, 0); }
int __openat_2(int from, const char *path, int how) { return openat(from, path, how, 0); }
int __openat64_2(int from, const char *path, int how) { return openat64(from, path, how, 0); }
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) {
  return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

typedef FILE *stream_opener(const char *, const char *);

static FILE *open_buffered(const char *path, const char *how, stream_opener *real) {
  struct place place;
  if ((how[0] == 'r' && strchr(how, '+') == NULL) || !located(AT_FDCWD, path, &place)) {
    return real(path, how);
  }
  real_close(place.folder);
  int flag = strchr(how, '+') != NULL ? O_RDWR : O_WRONLY;
  if (how[0] == 'w') flag |= O_CREAT | O_TRUNC;
  if (how[0] == 'a') flag |= O_CREAT | O_APPEND;
  if (strchr(how, 'x') != NULL) flag |= O_EXCL;
  if (strchr(how, 'e') != NULL) flag |= O_CLOEXEC;
  int file = open(path, flag, 0666);
  if (file == -1) return NULL;
  if (has(file, FOLLOWED)) flags[file] |= BUFFERED;
  return fdopen(file, how);
}

FILE *fopen(const char *path, const char *how) {
  REAL(fopen);
  return open_buffered(path, how, real);
}

FILE *fopen64(const char *path, const char *how) {
  REAL(fopen64);
  return open_buffered(path, how, real);
}

int fclose(FILE *stream) {
  REAL(fclose);
  int file = words == NULL ? -1 : fileno(stream);
  if (has(file, BUFFERED)) {
    fflush(stream);
    put_whole(file);
  }
  if (file >= 0 && file < HANDLES) flags[file] = 0;
  return real(stream);
}

int close(int file) {
  REAL(close);
  if (words != NULL && file == record) { /* the lock goes with it */
    errno = EBADF;
    return -1;
  }
  if (has(file, BUFFERED)) put_whole(file);
  if (file >= 0 && file < HANDLES) flags[file] = 0;
  return real(file);
}

static int followed_too(int file, int new) {
  if (new >= 0 && new < HANDLES) flags[new] = has(file, 255) ? flags[file] : 0;
  return new;
}

int dup(int file) {
  REAL(dup);
  return followed_too(file, real(file));
}

int dup2(int file, int as) {
  REAL(dup2);
  return followed_too(file, real(file, as));
}

int dup3(int file, int as, int how) {
  REAL(dup3);
  return followed_too(file, real(file, as, how));
}

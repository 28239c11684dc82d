/* Names are made, moved and removed. */
#include "record.h"

typedef int (*remover)(int, const char *, int);

static int removed(int from, const char *path, int how) {
  static remover real;
  if (real == NULL) real = (remover)dlsym(RTLD_NEXT, "unlinkat");
  struct place place;
  struct stat facts;
  sigset_t before;
  int done = -1;
  if (!located(from, path, &place)) return real(from, path, how);
  if (enter(&before)) {
    int there = facts_at(&place, &facts);
    done = real(place.folder, place.name, how);
    if (done == 0 && there) {
      struct fields gone = event(REMOVED, called(&facts));
      name_of(&gone, &place);
      put(&gone, NULL, 0);
    } else if (done == 0) {
      end_record(UNSEEN);
    }
    leave(&before);
  }
  real_close(place.folder);
  return done;
}

int unlinkat(int from, const char *path, int how) { return removed(from, path, how); }
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int moved(int from, const char *old, int to, const char *new, unsigned how) {
  static int (*real)(int, const char *, int, const char *, unsigned);
  if (real == NULL) {
    real = (int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2");
  }
  struct place was, is;
  struct stat facts, replaced;
  sigset_t before;
  int done = -1, out = located(from, old, &was), in = located(to, new, &is);
  if (!out && !in) return real(from, old, to, new, how);
  if (how & ~(unsigned)RENAME_NOREPLACE) {
    errno = EINVAL;
  } else if (enter(&before)) {
    int same = out && in && facts_at(&was, &facts) && facts_at(&is, &replaced) &&
               facts.st_ino == replaced.st_ino;
    int there = out && facts_at(&was, &facts);
    done = real(from, old, to, new, how);
    if (done == 0 && out && in && there && !same) {
      struct fields event_of = event(MOVED, called(&facts));
      name_of(&event_of, &was);
      name_of(&event_of, &is);
      put(&event_of, NULL, 0);
    } else if (done == 0 && !same) {
      end_record(UNSEEN); /* into the data directory, or out of it */
    }
    leave(&before);
  }
  int error = errno;
  if (out) real_close(was.folder);
  if (in) real_close(is.folder);
  errno = error;
  return done;
}

int rename(const char *old, const char *new) { return moved(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) {
  return moved(from, old, to, new, 0);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned how) {
  return moved(from, old, to, new, how);
}

int linkat(int from, const char *old, int to, const char *new, int how) {
  REAL(linkat);
  struct place place;
  struct stat facts;
  sigset_t before;
  int done = -1;
  if (!located(to, new, &place)) return real(from, old, to, new, how);
  if (enter(&before)) {
    done = real(from, old, to, new, how);
    if (done == 0 && facts_at(&place, &facts)) put_added(called(&facts), &place);
    leave(&before);
  }
  real_close(place.folder);
  return done;
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int symlinkat(const char *target, int from, const char *path) {
  REAL(symlinkat);
  struct place place;
  sigset_t before;
  int done = -1;
  if (!located(from, path, &place)) return real(target, from, path);
  if (enter(&before)) {
    done = real(target, from, path);
    if (done == 0) put_made(&place, A_LINK, target);
    leave(&before);
  }
  real_close(place.folder);
  return done;
}
int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int mkdirat(int from, const char *path, mode_t mode) {
  REAL(mkdirat);
  struct place place;
  sigset_t before;
  int done = -1;
  if (!located(from, path, &place)) return real(from, path, mode);
  if (enter(&before)) {
    done = real(from, path, mode);
    if (done == 0) put_made(&place, A_FOLDER, "");
    leave(&before);
  }
  real_close(place.folder);
  return done;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

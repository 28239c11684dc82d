/* Owners and permissions are changed. */
#include "record.h"

static void put_owned(const struct stat *facts) {
  struct fields owned = event(OWNED, called(facts));
  rights_of(&owned, facts);
  put(&owned, NULL, 0);
}

#define OWNS(name, parameters, arguments)           \
  int name parameters {                             \
    REAL(name);                                     \
    struct stat facts;                              \
    sigset_t before;                                \
    if (!facts_of(file, &facts)) return real arguments; \
    if (!enter(&before)) return -1;                 \
    int done = real arguments;                      \
    if (done == 0 && fstat(file, &facts) == 0) put_owned(&facts); \
    leave(&before);                                 \
    return done;                                    \
  }
OWNS(fchmod, (int file, mode_t mode), (file, mode))
OWNS(fchown, (int file, uid_t uid, gid_t gid), (file, uid, gid))

#define OWNS_AT(name, parameters, from, arguments)           \
  int name parameters {                                      \
    REAL(name);                                              \
    struct place place;                                      \
    struct stat facts;                                       \
    sigset_t before;                                         \
    int done = -1;                                           \
    if (!located(from, path, &place)) return real arguments; \
    if (enter(&before)) {                                    \
      done = real arguments;                                 \
      if (done == 0 && facts_at(&place, &facts)) put_owned(&facts); \
      leave(&before);                                        \
    }                                                        \
    real_close(place.folder);                                \
    return done;                                             \
  }
OWNS_AT(chmod, (const char *path, mode_t mode), AT_FDCWD, (path, mode))
OWNS_AT(fchmodat, (int at, const char *path, mode_t mode, int how), at, (at, path, mode, how))
OWNS_AT(chown, (const char *path, uid_t uid, gid_t gid), AT_FDCWD, (path, uid, gid))
OWNS_AT(lchown, (const char *path, uid_t uid, gid_t gid), AT_FDCWD, (path, uid, gid))
OWNS_AT(fchownat, (int at, const char *path, uid_t uid, gid_t gid, int how), at,
        (at, path, uid, gid, how))

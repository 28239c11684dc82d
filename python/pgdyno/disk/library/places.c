/* What lies below the data directory, by its path and by what is open. */
#include "record.h"

uint8_t flags[HANDLES];

uint64_t called(const struct stat *what) {
  return what->st_ino == words[ROOT] ? 1 : (uint64_t)what->st_ino;
}

/* The path of what is open, below the data directory: "" for itself, NULL for what is elsewhere. */
const char *below(int file, char path[PATH_MAX]) {
  char link[40];
  int error = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = error;
  if (length < (ssize_t)top_length || memcmp(path, top, top_length) != 0) return NULL;
  path[length] = '\0';
  if (path[top_length] == '\0') return path + top_length;
  return path[top_length] == '/' ? path + top_length + 1 : NULL;
}

void first_of(const char *path, char first[NAME_MAX + 1]) {
  size_t length = strcspn(path, "/");
  if (length > NAME_MAX) length = NAME_MAX;
  memcpy(first, path, length);
  first[length] = '\0';
}

/* Where a path leads; false: not below the data directory, or nowhere. `close` its folder after. */
int located(int from, const char *path, struct place *place) {
  char parent[PATH_MAX], real[PATH_MAX];
  size_t length = path == NULL ? 0 : strlen(path);
  int error = errno;
  if (words == NULL || length == 0 || length >= sizeof parent) return 0;
  memcpy(parent, path, length + 1);
  while (length > 1 && parent[length - 1] == '/') parent[--length] = '\0';
  char *slash = strrchr(parent, '/');
  const char *name = slash == NULL ? parent : slash + 1;
  if (strlen(name) > NAME_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return 0;
  strcpy(place->name, name);
  if (slash == NULL) strcpy(parent, ".");
  else if (slash == parent) parent[1] = '\0';
  else *slash = '\0';
  static int (*open_at)(int, const char *, int, ...);
  if (open_at == NULL) open_at = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
  place->folder = open_at(from, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
  errno = error;
  if (place->folder == -1) return 0;
  const char *under = below(place->folder, real);
  struct stat facts;
  if (under != NULL && fstat(place->folder, &facts) == 0 && facts.st_dev == words[DEVICE]) {
    place->inode = called(&facts);
    first_of(*under == '\0' ? place->name : under, place->first);
    return 1;
  }
  real_close(place->folder);
  errno = error;
  return 0;
}

void name_of(struct fields *to, const struct place *place) {
  size_t length = strlen(place->name);
  number(to, place->inode, 8);
  number(to, length, 2);
  memcpy(to->bytes + to->length, place->name, length);
  to->length += length;
}

void rights_of(struct fields *to, const struct stat *what) {
  number(to, what->st_mode & 07777, 4);
  number(to, what->st_uid, 4);
  number(to, what->st_gid, 4);
}

int facts_at(const struct place *place, struct stat *facts) {
  int error = errno, found = fstatat(place->folder, place->name, facts, AT_SYMLINK_NOFOLLOW) == 0;
  errno = error;
  return found;
}

int has(int file, int flag) {
  return words != NULL && file >= 0 && file < HANDLES && (flags[file] & flag) != 0;
}

/* From now on, what is asked of it is written down, if it lies below the data directory. */
void follow(int file, int how) {
  char path[PATH_MAX];
  if (words == NULL || file < 0) return;
  if (file >= HANDLES) {
    if (below(file, path) != NULL) end_record(UNSEEN);
    return;
  }
  flags[file] = 0;
  if ((how & O_PATH) == O_PATH || below(file, path) == NULL) return;
  int syncs = (how & O_SYNC) == O_SYNC ? FULL_SYNC : (how & O_DSYNC) ? DATA_SYNC : 0;
  flags[file] = (uint8_t)(FOLLOWED | syncs | (how & O_APPEND ? APPENDS : 0));
}

int facts_of(int file, struct stat *facts) {
  if (!has(file, FOLLOWED) || fstat(file, facts) != 0) return 0;
  return facts->st_dev == words[DEVICE] && (S_ISREG(facts->st_mode) || S_ISDIR(facts->st_mode));
}

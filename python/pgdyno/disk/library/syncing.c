/* Data are settled. */
#include "record.h"

static int synced(int file, int (*real)(int), int data_only) {
  struct stat facts;
  sigset_t before;
  if (has(file, BUFFERED)) put_whole(file);
  if (!facts_of(file, &facts)) return real(file);
  if (!enter(&before)) return -1;
  uint64_t sync = words[SYNCS]++;
  put_sync(SYNC_BEGUN, called(&facts), sync, 0);
  leave(&before);
  /* Others go on meanwhile. */
  if (!meets_none_of(SYNC, file)) return -1;
  int done = real(file), error = errno;
  if (!enter(&before)) return -1;
  if (done == 0) put_sync(SYNC_ENDED, called(&facts), sync, data_only);
  leave(&before);
  errno = error;
  return done;
}

int fsync(int file) {
  REAL(fsync);
  return synced(file, real, 0);
}

int fdatasync(int file) {
  REAL(fdatasync);
  return synced(file, real, 1);
}

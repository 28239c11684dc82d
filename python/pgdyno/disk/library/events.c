/* The events of a record: what each call that was carried out is written down as. */
#include "record.h"

void put_added(uint64_t inode, const struct place *place) {
  struct fields added = event(ADDED, inode);
  name_of(&added, place);
  put(&added, NULL, 0);
}

void put_made(const struct place *place, enum file_kind kind, const char *target) {
  struct stat facts;
  if (!facts_at(place, &facts)) {
    end_record(UNSEEN);
    return;
  }
  struct fields made = event(MADE, called(&facts));
  number(&made, kind, 1);
  rights_of(&made, &facts);
  put(&made, target, strlen(target));
  put_added(called(&facts), place);
}

void put_size(enum event_kind kind, uint64_t inode, uint64_t size) {
  struct fields sized = event(kind, inode);
  number(&sized, size, 8);
  put(&sized, NULL, 0);
}

void put_written(uint64_t inode, uint64_t at, const void *data, size_t bytes) {
  struct fields written = event(WRITTEN, inode);
  number(&written, at, 8);
  put(&written, data, bytes);
}

void put_sync(enum event_kind kind, uint64_t inode, uint64_t sync, int data_only) {
  struct fields synced = event(kind, inode);
  number(&synced, sync, 8);
  if (kind == SYNC_ENDED) number(&synced, (uint64_t)data_only, 1);
  put(&synced, NULL, 0);
}

/* What a file is between two places, read from it: nobody else writes meanwhile. */
void put_again(int file, off64_t from, off64_t to) {
  static char part[1 << 16];
  char path[40];
  struct stat facts;
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  int again = real_open(path, O_RDONLY), error = errno;
  if (again == -1 || fstat(again, &facts) != 0) {
    end_record(UNSEEN);
    return;
  }
  while (from < to) {
    size_t wanted = to - from < (off64_t)sizeof part ? (size_t)(to - from) : sizeof part;
    ssize_t bytes = pread64(again, part, wanted, from);
    if (bytes <= 0) break;
    put_written(called(&facts), (uint64_t)from, part, (size_t)bytes);
    from += bytes;
  }
  real_close(again);
  errno = error;
}

/* What a file that was written through a buffer of the C library has come to. */
void put_whole(int file) {
  struct stat facts;
  sigset_t before;
  if (!has(file, BUFFERED) || !facts_of(file, &facts) || !enter(&before)) return;
  if (fstat(file, &facts) == 0) put_again(file, 0, facts.st_size);
  leave(&before);
}

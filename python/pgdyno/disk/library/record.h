/* Preloaded into a PostgreSQL server whose disk is recorded where no file system of ours can be
 * mounted: each call that changes something below the data directory, or settles it, is carried out
 * and written down, one at a time, in the order in which they came about. What the record means
 * stands in crates/disk/src/event.rs; files are called by their inodes, of which crates/disk/src/
 * preloaded.rs makes numbers that are never used twice.
 *
 * The words are shared by all processes of the server and the one that records (preloaded.py). They
 * and the record are changed by whoever holds a lock on the record, which the kernel takes from
 * those that are killed. Without the words everything passes through. */
#ifndef RECORD_H
#define RECORD_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The layout is that of preloaded.py. */
enum word {
  LOADED,    /* programs that have the library */
  BYTES,     /* of the record: up to here it is whole */
  BYTES_MAX, /* most that it may take */
  ENDED,     /* why nothing more is recorded: an enum ended */
  ENDED_NS,  /* since when */
  GONE_NS,   /* when the power went; 0: it is there */
  SYNCS,     /* that have begun */
  BUSY,      /* which process is between a call and its record; 0: none */
  MET,       /* calls that met a fault */
  ROOT,      /* inode of the data directory */
  DEVICE,    /* where it lies */
  FAULT,     /* which calls meet one: an enum asked */
  ANSWER,    /* what they get: an errno, or 0 for none until it is over */
  LASTS_NS,  /* from the first call on that meets it */
  UNTIL_NS,  /* when it is over; 0: no call has met it yet */
  WHERE,     /* 0 anywhere, 1 below the folder of that name, 2 everywhere else */
  FOLDER,    /* its name, with its end, in the words from here on */
  WORDS = FOLDER + 8
};
enum ended { GOES_ON, NO_ROOM, DIED_BETWEEN, UNWRITTEN, UNSEEN };
enum asked { NOTHING, WRITE, GROW, SYNC };
enum event_kind {
  MADE = 1,
  ADDED,
  REMOVED,
  MOVED,
  OWNED,
  CUT,
  GROWN,
  WRITTEN,
  SYNC_BEGUN,
  SYNC_ENDED
};
enum file_kind { A_FILE, A_FOLDER, A_LINK };
/* What is known of a descriptor. */
enum flag { FOLLOWED = 1, DATA_SYNC = 2, FULL_SYNC = 4, BUFFERED = 8, APPENDS = 16 };

#define HANDLES 65536
#define HEAD 13

/* The C library's own. */
#define REAL(name)                \
  static __typeof__(&name) real;  \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* The server has functions of its own by such names. */
#pragma GCC visibility push(hidden)

extern volatile uint64_t *words;
extern int record;
extern char top[PATH_MAX];
extern size_t top_length;
extern uint8_t flags[HANDLES];

/* An event before it is written down. */
struct fields {
  unsigned char bytes[HEAD + 40 + 2 * (NAME_MAX + 10)];
  size_t length;
};

/* A name in a folder that is recorded; the folder is held open meanwhile. */
struct place {
  int folder;
  uint64_t inode;
  char name[NAME_MAX + 1];
  char first[NAME_MAX + 1]; /* the first name of its path */
};

int real_open(const char *path, int how);
void real_close(int file);
uint64_t now_ns(void);
void end_record(uint64_t why);
int enter(sigset_t *before);
void leave(const sigset_t *before);
void number(struct fields *to, uint64_t value, size_t bytes);
struct fields event(enum event_kind kind, uint64_t inode);
void put(struct fields *what, const void *data, size_t bytes);

uint64_t called(const struct stat *what);
const char *below(int file, char path[PATH_MAX]);
void first_of(const char *path, char first[NAME_MAX + 1]);
int located(int from, const char *path, struct place *place);
void name_of(struct fields *to, const struct place *place);
void rights_of(struct fields *to, const struct stat *what);
int facts_at(const struct place *place, struct stat *facts);
int has(int file, int flag);
void follow(int file, int how);
int facts_of(int file, struct stat *facts);

void put_added(uint64_t inode, const struct place *place);
void put_made(const struct place *place, enum file_kind kind, const char *target);
void put_size(enum event_kind kind, uint64_t inode, uint64_t size);
void put_written(uint64_t inode, uint64_t at, const void *data, size_t bytes);
void put_sync(enum event_kind kind, uint64_t inode, uint64_t sync, int data_only);
void put_again(int file, off64_t from, off64_t to);
void put_whole(int file);

int meets_none(enum asked asked, const char *first);
int meets_none_of(enum asked asked, int file);

#pragma GCC visibility pop
#endif

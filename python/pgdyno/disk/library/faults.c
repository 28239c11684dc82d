/* Faults of the device: calls that fail, or get no answer for a while. */
#include "record.h"

/* A call may meet a fault of the device: false, with its error, or late. */
int meets_none(enum asked asked, const char *first) {
  uint64_t which = words[FAULT];
  if (which == NOTHING) return 1;
  int by_call = which == WRITE ? asked != SYNC : asked == which;
  int there = strcmp(first, (const char *)(const void *)&words[FOLDER]) == 0;
  if (!by_call || (words[WHERE] == 1 && !there) || (words[WHERE] == 2 && there)) return 1;
  uint64_t now = now_ns(), none = 0, until = now + words[LASTS_NS];
  if (!__atomic_compare_exchange_n(
          &words[UNTIL_NS], &none, until, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    until = none;
  }
  if (now > until) return 1;
  __atomic_fetch_add(&words[MET], 1, __ATOMIC_RELAXED);
  if (words[ANSWER] != 0) {
    errno = (int)words[ANSWER];
    return 0;
  }
  uint64_t left = until - now;
  struct timespec wait = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
  while (nanosleep(&wait, &wait) == -1 && errno == EINTR) {}
  return 1;
}

int meets_none_of(enum asked asked, int file) {
  char path[PATH_MAX], first[NAME_MAX + 1] = "";
  if (words[FAULT] == NOTHING) return 1;
  const char *under = below(file, path);
  if (under != NULL) first_of(under, first);
  return meets_none(asked, first);
}

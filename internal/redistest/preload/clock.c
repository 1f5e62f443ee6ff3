/* Shifts the wall clock of the process that it is preloaded into by the seconds
   in the file REDISTEST_CLOCK (one int64), as soon as they are written there.
   Redis reads its wall clock by gettimeofday() and time() only; the monotonic
   clock, by which its timers go, is as ever. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none;
static volatile int64_t *shift = &none;

__attribute__((constructor)) static void map_clock(void) {
  const char *path = getenv("REDISTEST_CLOCK");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return;
  void *p = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  if (p != MAP_FAILED) shift = p;
  close(fd);
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  struct timespec real;
  (void)tz;
  clock_gettime(CLOCK_REALTIME, &real);
  tv->tv_sec = real.tv_sec + *shift;
  tv->tv_usec = real.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timeval tv;
  gettimeofday(&tv, NULL);
  if (out) *out = tv.tv_sec;
  return tv.tv_sec;
}

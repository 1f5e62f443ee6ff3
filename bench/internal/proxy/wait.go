package proxy

import (
	"syscall"
	"time"
)

// waitUntil sleeps by the kernel's timer: Go's own rounds up to a millisecond
// when a process is otherwise idle, which is twice the delay that is wanted.
func waitUntil(due time.Time) {
	for d := time.Until(due); d > 0; d = time.Until(due) {
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // interrupted: go round again
	}
}

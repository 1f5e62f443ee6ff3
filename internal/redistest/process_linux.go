package redistest

import "syscall"

// dieWithParent has the kernel kill the child when the test binary ends in whatever way.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

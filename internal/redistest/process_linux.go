package redistest

import "syscall"

// DieWithParent has the kernel kill the child when the test binary ends in whatever way.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing here: a test binary that is killed leaves its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }

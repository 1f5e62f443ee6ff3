//go:build !linux

package redistest

import "syscall"

// DieWithParent does nothing here: a test binary that is killed leaves its servers running.
func DieWithParent() *syscall.SysProcAttr { return nil }

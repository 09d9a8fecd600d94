//go:build unix

package live

import (
	"syscall"
	"time"
)

// processorTime returns the processor time this process has used; 0 if the system does not
// report it.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

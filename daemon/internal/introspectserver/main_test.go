package introspectserver

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails the package when tests leave goroutines or descriptors behind.
func TestMain(m *testing.M) {
	descriptors := openDescriptors()
	code := m.Run()
	// The fuzzing engine keeps a goroutine for signals.
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	if code == 0 && !fuzzing && !settled(descriptors) {
		code = 1
	}
	os.Exit(code)
}

func settled(descriptors int) bool {
	deadline := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		// The ticker needs no goroutine. The runtime opens an epoll descriptor and an
		// eventfd with the first socket and keeps them.
		if runtime.NumGoroutine() == 1 && openDescriptors() <= descriptors+2 {
			return true
		}
		<-tick.C
	}
	fmt.Fprintf(os.Stderr, "left behind: %d goroutines, %d descriptors (%d before)\n", runtime.NumGoroutine()-1, openDescriptors(), descriptors)
	pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	return false
}

func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

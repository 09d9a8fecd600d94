// Package leftover fails a test binary whose tests leave goroutines or descriptors behind. It
// does not report which test did.
package leftover

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"cnictl/testenv"
)

// looks is how often goroutines and descriptors may still be there after the tests: for half a minute,
// or longer where the machine is busy, as looks are then further apart.
const looks = 6000

// Main runs the tests and exits, with a failure if something is left behind. It is the whole
// body of a TestMain.
func Main(m *testing.M) {
	descriptors := openDescriptors()
	code := testenv.Run(m)
	// The fuzzing engine keeps a goroutine for signals.
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	if code == 0 && !fuzzing && !settled(descriptors) {
		code = 1
	}
	os.Exit(code)
}

func settled(descriptors int) bool {
	tick := time.NewTicker(5 * time.Millisecond) //realtime: the pace
	defer tick.Stop()
	for range looks {
		// The ticker needs no goroutine. The runtime opens an epoll descriptor and an
		// eventfd with the first socket and keeps them.
		if runtime.NumGoroutine() == 1 && openDescriptors() <= descriptors+2 {
			return true
		}
		<-tick.C
	}
	fmt.Fprintf(os.Stderr, "left behind: %d goroutines, %d descriptors (%d before)\n", runtime.NumGoroutine()-1, openDescriptors(), descriptors)
	if err := pprof.Lookup("goroutine").WriteTo(os.Stderr, 1); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return false
}

func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

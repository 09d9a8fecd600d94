package vpc_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// maxStartFaults bounds the minor page faults of a start: they, and not instructions,
// are what a start costs. It takes about 200; package init of a library as large as
// fmt, net or encoding/json is to be noticed before it takes a millisecond per pod.
const maxStartFaults = 400

// TestBinary_StartFaults counts instead of timing, so that a busy machine does not
// matter.
func TestBinary_StartFaults(t *testing.T) {
	bin, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	var fewest int64
	for range 5 { // the first run may find the binary outside of the page cache
		cmd := exec.CommandContext(t.Context(), bin)
		cmd.Env = []string{"CNI_COMMAND=VERSION"}
		out, err := cmd.Output()
		if err != nil || string(out) != recorded(t, "version.json") {
			t.Fatalf("VERSION: %v, %s", err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || usage.Minflt == 0 {
			t.Fatalf("no page faults were counted: %+v", cmd.ProcessState.SysUsage())
		}
		if fewest == 0 || usage.Minflt < fewest {
			fewest = usage.Minflt
		}
	}
	t.Logf("%d minor page faults", fewest)
	if fewest >= maxStartFaults {
		t.Errorf("a start takes %d minor page faults, must stay below %d", fewest, maxStartFaults)
	}
}

// TestBinary_StartFaultsCount: the measure tells a large program from a small one.
func TestBinary_StartFaultsCount(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.list", "^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); !ok || usage.Minflt < maxStartFaults {
		t.Errorf("this test binary, with most of the standard library, starts with %+v", usage)
	}
}

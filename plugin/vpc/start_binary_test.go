package vpc_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// maxStartFaults bounds the minor page faults of a start, which dominate its cost, not
// instructions. A start takes about 200. The limit must catch the package init of a library as
// large as fmt, net or encoding/json before it costs a millisecond per pod.
const maxStartFaults = 400

// TestBinary_StartFaults counts faults instead of timing, so a busy machine does not matter.
func TestBinary_StartFaults(t *testing.T) {
	bin, err := buildPlugin()
	if err != nil {
		t.Fatal(err)
	}
	fewest := startFaults(t, func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), bin)
		cmd.Env = []string{"CNI_COMMAND=VERSION"}
		return cmd
	}, recorded(t, "version.json"))
	t.Logf("%d minor page faults", fewest)
	if fewest >= maxStartFaults {
		t.Errorf("a start takes %d minor page faults, must stay below %d", fewest, maxStartFaults)
	}
}

// TestBinary_StartFaultsCount: the measurement can tell a large program from a small one.
func TestBinary_StartFaultsCount(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	large := startFaults(t, func() *exec.Cmd { return exec.CommandContext(t.Context(), self, "-test.list", "^$") }, "")
	small := startFaults(t, func() *exec.Cmd { return exec.CommandContext(t.Context(), "/bin/true") }, "")
	if large <= small {
		t.Errorf("this test binary, with most of the standard library, takes %d faults, /bin/true %d", large, small)
	}
}

// startFaults runs a command five times (the first run may find the binary outside the
// page cache) and returns the fewest minor page faults.
func startFaults(t *testing.T, command func() *exec.Cmd, want string) int64 {
	t.Helper()
	var fewest int64
	for range 5 {
		cmd := command()
		out, err := cmd.Output()
		if err != nil || string(out) != want {
			t.Fatalf("%v: %v, %s", cmd.Args, err, out)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok || usage.Minflt == 0 {
			t.Fatalf("no page faults were counted: %+v", cmd.ProcessState.SysUsage())
		}
		if fewest == 0 || usage.Minflt < fewest {
			fewest = usage.Minflt
		}
	}
	return fewest
}

package testenv_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
)

func TestSandbox_HasItsOwnNamespaces(t *testing.T) {
	testenv.RequireRoot(t)
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Attrs().Name == "lo" && l.Attrs().RawFlags&unix.IFF_UP == 0 {
			t.Error("lo is down")
		}
		// Modules may put unused tunnel devices into every namespace.
		if l.Attrs().Name != "lo" && l.Attrs().RawFlags&unix.IFF_UP != 0 {
			t.Errorf("link %s of another namespace is visible", l.Attrs().Name)
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/var/run", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Errorf("/var/run: type %#x, error %v; want a tmpfs", fs.Type, err)
	}
	if err := os.WriteFile("/run/xtables.lock", nil, 0o600); err != nil {
		t.Error(err)
	}
	if os.Getppid() != 1 {
		t.Errorf("parent is %d, want process 1 of the sandbox", os.Getppid())
	}
}

func TestSandbox_AdoptedOrphansAreReaped(t *testing.T) {
	testenv.RequireRoot(t)
	// The inner shell leaves a child behind and prints its process id.
	out, err := exec.Command("sh", "-c", "(exec sleep 0.05 >/dev/null 2>&1) & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	proc := filepath.Join("/proc", strings.TrimSpace(string(out)))
	testenv.Eventually(t, "the orphan to be reaped", func() bool {
		_, err := os.Stat(proc)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestSandbox_DiesWithItsStarter(t *testing.T) {
	testenv.RequireRoot(t)
	for _, sig := range []syscall.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) { starterDies(t, sig) })
	}
}

func starterDies(t *testing.T, sig syscall.Signal) {
	cmd := exec.Command("/proc/self/exe")
	// Without the variables, the child creates a sandbox itself.
	cmd.Env = append(clean(os.Environ()), helperVar+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // closed by Wait
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var namespace string
	for lines := bufio.NewScanner(out); namespace == "" && lines.Scan(); {
		namespace, _ = strings.CutPrefix(lines.Text(), "HOLDING ")
		if namespace == lines.Text() {
			namespace = ""
		}
	}
	if namespace == "" {
		t.Fatalf("helper did not start: %v", cmd.Wait())
	}
	if n := processesIn(t, namespace); n != 2 {
		t.Errorf("%d processes in the helper's sandbox, want 2", n)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the sandbox to be empty", func() bool { return processesIn(t, namespace) == 0 })
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 77 {
		t.Errorf("the helper ended by itself: %v", cmd.ProcessState)
	}
}

func clean(env []string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, "CNICTL_TESTENV_") {
			out = append(out, e)
		}
	}
	return out
}

// processesIn counts the processes in a network namespace, given as /proc/<pid>/ns/net
// shows it.
func processesIn(t *testing.T, namespace string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && target == namespace {
			n++
		}
	}
	return n
}

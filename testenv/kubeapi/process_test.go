package kubeapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"cnictl/testenv"

	"golang.org/x/sys/unix"
)

// forever is a program that runs until it is killed.
const forever = "exec cat /dev/zero >/dev/null"

func TestProcess(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.TempDir(), "/bin/sh", "-c", "echo hello; "+forever)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.kill(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(p.pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

// TestProcess_EndsByItself: kill reports an earlier exit, and tail the end of the log.
func TestProcess_EndsByItself(t *testing.T) {
	t.Parallel()
	p, err := startProcess(t.TempDir(), "/bin/sh", "-c", "yes no | head -c 21000; echo why; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if err := p.kill(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("kill: %v", err)
	}
	if tail := p.tail(); len(tail) > logTail+100 || !strings.HasSuffix(tail, "no\nwhy\n") || !strings.Contains(tail, "sh:\nno\n") {
		t.Errorf("tail of %d bytes: %.60q", len(tail), tail)
	}
}

func TestProcess_DoesNotStart(t *testing.T) {
	t.Parallel()
	if _, err := startProcess(t.TempDir(), "/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// holderVar makes TestProcess_Holder hold a process, in the directory it names,
// until the holder is killed.
const holderVar = "CNICTL_KUBEAPI_HOLDER"

// TestProcess_EndsWithItsStarter: no child outlives a test binary that is killed.
func TestProcess_EndsWithItsStarter(t *testing.T) {
	t.Parallel()
	holder := exec.Command("/proc/self/exe", "-test.run=^TestProcess_Holder$")
	holder.Env = append(os.Environ(), holderVar+"="+t.TempDir())
	holder.Stderr = os.Stderr
	stdin, err := holder.StdinPipe() // held open, so that the holder waits
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	if err := holder.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = holder.Wait() // killed
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || readErr != nil {
		t.Fatalf("the holder said %q: %v", line, errors.Join(err, readErr))
	}
	testenv.Eventually(t, fmt.Sprintf("the end of process %d", pid), func() bool { return gone(pid) })
}

// gone reports whether a process has ended, even if it is still a zombie.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// TestProcess_Holder is not a test but the process that the test above kills.
func TestProcess_Holder(t *testing.T) {
	dir := os.Getenv(holderVar)
	if dir == "" {
		return
	}
	p, err := startProcess(dir, "/bin/sh", "-c", forever)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(p.pid)
	_, err = io.Copy(io.Discard, os.Stdin)
	t.Fatalf("standard input ended: %v", err)
}

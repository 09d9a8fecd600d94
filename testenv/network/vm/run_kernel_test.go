package vm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/network/vm"
)

// timeoutVar is the guest's time limit.
const timeoutVar = "VM_TEST_TIMEOUT"

// outcome is how a guest ended.
type outcome struct {
	Code int
	Err  string
}

// outcomeFD is where the outer half of a program reports its outcome.
const outcomeFD = 3

// program runs either half of a program; the name selects what the inner half does.
func program(name string) int {
	if vm.Inside() {
		return inner[name]()
	}
	files, err := vm.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	limit, err := time.ParseDuration(os.Getenv(timeoutVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var o outcome
	o.Code, err = vm.Run(context.Background(), files, vm.Options{Memory: 512, Timeout: limit, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		o.Err = err.Error()
	}
	if err := json.NewEncoder(os.NewFile(outcomeFD, "outcome")).Encode(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var inner = map[string]func() int{
	"power": func() int { return failed(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)) },
	"panic": func() int { return failed(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)) },
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	if err != nil {
		return 1
	}
	return 0
}

// run runs a program to its end.
func run(t *testing.T, name string) (o outcome) {
	t.Helper()
	testenv.RequireRoot(t)
	if _, err := vm.Find(); err != nil {
		testenv.Missing(t, "vlan", err.Error(), "make vm")
	}
	dir := t.TempDir()
	results, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), programVar+"="+name, timeoutVar+"="+testenv.Left(t).String(), "TMPDIR="+dir)
	cmd.ExtraFiles = []*os.File{theirs}
	out, err := cmd.CombinedOutput()
	theirs.Close()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := json.NewDecoder(results).Decode(&o); err != nil {
		t.Fatalf("no report from the outer half: %v", err)
	}
	nothingLeft(t, dir)
	if left, err := filepath.Glob(filepath.Join(dir, "vm*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	return o
}

// nothingLeft waits until no process has the directory on its command line, as a guest's
// QEMU has.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	testenv.EventuallyErr(t, "the end of the guest's processes", func() error {
		var left []string
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(dir+"/vm")) {
				left = append(left, f)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

// A guest that ends before its program is neither a success nor an exit status.
func TestRun_CrashedGuest(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"power": "ended without a result", "panic": "sysrq triggered crash"} {
		if o := run(t, name); o.Code != 0 || !strings.Contains(o.Err, said) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

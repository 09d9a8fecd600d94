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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := vm.Options{Memory: 512, Timeout: limit, Stdout: os.Stdout, Stderr: os.Stderr}
	if name == "cancelled" {
		options.Stdout = &trigger{at: hanging, then: cancel}
	}
	var o outcome
	o.Code, err = vm.Run(ctx, files, options)
	if err != nil {
		o.Err = err.Error()
	}
	if err := json.NewEncoder(os.NewFile(outcomeFD, "outcome")).Encode(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hanging is what a program prints before it hangs.
const hanging = "HANGING\n"

// trigger passes output on and calls a function after a given text.
type trigger struct {
	at   string
	then func()
	seen strings.Builder
}

func (t *trigger) Write(p []byte) (int, error) {
	t.seen.Write(p)
	if t.seen.String() == t.at {
		t.then()
	}
	return os.Stdout.Write(p)
}

var inner = map[string]func() int{
	"power":     func() int { return failed(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)) },
	"panic":     func() int { return failed(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)) },
	"hang":      hang,
	"cancelled": hang,
}

func hang() int {
	fmt.Print(hanging)
	<-time.After(time.Hour) //realtime: the runtime would end a process that nothing can wake
	return 0
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	if err != nil {
		return 1
	}
	return 0
}

// start starts the outer half of a program. Its temporary files lie in dir.
func start(t *testing.T, name string, limit time.Duration, args ...string) (cmd *exec.Cmd, dir string, result func() outcome) {
	t.Helper()
	testenv.RequireRoot(t)
	_, err := vm.Find()
	if err != nil {
		testenv.Missing(t, "vlan", err.Error(), "make vm")
	}
	dir = t.TempDir()
	results, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { results.Close() })
	cmd = exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), programVar+"="+name, timeoutVar+"="+limit.String(), "TMPDIR="+dir)
	cmd.ExtraFiles = []*os.File{theirs}
	return cmd, dir, func() (o outcome) {
		t.Helper()
		theirs.Close()
		if err := json.NewDecoder(results).Decode(&o); err != nil {
			t.Fatalf("no report from the outer half: %v", err)
		}
		return o
	}
}

// run runs a program to its end.
func run(t *testing.T, name string, limit time.Duration, args ...string) (o outcome, stdout, stderr string) {
	t.Helper()
	cmd, dir, result := start(t, name, limit, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	o = result()
	nothingLeft(t, dir)
	if left, err := filepath.Glob(filepath.Join(dir, "vm*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	return o, out.String(), complaints.String()
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

// crashes are programs that end the guest, with what is said about it.
var crashes = map[string]string{"power": "ended without a result"}

// A guest that ends before its program is neither a success nor an exit status.
func TestRun_CrashedGuest(t *testing.T) {
	t.Parallel()
	for name, said := range crashes {
		if o, _, _ := run(t, name, testenv.Left(t)); o.Code != 0 || !strings.Contains(o.Err, said) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

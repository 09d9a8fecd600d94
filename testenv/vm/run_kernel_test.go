package vm_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/vm"
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
	switch name {
	case "cancelled":
		options.Stdout = &trigger{at: hanging, then: cancel}
	case "connect":
		server, err := serve()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		_, text, _ := strings.Cut(server.Addr().String(), ":")
		port, err := strconv.Atoi(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		options.Ports, options.Env = []int{port}, []string{addressVar + "=" + server.Addr().String()}
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

// addressVar holds the address of a server outside the guest that reverses its input.
const addressVar = "VM_TEST_ADDRESS"

func serve() (net.Listener, error) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			data, _ := io.ReadAll(c) // the client compares the answer
			slices.Reverse(data)
			_, _ = c.Write(data)
			c.Close()
		}
	}()
	return server, nil
}

// connect talks to the server outside, over several concurrent connections.
func connect() error {
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		all.Go(func() {
			errs[i] = func() error {
				c, err := net.Dial("tcp4", os.Getenv(addressVar))
				if err != nil {
					return err
				}
				defer c.Close()
				sent := bytes.Repeat([]byte{byte(i), 'x', 'y'}, 100_000)
				if _, err := c.Write(sent); err != nil {
					return err
				}
				if err := c.(*net.TCPConn).CloseWrite(); err != nil {
					return err
				}
				got, err := io.ReadAll(c)
				slices.Reverse(got)
				if err == nil && !bytes.Equal(got, sent) {
					err = fmt.Errorf("sent %d bytes, %d came back, not all the same", len(sent), len(got))
				}
				return err
			}()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

const floodSize = 1 << 20

var inner = map[string]func() int{
	"speak": func() int {
		dir, err := os.Getwd()
		fmt.Printf("args %q, in %s, %v\n", os.Args[1:], dir, err)
		fmt.Fprintln(os.Stderr, "complaint\tof two words")
		return 7
	},
	"flood": func() int {
		b := bytes.Repeat([]byte("0123456789abcde\n"), floodSize/16)
		if _, err := os.Stdout.Write(b); err != nil {
			return 1
		}
		return 0
	},
	"killed": func() int {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	},
	"power":     func() int { return failed(unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)) },
	"panic":     func() int { return failed(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)) },
	"hang":      hang,
	"cancelled": hang,
	"connect":   func() int { return failed(connect()) },
	"system":    func() int { return failed(lookAround()) },
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

// lookAround checks what the package promises a guest's program.
func lookAround() error {
	var errs []error
	check := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	if err := os.WriteFile("written", nil, 0o600); !errors.Is(err, unix.EROFS) {
		check("the caller's files", errors.Join(errors.New("written to"), err))
	}
	check("temporary files", os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600))
	check("/run", os.WriteFile("/run/x", nil, 0o600))
	check("veth", netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}))
	a, err := netlink.LinkByName("a")
	check("veth", err)
	if err == nil {
		check("VLAN", netlink.LinkAdd(&netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "a.3", ParentIndex: a.Attrs().Index}, VlanId: 3}))
	}
	rule := netlink.NewRule()
	rule.Family, rule.IifName, rule.Table, rule.Priority = netlink.FAMILY_V6, "a.3", 103, 10
	check("IPv6 policy rule", netlink.RuleAdd(rule))
	for _, args := range [][]string{
		{"iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "!", "-o", "vlan+", "-m", "comment", "--comment", "AWS, SNAT", "-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", "SNAT", "--to-source", "10.0.0.1", "--random-fully"},
		{"iptables-legacy", "-w", "-t", "mangle", "-A", "PREROUTING", "-i", "vlan+", "-j", "CONNMARK", "--restore-mark", "--mask", "0x80"},
		{"ip6tables", "-w", "-t", "filter", "-S"},
		{"nft", "add table ip t; add chain ip t c { type nat hook postrouting priority 100; }; add rule ip t c oifname b counter snat to 10.0.0.1"},
	} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			check(strings.Join(args, " "), fmt.Errorf("%w: %s", err, out))
		}
	}
	out, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil || string(out) != "0-1\n" {
		check("two CPUs", fmt.Errorf("%q, %w", out, err))
	}
	return errors.Join(errs...)
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

func TestRun_GivesAndTakesWhatAProgramHas(t *testing.T) {
	t.Parallel()
	o, stdout, stderr := run(t, "speak", testenv.Left(t), "-one", "two words", "-test.testlogfile=/x")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("args [\"-one\" \"two words\"], in %s, <nil>\n", dir)
	if o.Code != 7 || o.Err != "" || stdout != want || stderr != "complaint\tof two words\n" {
		t.Errorf("%+v\n%q, want %q\n%q", o, stdout, want, stderr)
	}
}

func TestRun_LosesNoOutput(t *testing.T) {
	t.Parallel()
	o, stdout, _ := run(t, "flood", testenv.Left(t))
	want := sha256.Sum256(bytes.Repeat([]byte("0123456789abcde\n"), floodSize/16))
	if o.Code != 0 || o.Err != "" || sha256.Sum256([]byte(stdout)) != want {
		t.Errorf("%+v, %d bytes of %d", o, len(stdout), floodSize)
	}
}

func TestRun_IsASystemWithVLAN(t *testing.T) {
	t.Parallel()
	if o, _, stderr := run(t, "system", testenv.Left(t)); o.Code != 0 || o.Err != "" {
		t.Errorf("%+v: %s", o, stderr)
	}
}

func TestRun_ReportsTheSignal(t *testing.T) {
	t.Parallel()
	if o, _, _ := run(t, "killed", testenv.Left(t)); o.Code != 128+9 || o.Err != "" {
		t.Errorf("%+v", o)
	}
}

func TestRun_ReachesPortsOfTheCaller(t *testing.T) {
	t.Parallel()
	if o, _, stderr := run(t, "connect", testenv.Left(t)); o.Code != 0 || o.Err != "" {
		t.Errorf("%+v: %s", o, stderr)
	}
}

// A guest that ends before its program is neither a success nor an exit status.
func TestRun_CrashedGuest(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"power": "ended without a result", "panic": "sysrq triggered crash"} {
		if o, _, _ := run(t, name, testenv.Left(t)); o.Code != 0 || !strings.Contains(o.Err, said) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestRun_HungGuest(t *testing.T) {
	t.Parallel()
	o, stdout, _ := run(t, "cancelled", testenv.Left(t))
	if o.Code != 0 || !strings.Contains(o.Err, context.Canceled.Error()) || !strings.Contains(o.Err, "end of its console") {
		t.Errorf("%+v", o)
	}
	if stdout != hanging {
		t.Errorf("what it printed before: %q", stdout)
	}
}

func TestRun_TimeLimit(t *testing.T) {
	t.Parallel()
	o, _, _ := run(t, "hang", time.Second)
	if o.Code != 0 || !strings.Contains(o.Err, context.DeadlineExceeded.Error()) {
		t.Errorf("%+v", o)
	}
}

func TestRun_EndsWithItsStarter(t *testing.T) {
	t.Parallel()
	cmd, dir, result := start(t, "hang", testenv.Left(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len(hanging))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != hanging {
		t.Fatalf("%q, %v: %+v", line, err, result())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
	_ = cmd.Wait() // killed
}

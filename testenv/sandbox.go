package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
	"cnictl/testenv/network/vm"
	"cnictl/testenv/node/agent"
)

// Environment variables carry the stage of the sandbox from one process to the next.
const (
	stageVar   = "CNICTL_TESTENV_STAGE"
	refusedVar = "CNICTL_TESTENV_REFUSED"

	guestRefusedVar = "CNICTL_TESTENV_GUEST_REFUSED" // why there is no guest

	stageInit   = "init"   // process 1 of the sandbox: mounts, starts the program, reaps
	stageInside = "inside" // the program
)

// reportFD is where process 1 reports whether the sandbox is ready: the first extra
// file that it inherits.
const reportFD = 3

// sandboxReady is the report of process 1 when everything is set up. Any other
// text is the reason for a failure.
const sandboxReady = "ready"

// Enter moves the program into a sandbox: it starts the program again in new
// namespaces, with the same arguments and streams, and exits with its status.
// In the sandbox Enter returns nil immediately. In the first process it
// returns an error if the kernel does not allow the sandbox.
//
// Three processes are then alive: this one, which only waits; process 1 of the
// sandbox, which reaps orphans; and the program. Killing any of them ends all.
//
// A process that was started as the agent of a simulated node becomes that agent
// instead, and process 1 of a guest of testenv/network/vm runs the program there.
func Enter() error {
	agent.Maybe()
	vm.Maybe()
	switch os.Getenv(stageVar) {
	case stageInside:
		return nil
	case stageInit:
		os.Exit(runInit())
	}
	code, err := runSandbox()
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// Inside reports whether the process runs in a sandbox.
func Inside() bool { return os.Getenv(stageVar) == stageInside }

// runSandbox tries to create the namespaces with the caller's own rights and, if those do
// not suffice, with a user namespace.
func runSandbox() (code int, err error) {
	var refused []error
	if os.Geteuid() == 0 {
		code, err := startSandbox(false)
		if err == nil {
			return code, nil
		}
		refused = append(refused, fmt.Errorf("as root: %w", err))
	}
	code, err = startSandbox(true)
	if err == nil {
		return code, nil
	}
	return 0, errors.Join(append(refused, fmt.Errorf("with a user namespace: %w", err))...)
}

// startSandbox starts process 1 and waits for its exit. An error means that the sandbox was
// never ready.
func startSandbox(userNS bool) (code int, err error) {
	// The kernel sends the parent-death signal when the *thread* that started the
	// child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	report, reportW, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("start sandbox: %w", err)
	}
	defer report.Close()
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   withVar(os.Environ(), stageVar, stageInit),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, reportW},
		Sys:   sandboxAttr(userNS),
	})
	reportW.Close()
	if err != nil {
		return 0, fmt.Errorf("start sandbox: %w", err)
	}
	stop := forwardSignals(child.Pid)
	defer stop()

	said := make([]byte, 4096)
	n, _ := report.Read(said) // nothing read: process 1 died before its report
	state, err := child.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for sandbox: %w", err)
	}
	if text := string(said[:n]); text != sandboxReady {
		if text == "" {
			text = state.String()
		}
		return 0, fmt.Errorf("set up sandbox: %s", text)
	}
	return exitCode(state.Sys().(syscall.WaitStatus)), nil
}

func sandboxAttr(userNS bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
	}
	if userNS {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// runInit is process 1 of the sandbox. It never returns to the program's main.
func runInit() int {
	if os.Getpid() != 1 { // a stray variable must not start sandboxes in a chain
		fmt.Fprintf(os.Stderr, "testenv: %s=%s in a process that is not the first of its namespace\n", stageVar, stageInit)
		return 1
	}
	report := os.NewFile(reportFD, "report")
	// The program must not inherit it: it would keep the pipe open, and a fuzz worker expects
	// its own files at these numbers.
	unix.CloseOnExec(reportFD)
	err := setUpSandbox()
	if err != nil {
		fmt.Fprint(report, err)
		return 1
	}
	// Blocked signals would be lost between fork and handler; none is blocked here.
	pid, err := startInside()
	if err != nil {
		fmt.Fprint(report, err)
		return 1
	}
	stop := forwardSignals(pid)
	defer stop()
	fmt.Fprint(report, sandboxReady)
	report.Close()
	return reapUntil(pid)
}

func startInside() (int, error) {
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{
		Env:   withVar(os.Environ(), stageVar, stageInside),
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s in sandbox: %w", os.Args[0], err)
	}
	return pid, nil
}

// setUpSandbox prepares the namespaces for the program.
func setUpSandbox() error {
	// Mounts made from here on must not appear outside.
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// /var/run is a link to /run on every system we support. Sockets, locks
	// (xtables.lock) and named namespaces live there.
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount tmpfs on /run: %w", err)
	}
	if err := os.MkdirAll(netns.Dir, 0o755); err != nil {
		return err
	}
	// The new process numbers need a new /proc. If the kernel refuses it (parts of the old
	// one are masked, as in many containers), the old one stays: /proc/self still names the
	// right process, and only the numbers differ.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: keep the machine's /proc, process numbers in it differ: mount: %v\n", err)
	}
	return netns.LoopbackUp()
}

// reapUntil collects the status of every child, adopted orphans included, and
// returns the exit code of one of them when it ends.
func reapUntil(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "testenv: wait:", err)
			return 1
		}
		if ended == pid {
			return exitCode(status)
		}
	}
}

// forwardSignals passes signals that ask a program to end or to print its goroutines on to
// a child.
func forwardSignals(pid int) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT)
	go func() {
		for s := range signals {
			_ = unix.Kill(pid, s.(syscall.Signal)) // fails if the child is gone: its status is being collected
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}

// exitCode follows the shell: 128 + signal for a process that was killed.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// withVar sets a variable in a copy of env. A Go program reads the first of two entries with
// the same name, so appending is not enough.
func withVar(env []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	return append(out, name+"="+value)
}

package uml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guestVar is on the kernel's command line, from which process 1 gets it as a variable
// of its environment: the directory with the job.
const guestVar = "CNICTL_TESTENV_UML"

// insideVar tells the program that it runs in a guest.
const insideVar = "CNICTL_TESTENV_GUEST"

// Inside reports whether the process runs in a guest.
func Inside() bool { return os.Getenv(insideVar) != "" }

// Options say what Run may use.
type Options struct {
	// Memory of the guest, in MiB. Default: 2048. What it does not touch costs nothing.
	Memory int
	// Timeout ends a guest that does not end by itself. Required.
	Timeout time.Duration
	// Stdout and Stderr are the program's. Required.
	Stdout, Stderr io.Writer
}

const defaultMemory = 2048

// Run runs the calling program with its own arguments in a guest and returns its exit
// code. An error means that it did not run to its end there.
func Run(ctx context.Context, files Files, o Options) (code int, err error) {
	dir, err := os.MkdirTemp("", "uml")
	if err != nil {
		return 0, fmt.Errorf("start user-mode Linux: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("start user-mode Linux: %w", err)
	}
	workDir, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("start user-mode Linux: %w", err)
	}
	j, err := newJob(files, program, workDir, os.Args, os.Environ())
	if err != nil {
		return 0, fmt.Errorf("start user-mode Linux: %w", err)
	}
	if err := write(dir, jobFile, j); err != nil {
		return 0, fmt.Errorf("start user-mode Linux: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	console, err := boot(ctx, files, dir, program, o)
	var r result
	if readErr := read(dir, resultFile, &r); readErr != nil {
		return 0, fmt.Errorf("user-mode Linux ended without a result (%w): %w; the end of its console:\n%s",
			errors.Join(context.Cause(ctx), err), readErr, console)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("in user-mode Linux: %s; the end of its console:\n%s", r.Error, console)
	}
	return r.Code, nil
}

// kernelArgs is the command line. The consoles of the program's output are files that the
// process has at these numbers.
func kernelArgs(dir, program string, memory int) []string {
	if memory == 0 {
		memory = defaultMemory
	}
	return []string{
		fmt.Sprintf("mem=%dM", memory), "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		"init=" + program, guestVar + "=" + dir,
		"con=null", "con0=null,fd:1", "con1=null,fd:3", "con2=null,fd:4",
		"panic=-1", "quiet", "uml_dir=" + dir, "umid=guest",
	}
}

// boot runs the kernel to its end and returns the end of what it said itself.
func boot(ctx context.Context, files Files, dir, program string, o Options) (console string, err error) {
	// The kernel sends the parent-death signal when the *thread* that started the
	// child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{files.kernel()}, kernelArgs(dir, program, o.Memory)...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, keeperVar + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true, Cloneflags: unix.CLONE_NEWPID}
	cmd.WaitDelay = 5 * time.Second
	last := &tail{}
	cmd.Stdout, cmd.Stderr = last, last
	var copied sync.WaitGroup
	for _, to := range []io.Writer{o.Stdout, o.Stderr} {
		from, theirs, err := os.Pipe()
		if err != nil {
			return "", fmt.Errorf("make pipe: %w", err)
		}
		defer from.Close()
		defer theirs.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
		copied.Go(func() { _, _ = io.Copy(to, from) }) // ends with the pipe
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", files.kernel(), err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	err = cmd.Wait()
	copied.Wait()
	return last.String(), err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailSize {
		t.b = bytes.Clone(t.b[len(t.b)-tailSize:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.b[max(0, len(t.b)-tailSize):]
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

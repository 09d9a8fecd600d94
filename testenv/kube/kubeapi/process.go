package kubeapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a child process that logs to a file. It is killed when the thread that
// started it ends, so it does not outlive the test binary.
type process struct {
	name string
	log  string // path
	pid  int

	ended  chan struct{} // closed when it has ended; status is set before
	status string
}

// startProcess runs a program in dir, where it also logs.
func startProcess(dir, program string, args ...string) (*process, error) {
	name := filepath.Base(program)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) // a restart appends
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: unix.SIGKILL,
		Setpgid:   true, // the starter handles a terminal's Ctrl-C
	}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when this thread ends, so it stays
		// until the process is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		log.Close() // the child has its own descriptor
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		p.status = "exit status 0"
		if err != nil {
			p.status = err.Error()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// kill kills the process and waits until it is gone. If the process had already ended, it
// returns an error with the exit status.
func (p *process) kill() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s exited unexpectedly: %s", p.name, p.status)
	default:
	}
	err := unix.Kill(p.pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	<-p.ended
	return err
}

// logTail is how much of a log is worth printing.
const logTail = 8 << 10

// tail returns the end of the log, for people to read.
func (p *process) tail() string {
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-logTail), io.SeekStart) // on failure it reads from the end: empty
	}
	data, err := io.ReadAll(io.LimitReader(f, logTail))
	if err != nil {
		return err.Error()
	}
	if _, rest, ok := bytes.Cut(data, []byte("\n")); ok && len(data) == logTail {
		data = rest // the first line is incomplete
	}
	return fmt.Sprintf("--- end of the log of %s:\n%s", p.name, data)
}

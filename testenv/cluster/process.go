package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a program of the control plane, beside the API server. It is killed with
// the thread that started it.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// startProcess runs a program whose output goes to a log in dir.
func startProcess(dir, program string, args ...string) (*process, error) {
	name := filepath.Base(program)
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close() // the child has its own
	p := &process{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal is sent when this thread ends, so it stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // the log says why
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// kill ends the process and waits until it is gone.
func (p *process) kill() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s exited unexpectedly: %s", p.name, p.cmd.ProcessState)
	default:
	}
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.ended
	return err
}

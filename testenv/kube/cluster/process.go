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

// process is a control plane program other than the API server. It is killed when
// the thread that started it ends.
type process struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// startProcess runs a program and logs its output in dir.
func startProcess(dir, program string, args ...string) (*process, error) {
	name := filepath.Base(program)
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close() // the child has its own descriptor
	p := &process{name: name, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when this thread ends, so it must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = p.cmd.Wait() // the log has the reason
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

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"cnictl/testenv/node/agent"
)

// service is a program that runs on a machine.
type service struct {
	pid int
	log *os.File
}

// serve starts a program on the node under a name; its output is appended to NAME.log.
func (m *Machine) serve(name string, c agent.Cmd) error {
	log, err := os.OpenFile(filepath.Join(m.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	pid, err := m.Agent().Background(c, log, log)
	if err != nil {
		log.Close()
		return fmt.Errorf("start %s: %w", name, err)
	}
	m.services[name] = &service{pid: pid, log: log}
	return nil
}

// Stop signals a service, "kubelet", "containerd" or "kube-proxy", and waits until it is
// gone. Processes that it started, such as containers, keep running.
func (m *Machine) Stop(ctx context.Context, name string, signal syscall.Signal) error {
	s := m.services[name]
	if s == nil {
		return fmt.Errorf("stop %s on %s: not running", name, m.Name)
	}
	delete(m.services, name)
	defer s.log.Close()
	if err := m.Agent().Signal(s.pid, signal); err != nil {
		return fmt.Errorf("stop %s on %s: %w", name, m.Name, err)
	}
	gone := make(chan error, 1)
	go func() { _, err := m.Agent().Wait(s.pid); gone <- err }() // ends with the program or the node
	select {
	case err := <-gone:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop %s on %s: %w", name, m.Name, ctx.Err())
	}
}

// Log returns the output of a service so far: "kubelet", "containerd", "kube-proxy".
func (m *Machine) Log(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(m.Dir, name+".log"))
	return string(data), err
}

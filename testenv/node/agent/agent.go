package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// Agent is a running agent, seen from the process that started it. Its methods may be called
// from any goroutine.
type Agent struct {
	NS      *netns.NS // the node's network namespace
	Warning string    // what the kernel refused although the node can do without it, or ""

	controlMu sync.Mutex // held while one message is sent on control
	control   *net.UnixConn

	pid   int
	ended chan struct{} // closed when the process is gone
}

// Start starts an agent. name is the node's host name; the agent's own output goes to log.
func Start(ctx context.Context, name string, log io.Writer) (*Agent, error) {
	if _, ok := os.LookupEnv(agentVar); ok {
		return nil, errors.New("start node: this process is an agent whose main did not call agent.Maybe (testenv.Main does)")
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	defer theirs.Close()
	control, err := unixConn(ours)
	if err != nil {
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	a := &Agent{control: control, ended: make(chan struct{})}
	if err := a.spawn(name, theirs, log); err != nil {
		control.Close()
		return nil, fmt.Errorf("start node %s: %w", name, err)
	}
	theirs.Close() // so that the agent's death ends receive
	stop := context.AfterFunc(ctx, func() { _ = control.SetDeadline(time.Unix(1, 0)) })
	var ready reply
	files, err := receive(control, &ready)
	if !stop() {
		err = ctx.Err()
	}
	if err == nil {
		err = ready.err()
	}
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("agent sent %d files, want its network namespace", len(files))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start node %s: %w", name, err), a.Close())
	}
	a.NS, a.Warning = netns.FromFile(name, files[0]), ready.Warning
	return a, nil
}

// spawn starts the process and waits for its exit in a separate goroutine.
func (a *Agent) spawn(name string, control *os.File, log io.Writer) error {
	output, outputW, err := os.Pipe()
	if err != nil {
		return err
	}
	copied := make(chan struct{})
	go func() { // ends when the node's last process has closed the pipe
		defer close(copied)
		_, _ = io.Copy(log, output)
		output.Close()
	}()
	started := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when this thread ends, so keep it
		// until the agent is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], "(node " + name + ")"}, &os.ProcAttr{
			Env:   environment(name),
			Files: []*os.File{nil, outputW, outputW, control},
			Sys: &syscall.SysProcAttr{
				Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
				Pdeathsig:  unix.SIGKILL,
				Setpgid:    true, // the starter handles a terminal's Ctrl-C
			},
		})
		outputW.Close()
		if err == nil {
			a.pid = p.Pid
		}
		started <- err
		if err != nil {
			return
		}
		_, _ = p.Wait() // Close kills it, so there is no status to report
		<-copied
		close(a.ended)
	}()
	return <-started
}

// environment is the caller's environment plus the variable that marks an agent.
func environment(name string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, agentVar+"=") })
	return append(env, agentVar+"="+name)
}

// Close kills the node and everything in it, and waits until it is gone.
func (a *Agent) Close() error {
	a.control.Close()
	err := unix.Kill(a.pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		err = nil
	}
	<-a.ended
	if a.NS != nil {
		err = errors.Join(err, a.NS.Close())
		a.NS = nil
	}
	return err
}

// Run runs a program in the node and waits for it.
func (a *Agent) Run(c Cmd) (Result, error) {
	rep, _, err := a.call(request{Run: &c})
	if err != nil {
		return Result{}, err
	}
	return *rep.Result, nil
}

// Background starts a program in the node and returns while it runs.
func (a *Agent) Background(c Cmd, stdout, stderr *os.File) (pid int, err error) {
	c.Background = true
	rep, _, err := a.call(request{Run: &c}, stdout, stderr)
	return rep.PID, err
}

// Wait waits until a program started by Background exits. It can be called once per program.
func (a *Agent) Wait(pid int) (Result, error) {
	rep, _, err := a.call(request{Wait: pid})
	if err != nil {
		return Result{}, err
	}
	return *rep.Result, nil
}

// Signal sends a signal to a program started by Background.
func (a *Agent) Signal(pid int, s syscall.Signal) error {
	_, _, err := a.call(request{Signal: &signalReq{PID: pid, Signal: int(s)}})
	return err
}

// AddNetns creates a network namespace at netns.Dir/name in the node. Closing it
// leaves that path; RemoveNetns removes it.
func (a *Agent) AddNetns(name string) (*netns.NS, error) {
	_, f, err := a.call(request{Netns: &netnsReq{Name: name}})
	if err != nil {
		return nil, err
	}
	return netns.FromFile(name, f), nil
}

// RemoveNetns removes a path that AddNetns created.
func (a *Agent) RemoveNetns(name string) error {
	_, _, err := a.call(request{Netns: &netnsReq{Name: name, Remove: true}})
	return err
}

// Open opens a file in the node; flag and mode are as in os.OpenFile.
func (a *Agent) Open(path string, flag int, mode os.FileMode) (*os.File, error) {
	_, f, err := a.call(request{Open: &openReq{Path: path, Flag: flag, Mode: uint32(mode)}})
	return f, err
}

// Dial connects from inside the node, for example to a Unix socket on its /run.
func (a *Agent) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	_, f, err := a.call(request{Dial: &dialReq{Network: network, Address: address, Timeout: timeout}})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileConn(f)
}

// Bind mounts a directory or file over an existing one, for this node only.
func (a *Agent) Bind(source, target string) error {
	_, _, err := a.call(request{Bind: &bindReq{Source: source, Target: target}})
	return err
}

// call sends one request over a new connection. If the reply carries a file, call returns it.
func (a *Agent) call(req request, files ...*os.File) (reply, *os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return reply{}, nil, err
	}
	defer theirs.Close()
	c, err := unixConn(ours)
	if err != nil {
		return reply{}, nil, err
	}
	defer c.Close()
	a.controlMu.Lock()
	err = send(a.control, struct{}{}, theirs)
	a.controlMu.Unlock()
	if err != nil {
		return reply{}, nil, fmt.Errorf("reach the node's agent: %w", err)
	}
	theirs.Close()
	if err := send(c, req, files...); err != nil {
		return reply{}, nil, fmt.Errorf("ask the node's agent: %w", err)
	}
	var rep reply
	got, err := receive(c, &rep)
	if err != nil {
		return reply{}, nil, fmt.Errorf("hear from the node's agent: %w", err)
	}
	var file *os.File
	if len(got) > 0 {
		file = got[0]
	}
	wantsFile := req.Open != nil || req.Dial != nil || (req.Netns != nil && !req.Netns.Remove)
	if err := rep.err(); err != nil {
		return reply{}, nil, err
	}
	if wantsFile != (file != nil) {
		return reply{}, nil, errors.New("the node's agent sent an unexpected number of files")
	}
	return rep, file, nil
}

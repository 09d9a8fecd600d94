package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/network/netns"
)

// agentVar marks a process that is to become an agent; its value is the node's
// host name.
const agentVar = "CNICTL_TESTENV_AGENT"

// controlFD is the agent's end of the control socket.
const controlFD = 3

// Maybe runs the agent if the process was started as one, and then does not return.
// Programs that start nodes call it before anything else.
func Maybe() {
	name, ok := os.LookupEnv(agentVar)
	if !ok {
		return
	}
	if err := serve(name); err != nil {
		fmt.Fprintf(os.Stderr, "agent of node %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve sets the node up, reports that to the starter, and answers requests until the starter
// closes the control socket.
func serve(name string) error {
	if os.Getpid() != 1 { // never chain agents because of a stray variable
		return errors.New("not the first process of its namespace")
	}
	control, err := unixConn(os.NewFile(controlFD, "control"))
	if err != nil {
		return fmt.Errorf("open control socket: %w", err)
	}
	defer control.Close()
	warning, err := setUp(name)
	if err != nil {
		return errors.Join(err, send(control, errorReply(err)))
	}
	ns, err := netns.Current()
	if err != nil {
		return errors.Join(err, send(control, errorReply(err)))
	}
	if err := send(control, reply{Warning: warning}, ns.File()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	s := server{processes: newProcesses()}
	for {
		var hello struct{}
		files, err := receive(control, &hello)
		if err != nil {
			return nil // the starter is done with the node
		}
		for _, f := range files {
			c, err := unixConn(f)
			if err != nil {
				return fmt.Errorf("take request: %w", err)
			}
			go s.handle(c) // ends with its request
		}
	}
}

// setUp sets up the node's file systems. The warning names what the kernel refused although the
// node can do without it.
func setUp(name string) (warning string, err error) {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("make mounts private: %w", err)
	}
	// Copies of the starter's mounts below /run would keep its network namespaces
	// alive. If /run is not a mount point, there are none.
	if err := unix.Unmount("/run", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return "", fmt.Errorf("drop the starter's /run: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return "", fmt.Errorf("mount tmpfs on /run: %w", err)
	}
	if err := os.MkdirAll(netns.Dir, 0o755); err != nil {
		return "", err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		warning = fmt.Sprintf("process numbers in /proc are not the node's: mount: %v", err)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return "", fmt.Errorf("set host name: %w", err)
	}
	return warning, netns.LoopbackUp()
}

type server struct{ processes *processes }

func (s server) handle(c *net.UnixConn) {
	defer c.Close()
	var req request
	files, err := receive(c, &req)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return // the starter went away
	}
	rep, out, err := s.answer(req, files)
	if out != nil {
		defer out.Close()
	}
	if err != nil {
		rep = errorReply(err)
		out = nil
	}
	if out != nil {
		err = send(c, rep, out)
	} else {
		err = send(c, rep)
	}
	_ = err // there is no one left to report it to
}

func (s server) answer(req request, files []*os.File) (reply, *os.File, error) {
	switch {
	case req.Run != nil && req.Run.Background:
		pid, err := s.background(*req.Run, files)
		return reply{PID: pid}, nil, err
	case req.Run != nil:
		r, err := s.processes.run(*req.Run)
		return reply{Result: &r}, nil, err
	case req.Wait != 0:
		r, err := s.processes.wait(req.Wait)
		return reply{Result: &r}, nil, err
	case req.Signal != nil:
		return reply{}, nil, s.signal(*req.Signal)
	case req.Netns != nil && req.Netns.Remove:
		return reply{}, nil, removeNetns(req.Netns.Name)
	case req.Netns != nil:
		f, err := addNetns(req.Netns.Name)
		return reply{}, f, err
	case req.Open != nil:
		f, err := os.OpenFile(req.Open.Path, req.Open.Flag, os.FileMode(req.Open.Mode))
		return reply{}, f, err
	case req.Dial != nil:
		f, err := dial(*req.Dial)
		return reply{}, f, err
	case req.Bind != nil:
		return reply{}, nil, bind(*req.Bind)
	}
	return reply{}, nil, errors.New("empty request")
}

func (s server) background(c Cmd, files []*os.File) (int, error) {
	if len(files) != 2 {
		return 0, fmt.Errorf("run %v: %d output files, want 2", c.Argv, len(files))
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("run %v: %w", c.Argv, err)
	}
	defer null.Close()
	return s.processes.start(c, []uintptr{null.Fd(), files[0].Fd(), files[1].Fd()})
}

func (s server) signal(r signalReq) error {
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	child := s.processes.running[r.PID]
	if child == nil {
		return fmt.Errorf("signal process %d: %w", r.PID, unix.ESRCH)
	}
	select {
	case <-child.done:
		return nil // exited; its pid may have been reused
	default:
	}
	if err := unix.Kill(r.PID, syscall.Signal(r.Signal)); err != nil {
		return fmt.Errorf("signal process %d: %w", r.PID, err)
	}
	return nil
}

// addNetns creates a pod's namespace, with `lo` up, as a container runtime does.
func addNetns(name string) (*os.File, error) {
	ns, err := netns.Create(name)
	if err != nil {
		return nil, err
	}
	// The mount keeps the namespace alive; the caller gets only the descriptor.
	return ns.File(), nil
}

func removeNetns(name string) error {
	path := filepath.Join(netns.Dir, filepath.Base(name))
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// dial connects from the node. The descriptor works in any namespace.
func dial(r dialReq) (*os.File, error) {
	c, err := net.DialTimeout(r.Network, r.Address, min(r.Timeout, time.Minute))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, ok := c.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("dial %s: a %T has no descriptor", r.Network, c)
	}
	return f.File()
}

// bind mounts a directory or file over an existing one, for this node only.
func bind(r bindReq) error {
	if err := unix.Mount(r.Source, r.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", r.Source, r.Target, err)
	}
	return nil
}

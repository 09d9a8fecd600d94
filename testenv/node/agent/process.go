package agent

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Cmd is a program to run in the node.
type Cmd struct {
	Argv  []string `json:"argv"` // Argv[0] is the path
	Env   []string `json:"env"`  // exactly this
	Dir   string   `json:"dir,omitempty"`
	Stdin []byte   `json:"stdin,omitempty"`

	// Timeout kills the program with SIGKILL when it is over. 0: DefaultTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`

	// Background makes the request return when the program was started. Its output
	// goes to the files sent with the request.
	Background bool `json:"background,omitempty"`

	// Container makes the program process 1 of a process namespace, as a container's is.
	Container bool `json:"container,omitempty"`

	// Confine limits the program as a container's security context does.
	Confine *Confinement `json:"confine,omitempty"`
}

// DefaultTimeout is the time limit of a program run in the foreground.
const DefaultTimeout = 90 * time.Second

// Result describes how a program ended.
type Result struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Code   int    `json:"code"` // 128 + signal when killed

	Wall     time.Duration `json:"wall"` // from before fork to the collected status
	User     time.Duration `json:"user"` // CPU time, waited-for children included
	System   time.Duration `json:"system"`
	MaxRSS   int64         `json:"max_rss"` // bytes
	MinFault int64         `json:"min_fault"`
	MajFault int64         `json:"maj_fault"`

	TimedOut bool `json:"timed_out,omitempty"` // killed because of Cmd.Timeout
}

// CPU is the program's user and system time.
func (r Result) CPU() time.Duration { return r.User + r.System }

// processes starts programs and reaps them. The agent is process 1, so it also
// inherits every orphan in the node; a single loop waits for all of them.
type processes struct {
	started chan struct{} // capacity 1: wakes reap

	mu      sync.Mutex // guards running; held from fork until the child is added to it
	running map[int]*process
}

type process struct {
	begin time.Time
	done  chan struct{} // closed when result is set
	result
}

type result struct {
	status syscall.WaitStatus
	usage  syscall.Rusage
	wall   time.Duration
}

func newProcesses() *processes {
	p := &processes{started: make(chan struct{}, 1), running: map[int]*process{}}
	go p.reap() // for the life of the agent
	return p
}

func (p *processes) reap() {
	for {
		var r result
		pid, err := syscall.Wait4(-1, &r.status, 0, &r.usage)
		now := time.Now()
		if errors.Is(err, syscall.ECHILD) {
			<-p.started
			continue
		}
		if err != nil {
			continue // EINTR
		}
		p.mu.Lock()
		if child := p.running[pid]; child != nil {
			r.wall = now.Sub(child.begin)
			child.result = r
			close(child.done)
		}
		p.mu.Unlock()
	}
}

// start runs a program with the given files as stdin, stdout and stderr.
func (p *processes) start(c Cmd, stdio []uintptr) (int, error) {
	if len(c.Argv) == 0 {
		return 0, errors.New("run: no program")
	}
	dir := c.Dir
	if dir == "" {
		dir = "/"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	child := &process{begin: time.Now(), done: make(chan struct{})}
	var namespaces uintptr
	if c.Container {
		namespaces = unix.CLONE_NEWPID
	}
	pid, err := c.Confine.forkExec(c.Argv, &syscall.ProcAttr{
		Dir: dir, Env: c.Env, Files: stdio,
		Sys: &syscall.SysProcAttr{Setpgid: true, Cloneflags: namespaces}, // the starter handles a terminal's Ctrl-C
	})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	p.running[pid] = child
	select {
	case p.started <- struct{}{}:
	default:
	}
	return pid, nil
}

// wait waits until a program exits and returns its result, once.
func (p *processes) wait(pid int) (Result, error) {
	p.mu.Lock()
	child := p.running[pid]
	p.mu.Unlock()
	if child == nil {
		return Result{}, fmt.Errorf("wait for process %d: %w", pid, unix.ECHILD)
	}
	<-child.done
	p.mu.Lock()
	delete(p.running, pid)
	p.mu.Unlock()
	code := child.status.ExitStatus()
	if child.status.Signaled() {
		code = 128 + int(child.status.Signal())
	}
	return Result{
		Code:     code,
		Wall:     child.wall,
		User:     time.Duration(child.usage.Utime.Nano()),
		System:   time.Duration(child.usage.Stime.Nano()),
		MaxRSS:   child.usage.Maxrss << 10,
		MinFault: child.usage.Minflt,
		MajFault: child.usage.Majflt,
	}, nil
}

// run starts a program, feeds it its input and waits. The streams are files in
// memory, so no copying goroutine disturbs the measurement.
func (p *processes) run(c Cmd) (Result, error) {
	files := make([]*os.File, 3)
	for i := range files {
		fd, err := unix.MemfdCreate("stdio", unix.MFD_CLOEXEC)
		if err != nil {
			return Result{}, fmt.Errorf("run %s: make stream: %w", c.Argv[0], err)
		}
		files[i] = os.NewFile(uintptr(fd), "stdio")
		defer files[i].Close()
	}
	if _, err := files[0].Write(c.Stdin); err != nil {
		return Result{}, fmt.Errorf("run %s: write input: %w", c.Argv[0], err)
	}
	if _, err := files[0].Seek(0, 0); err != nil {
		return Result{}, fmt.Errorf("run %s: rewind input: %w", c.Argv[0], err)
	}
	pid, err := p.start(c, []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()})
	if err != nil {
		return Result{}, err
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	// Kill the whole group: programs that this one started must not outlive it.
	killer := time.AfterFunc(timeout, func() { _ = unix.Kill(-pid, unix.SIGKILL) })
	r, err := p.wait(pid)
	r.TimedOut = !killer.Stop()
	if err != nil {
		return Result{}, err
	}
	if r.Stdout, err = contents(files[1]); err != nil {
		return Result{}, err
	}
	r.Stderr, err = contents(files[2])
	return r, err
}

// contents reads a file from its beginning, without moving the offset, at which a surviving
// child may still write.
func contents(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	b := make([]byte, info.Size())
	n, err := f.ReadAt(b, 0)
	if n < len(b) {
		return nil, fmt.Errorf("read output: %w", err)
	}
	return b, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Size of the terminal.
const (
	columns = 200
	rows    = 60
)

// terminal runs a program on a pseudo-terminal and looks at what it draws.
type terminal struct {
	master  *os.File
	cmd     *exec.Cmd
	started time.Time // when the program was executed

	mu     sync.Mutex // guards all below
	screen *screen
	bytes  int64 // drawn so far
	want   func(*screen) bool
	seen   chan time.Time // of the picture that want was waiting for
	ended  chan struct{}
}

// openTerminal starts a program with exactly this environment.
func openTerminal(ctx context.Context, env []string, path string, args ...string) (*terminal, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	return startOn(ctx, master, slave, env, path, args...)
}

// openEcho starts the least program that answers a key: cat, on a terminal that neither
// echoes nor waits for a line's end.
func openEcho(ctx context.Context) (*terminal, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		master.Close()
		return nil, fmt.Errorf("set up a pseudo-terminal: %w", err)
	}
	return startOn(ctx, master, slave, nil, "/bin/cat")
}

func startOn(ctx context.Context, master, slave *os.File, env []string, path string, args ...string) (*terminal, error) {
	t := &terminal{master: master, ended: make(chan struct{})}
	t.screen = newScreen(columns, rows, func(answer string) { _, _ = master.WriteString(answer) })
	t.cmd = exec.CommandContext(ctx, path, args...)
	t.cmd.Env = env
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, slave
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t.started = time.Now()
	if err := t.cmd.Start(); err != nil {
		master.Close()
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	go t.read()
	return t, nil
}

// openPTY makes a pair; the slave has the size of the screen.
func openPTY() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("set up a pseudo-terminal: %w", err)
	}
	return master, slave, nil
}

// read takes what the program draws until it ends. A picture counts as seen when its last
// byte was read: no synchronized update is open.
func (t *terminal) read() {
	defer close(t.ended)
	buf := make([]byte, 1<<16)
	for {
		n, err := t.master.Read(buf)
		now := time.Now()
		t.mu.Lock()
		t.bytes += int64(n)
		before := t.screen.frames
		for _, b := range buf[:n] {
			t.screen.parser.Advance(b)
			if t.screen.frames > before { // more may follow in this buffer
				before = t.screen.frames
				t.look(now)
			}
		}
		t.look(now)
		t.mu.Unlock()
		if err != nil {
			return // EIO: the program has closed its side
		}
	}
}

// look tells who waits whether the picture has come; t.mu is held.
func (t *terminal) look(now time.Time) {
	if t.want != nil && !t.screen.open && t.want(t.screen) {
		t.seen <- now
		t.want = nil
	}
}

// expect waits for a picture after keys were written, and tells how long it took from
// before the writing to the reading of the picture's last byte.
func (t *terminal) expect(ctx context.Context, keys string, limit time.Duration, want func(*screen) bool) (time.Duration, error) {
	seen := make(chan time.Time, 1)
	t.mu.Lock()
	t.want, t.seen = want, seen
	if keys == "" {
		t.look(time.Now())
	}
	t.mu.Unlock()
	begin := time.Now()
	if keys != "" {
		if _, err := t.master.WriteString(keys); err != nil {
			return 0, fmt.Errorf("write to the terminal: %w", err)
		}
	}
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	var err error
	select {
	case at := <-seen:
		return at.Sub(begin), nil
	case <-timeout.C:
		err = fmt.Errorf("what was expected is not on the screen after %v", limit)
	case <-t.ended:
		err = errors.New("the program has ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	t.want = nil
	t.mu.Unlock()
	return 0, fmt.Errorf("%w; the screen:\n%s", err, t.text())
}

// now gives what a function finds on the screen.
func (t *terminal) now(find func(*screen) string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return find(t.screen)
}

func (t *terminal) drawn() (frames int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.frames, t.bytes
}

func (t *terminal) text() string {
	return t.now(func(s *screen) string {
		var b strings.Builder
		for y := range s.height {
			if l := s.line(y); l != "" {
				b.WriteString(l + "\n")
			}
		}
		return b.String()
	})
}

// kill ends a program that knows no end of its own.
func (t *terminal) kill() {
	defer t.master.Close()
	_ = t.cmd.Process.Kill()
	_ = t.cmd.Wait()
}

// close ends the program as its user does, or by force, and waits for it.
func (t *terminal) close() error {
	defer t.master.Close()
	_, _ = t.master.WriteString("\x03")
	force := time.AfterFunc(10*time.Second, func() { _ = t.cmd.Process.Kill() })
	err := t.cmd.Wait()
	if !force.Stop() {
		return errors.Join(errors.New("cnictl did not end within 10 s of ctrl-c"), err)
	}
	return err
}

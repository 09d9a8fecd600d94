package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Options configure the terminal and the program on it.
type Options struct {
	Columns, Rows int
	Env           []string // the program's whole environment
	Raw           bool     // no echo and no line buffering from the start
	Keep          bool     // keep what is drawn, for Drawn and AwaitDrawn
}

// Terminal is a pseudo-terminal with a program on it.
type Terminal struct {
	Started time.Time // when the program was executed

	master *os.File
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // of the program after it has ended

	mu     sync.Mutex // guards the fields below
	screen *Screen
	bytes  int64 // drawn so far
	kept   strings.Builder
	keep   bool
	want   func() bool // nil if nobody waits
	seen   chan<- time.Time
}

// ErrEnded reports that the program exited while a caller waited for output.
var ErrEnded = errors.New("the program has ended")

// Start starts a program in a new session, with the terminal as its controlling one. The
// program is killed when ctx ends.
func Start(ctx context.Context, o Options, path string, args ...string) (*Terminal, error) {
	master, slave, err := open(o.Columns, o.Rows)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if o.Raw {
		if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
			master.Close()
			return nil, fmt.Errorf("set up a pseudo-terminal: %w", err)
		}
	}
	t := &Terminal{master: master, ended: make(chan struct{}), keep: o.Keep}
	t.screen = NewScreen(o.Columns, o.Rows, func(answer string) { _, _ = master.WriteString(answer) })
	t.cmd = command(ctx, path, args...)
	t.cmd.Env = o.Env
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = slave, slave, slave
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t.Started = time.Now()
	if err := t.cmd.Start(); err != nil {
		master.Close()
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	go t.read()
	return t, nil
}

// command returns a program that starts with the default action of the signals by which a
// terminal ends it. It would inherit that this process ignores them, as below nohup or in the
// background of a script, and a shell cannot trap what it inherited so.
func command(ctx context.Context, path string, args ...string) *exec.Cmd {
	ignored := signal.Ignored(unix.SIGINT) || signal.Ignored(unix.SIGHUP)
	if file, err := exec.LookPath(path); ignored && err == nil {
		path, args = "env", append([]string{"--default-signal=INT,HUP", file}, args...)
	}
	return exec.CommandContext(ctx, path, args...)
}

// open opens a pair of the given size.
func open(columns, rows int) (master, slave *os.File, err error) {
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
		err = setSize(master, columns, rows)
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

func setSize(master *os.File, columns, rows int) error {
	return unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)})
}

// read reads what the program draws until it exits. A frame counts as seen when its last byte
// has been read and no synchronized update is open.
func (t *Terminal) read() {
	defer close(t.ended)
	buf := make([]byte, 1<<16)
	for {
		n, err := t.master.Read(buf)
		now := time.Now()
		t.mu.Lock()
		t.bytes += int64(n)
		if t.keep {
			t.kept.Write(buf[:n])
		}
		before := t.screen.frames
		for _, b := range buf[:n] {
			t.screen.parser.Advance(b)
			if t.screen.frames > before { // more may follow in this buffer
				before = t.screen.frames
				t.checkWaiter(now)
			}
		}
		t.checkWaiter(now)
		t.mu.Unlock()
		if err != nil { // EIO: the program has closed its side
			t.err = t.cmd.Wait()
			return
		}
	}
}

// checkWaiter notifies the waiter if its condition holds. The caller holds t.mu.
func (t *Terminal) checkWaiter(now time.Time) {
	if t.want != nil && t.want() {
		t.seen <- now
		t.want = nil
	}
}

// Await waits until a complete frame meets a condition. A limit of 0, here and below, is none
// but the context's.
func (t *Terminal) Await(ctx context.Context, limit time.Duration, want func(*Screen) bool) error {
	_, err := t.Expect(ctx, "", limit, want)
	return err
}

// Expect writes keys and waits for a frame that meets a condition. It returns the time from
// before the write to the reading of the frame's last byte. Only one caller may wait at a
// time.
func (t *Terminal) Expect(ctx context.Context, keys string, limit time.Duration, want func(*Screen) bool) (time.Duration, error) {
	return t.expect(ctx, keys, limit, func() bool { return !t.screen.open && want(t.screen) })
}

// AwaitDrawn waits until all bytes drawn so far meet a condition.
func (t *Terminal) AwaitDrawn(ctx context.Context, limit time.Duration, want func(drawn string) bool) error {
	_, err := t.expect(ctx, "", limit, func() bool { return want(t.kept.String()) })
	return err
}

// AwaitBytes writes keys and waits until more than the given number of bytes have been drawn.
func (t *Terminal) AwaitBytes(ctx context.Context, keys string, limit time.Duration, more int64) (time.Duration, error) {
	return t.expect(ctx, keys, limit, func() bool { return t.bytes > more })
}

func (t *Terminal) expect(ctx context.Context, keys string, limit time.Duration, want func() bool) (time.Duration, error) {
	seen := make(chan time.Time, 1)
	t.mu.Lock()
	t.want, t.seen = want, seen
	if keys == "" {
		t.checkWaiter(time.Now())
	}
	t.mu.Unlock()
	begin := time.Now()
	if keys != "" {
		if err := t.Press(keys); err != nil {
			return 0, err
		}
	}
	var late <-chan time.Time
	if limit > 0 {
		timeout := time.NewTimer(limit)
		defer timeout.Stop()
		late = timeout.C
	}
	var err error
	select {
	case at := <-seen:
		return at.Sub(begin), nil
	case <-late:
		err = fmt.Errorf("what was expected is not on the screen after %v", limit)
	case <-t.ended:
		err = ErrEnded
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want = nil
	select {
	case at := <-seen: // arrived with the last bytes
		return at.Sub(begin), nil
	default:
	}
	return 0, fmt.Errorf("%w; the screen:\n%s", err, t.screen)
}

// Press sends keys as a terminal would.
func (t *Terminal) Press(keys string) error {
	if _, err := t.master.WriteString(keys); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

// Resize changes the terminal's size, which may be 0, and signals the program.
func (t *Terminal) Resize(columns, rows int) error {
	t.mu.Lock()
	t.screen.resize(columns, rows)
	t.mu.Unlock()
	if err := setSize(t.master, columns, rows); err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	return nil
}

// Find returns what a function finds on the screen. The function must not keep the screen.
func (t *Terminal) Find(find func(*Screen) string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return find(t.screen)
}

// Text returns the screen's text.
func (t *Terminal) Text() string { return t.Find((*Screen).String) }

// Drawn returns all bytes drawn so far; it needs Options.Keep.
func (t *Terminal) Drawn() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}

// Counts returns how many synchronized updates have ended and how many bytes were drawn.
func (t *Terminal) Counts() (frames int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.frames, t.bytes
}

// Cooked reports whether lines are edited and echoed, as on every terminal before a program
// starts to read single keys and after it has restored the terminal.
func (t *Terminal) Cooked() (bool, error) {
	state, err := unix.IoctlGetTermios(int(t.master.Fd()), unix.TCGETS)
	if err != nil {
		return false, fmt.Errorf("look at the terminal's settings: %w", err)
	}
	const cooked = unix.ICANON | unix.ECHO | unix.ISIG
	return state.Lflag&cooked == cooked, nil
}

// Process returns the program's process.
func (t *Terminal) Process() *os.Process { return t.cmd.Process }

// Ended waits for the end of the program and returns its exit code, or -1 if a signal ended
// it.
func (t *Terminal) Ended(ctx context.Context) (code int, err error) {
	select {
	case <-t.ended:
	case <-ctx.Done():
		return 0, fmt.Errorf("the program goes on (%w); the screen:\n%s", ctx.Err(), t.Text())
	}
	var exit *exec.ExitError
	if t.err != nil && !errors.As(t.err, &exit) {
		return 0, t.err
	}
	return t.cmd.ProcessState.ExitCode(), nil
}

// Kill kills the program and closes the terminal.
func (t *Terminal) Kill() {
	_ = t.cmd.Process.Kill() // it may have ended
	<-t.ended
	t.master.Close()
}

// Close ends the program with ctrl-c, or kills it if that does not help, and closes the
// terminal.
func (t *Terminal) Close() error {
	const limit = 2 * time.Minute       // a busy machine may starve it
	_, _ = t.master.WriteString("\x03") // it may have ended
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if _, err := t.Ended(ctx); err != nil {
		t.Kill()
		return fmt.Errorf("it did not end within %v of ctrl-c: %w", limit, err)
	}
	t.master.Close()
	return t.err
}

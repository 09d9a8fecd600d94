package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"cnictl/daemon/scrub"
)

// systemDirs have programs that are not on an ordinary user's path.
var systemDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"}

// find looks up a program.
func find(program string) (string, error) {
	file, err := exec.LookPath(program)
	for _, dir := range systemDirs {
		if err == nil {
			break
		}
		file, err = exec.LookPath(path.Join(dir, program))
	}
	if err != nil {
		return "", fmt.Errorf("there is no program %s", program)
	}
	return file, nil
}

const maxPrinted = 32 << 20 // bytes of a program's output

// slowError means that a program did not end in time.
type slowError struct {
	program string
	err     error // of the context
}

func (e *slowError) Error() string { return e.program + " did not end" }
func (e *slowError) Unwrap() error { return e.err }

// run runs a program and returns what it prints.
func run(ctx context.Context, program string, args ...string) (string, error) {
	var out, complaint bounded
	err := start(ctx, command(ctx, program, args...), &complaint, func(printed io.Reader) error {
		_, err := io.Copy(&out, printed)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", err
	case err != nil && strings.Contains(complaint.String(), "ermission denied"):
		return "", fs.ErrPermission
	case err != nil:
		return "", fmt.Errorf("%s: %w: %.200s", path.Base(program), err, strings.TrimSpace(complaint.String()))
	case out.Len() == 0:
		return complaint.String(), nil // as CNI plugins print their version
	}
	return out.String(), nil
}

// start starts a program, lets read have what it prints, and waits for its end. The time for
// reading what it has printed is limited by ctx alone: on a busy node it takes a while after the
// program's end.
func start(ctx context.Context, cmd *exec.Cmd, complaint io.Writer, read func(printed io.Reader) error) error {
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	complained, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer progressOf(ctx).watch(cmd.Process.Pid)()
	stop := context.AfterFunc(ctx, func() { _, _ = printed.Close(), complained.Close() }) // ends reading, whoever else holds the pipes
	defer stop()
	var complaints error
	var both sync.WaitGroup
	finish := func(err error) error {
		if err != nil {
			_ = cmd.Cancel() // nobody reads the rest; it may have ended
		}
		return err
	}
	both.Go(func() {
		_, err := io.Copy(complaint, inTime{ctx, complained})
		complaints = finish(err)
	})
	err = finish(read(inTime{ctx, printed}))
	both.Wait()
	err = errors.Join(err, complaints, cmd.Wait())
	if ctx.Err() != nil {
		return &slowError{path.Base(cmd.Path), ctx.Err()}
	}
	progressOf(ctx).goesOn()
	return err
}

// command returns a program that is killed, with its children, when its time is over.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // its messages are parsed
	// otherwise a plugin would think that a runtime calls it
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "CNI_") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to end its children too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// bounded refuses more output than a program should print.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrinted {
		return 0, fmt.Errorf("more than %d MiB", maxPrinted>>20)
	}
	return b.Buffer.Write(p)
}

// clean removes from a text what must not leave the node, and what is not text.
func clean(text string) string { return strings.ToValidUTF8(scrub.Line(text), "\uFFFD") }

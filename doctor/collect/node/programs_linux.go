package node

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

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

const (
	maxPrinted = 32 << 20               // bytes of a program's output
	lastWords  = 100 * time.Millisecond // grace for whatever holds the output of a killed program
)

// run runs a program and returns what it prints.
func run(ctx context.Context, program string, args ...string) (string, error) {
	var out, complaint bounded
	cmd := command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && strings.Contains(complaint.String(), "ermission denied"):
		return "", fs.ErrPermission
	case err != nil:
		return "", fmt.Errorf("%s: %w: %.200s", path.Base(program), err, strings.TrimSpace(complaint.String()))
	case out.Len() == 0:
		return complaint.String(), nil // as CNI plugins print their version
	}
	return out.String(), nil
}

// command returns a program that is killed, with its children, when its time is over.
func command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")                                                        // its messages are parsed
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "CNI_") }) // otherwise a plugin would think that a runtime calls it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                                             // to end its children too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = lastWords
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

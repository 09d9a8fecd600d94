package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
)

// defaultPager is used if PAGER is not set: it exits on its own if everything fits.
const defaultPager = "less -FRX"

// pager is a program that displays the output. The first write starts it.
type pager struct {
	command  string
	out, err io.Writer
	start    sync.Once
	process  *exec.Cmd
	in       io.WriteCloser
	failed   error
}

// Page sends the output through $PAGER if --paged is set. Endless output, and output that
// does not go to a terminal, is not paged.
func (f *Factory) Page(cmd *cobra.Command) error {
	if !f.Globals.Paged || !f.Streams.OutTTY {
		return nil
	}
	for _, name := range []string{"watch", "watch-only", "follow"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Value.String() == "true" {
			return nil
		}
	}
	command, _ := f.Env("PAGER")
	if command == "" {
		command = defaultPager
	}
	f.pager = &pager{command: command, out: f.Streams.Out, err: f.Streams.Err}
	f.Streams.Out = f.pager
	cmd.Root().SetOut(f.pager)
	return nil
}

// Finish waits until the user leaves the pager, if there is one.
func (f *Factory) Finish() error {
	if f.pager == nil {
		return nil
	}
	return f.pager.close()
}

func (p *pager) Write(b []byte) (int, error) {
	p.start.Do(func() {
		p.process = exec.Command("sh", "-c", p.command) //nolint:gosec // the user's own choice
		p.process.Stdout, p.process.Stderr, p.process.Stdin = p.out, p.err, nil
		p.in, p.failed = p.process.StdinPipe()
		if p.failed == nil {
			p.failed = p.process.Start()
		}
	})
	if p.failed != nil {
		return 0, fmt.Errorf("start the pager %s: %w", p.command, p.failed)
	}
	return p.in.Write(b)
}

func (p *pager) close() error {
	if p.process == nil || p.failed != nil {
		return nil
	}
	if err := p.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("end the pager: %w", err)
	}
	if err := p.process.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fmt.Errorf("run the pager: %w", err)
		}
	}
	return nil
}

// gone reports whether the reader of the output has exited, as "head" does.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) }

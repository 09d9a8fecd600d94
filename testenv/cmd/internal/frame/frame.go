// Package frame holds what the programs of testenv share: help, flags, signals, the exit status,
// and what those that measure need.
package frame

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"cnictl/testenv"
)

// Program is a program with options of one type.
type Program[O any] struct {
	Name, Usage string
	Parse       func(args []string) (O, error) // uses [Parse]
	Do          func(ctx context.Context, o O, out, progress io.Writer) error
}

// Main runs the program until it ends or gets a signal, and returns its exit status.
func (p Program[O]) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// Run returns 0 after success or help, 2 for wrong arguments, 1 for any other error.
func (p Program[O]) Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	o, err := p.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, p.Usage)
		return 0
	case err != nil:
		fmt.Fprintf(errOut, "%s: %v\n\n%s", p.Name, err, p.Usage)
		return 2
	}
	if err := p.Do(ctx, o, out, errOut); err != nil {
		fmt.Fprintf(errOut, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

// Parse parses args, which may hold only flags. [Program.Run] prints its errors.
func Parse(fs *flag.FlagSet, args []string) error {
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	return nil
}

// Bin returns the directory of the programs under test: the value of --bin, or else the
// directory of this program.
func Bin(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own path: %w", err)
	}
	return filepath.Dir(self), nil
}

// Enter gives the program the namespaces that simulated nodes need.
func Enter() error {
	if err := testenv.Enter(); err != nil {
		return fmt.Errorf("the kernel does not allow the namespaces it needs (run as root): %w", err)
	}
	return nil
}

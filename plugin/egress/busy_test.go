package egress

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
)

// closing closes the program's file, still open for writing, before the second try.
type closing struct {
	invoke.Exec
	written *os.File
	tries   int
}

func (c *closing) ExecPlugin(ctx context.Context, program string, stdin []byte, env []string) ([]byte, error) {
	if c.tries++; c.tries == 2 {
		if err := c.written.Close(); err != nil {
			return nil, err
		}
	}
	return c.Exec.ExecPlugin(ctx, program, stdin, env)
}

// TestPatient: a program whose file is still open for writing is retried, with the library's runner.
func TestPatient(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "host-local")
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(echo)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	run := &closing{Exec: &invoke.DefaultExec{RawExec: &invoke.RawExec{}}, written: f}
	out, err := patient{run}.ExecPlugin(t.Context(), program, nil, nil)
	// A child process of another test may hold the file open a little longer.
	if err != nil || string(out) != "\n" || run.tries < 2 {
		t.Errorf("%q, %v after %d tries", out, err, run.tries)
	}
}

// TestPatient_GivesUp: other failures are not retried.
func TestPatient_GivesUp(t *testing.T) {
	t.Parallel()
	always := failing{errors.New(alreadyStarted)}
	if _, err := (patient{always}).ExecPlugin(t.Context(), "/x/host-local", nil, nil); err == nil || !strings.Contains(err.Error(), "/x/host-local is being written") {
		t.Errorf("always busy: %v", err)
	}
	other := failing{errors.New("no addresses")}
	if _, err := (patient{other}).ExecPlugin(t.Context(), "/x/host-local", nil, nil); !errors.Is(err, other.err) {
		t.Errorf("another failure: %v", err)
	}
}

type failing struct{ err error }

func (f failing) ExecPlugin(context.Context, string, []byte, []string) ([]byte, error) {
	return nil, f.err
}
func (f failing) FindInPath(string, []string) (string, error) { return "", f.err }
func (f failing) Decode([]byte) (version.PluginInfo, error)   { return nil, f.err }

//go:build nightly

package vm_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"
)

func init() { crashes["panic"] = "sysrq triggered crash" }

func TestRun_HungGuest(t *testing.T) {
	t.Parallel()
	o, stdout, _ := run(t, "cancelled", testenv.Left(t))
	if o.Code != 0 || !strings.Contains(o.Err, context.Canceled.Error()) || !strings.Contains(o.Err, "end of its console") {
		t.Errorf("%+v", o)
	}
	if stdout != hanging {
		t.Errorf("what it printed before: %q", stdout)
	}
}

func TestRun_TimeLimit(t *testing.T) {
	t.Parallel()
	o, _, _ := run(t, "hang", time.Second)
	if o.Code != 0 || !strings.Contains(o.Err, context.DeadlineExceeded.Error()) {
		t.Errorf("%+v", o)
	}
}

func TestRun_EndsWithItsStarter(t *testing.T) {
	t.Parallel()
	cmd, dir, result := start(t, "hang", testenv.Left(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len(hanging))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != hanging {
		t.Fatalf("%q, %v: %+v", line, err, result())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
	_ = cmd.Wait() // killed
}

package policyagent

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/rules/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func newClient(t *testing.T, socket string) *Client {
	t.Helper()
	c, err := New(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func start(t *testing.T, socket string) *npa.Agent {
	t.Helper()
	a, err := npa.Start(npa.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// TestCalls checks the requests that arrive and the caller's view of the answers.
func TestCalls(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	a, c := start(t, socket), newClient(t, socket)
	for _, row := range []struct {
		name  string
		fault npa.Fault
		want  cause.Code
		calls int
	}{
		{"enforced", npa.Fault{}, "", 1},
		{"not successful", npa.Fault{Refuse: true}, cause.PolicyAgentRefused, 1},
		{"an error", npa.Fault{Error: "One of the policy reconcilers is not ready"}, cause.PolicyAgentRefused, 1},
		{"link not there", npa.Fault{Error: "Link not found"}, cause.PolicyAgentRefused, 2},
		{"link not there yet", npa.Fault{Error: "Link not found", Times: 1}, "", 2},
		{"slow", npa.Fault{Wait: 50 * time.Millisecond}, "", 1},
	} {
		before := len(a.Calls())
		a.SetFault(row.fault)
		err := c.Enforce(t.Context(), "default", "web-0", "Strict", 2)
		calls := a.Calls()[before:]
		if got := Cause(err); got != row.want || len(calls) != row.calls {
			t.Errorf("%s: %q (%v) after %d calls, want %q after %d", row.name, got, err, len(calls), row.want, row.calls)
		}
		last := calls[len(calls)-1]
		if d := cmp.Diff(npa.Call{Namespace: "default", Name: "web-0", Mode: "Strict", Interfaces: 2, Success: row.want == "", Err: row.fault.Error},
			last); d != "" && row.fault.Times == 0 {
			t.Errorf("%s:\n%s", row.name, d)
		}
	}
	if err := c.Delete(t.Context(), "default", "web-0"); err != nil || len(a.Pods()) != 0 {
		t.Errorf("deletion: %v, left %v", err, a.Pods())
	}
}

// TestAway: an absent agent is an error in time that says what could not be dialled; once it
// is back, it is called at once.
func TestAway(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	c := newClient(t, socket)
	err := c.Enforce(t.Context(), "default", "web-0", "strict", 1)
	if !Unreachable(err) || !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), socket) {
		t.Errorf("no agent: %v", err)
	}
	for range 3 {
		a := start(t, socket)
		if err := c.Enforce(t.Context(), "default", "web-0", "strict", 1); err != nil {
			t.Errorf("an agent that came: %v", err)
		}
		a.Close()
	}
}

// TestComesWhileDialled: a call waits for an agent that is starting.
func TestComesWhileDialled(t *testing.T) {
	t.Parallel()
	socket := socketPath(t)
	c := newClient(t, socket)
	done := make(chan error, 1)
	go func() { done <- c.Enforce(t.Context(), "default", "web-0", "strict", 1) }()
	start(t, socket)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSilent: calls to an agent that does not answer end, whether or not it accepts the
// connection, and when their caller ends.
func TestSilent(t *testing.T) {
	t.Parallel()
	for _, accepts := range []bool{true, false} {
		socket := socketPath(t)
		c := newClient(t, socket)
		if accepts {
			start(t, socket).SetFault(npa.Fault{Hang: true})
		} else {
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		if err := c.Enforce(t.Context(), "default", "web-0", "strict", 1); !Unreachable(err) {
			t.Errorf("accepts %v: %v", accepts, err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := c.Delete(gone, "default", "web-0"); !Unreachable(err) {
			t.Errorf("accepts %v, caller gone: %v", accepts, err)
		}
	}
}

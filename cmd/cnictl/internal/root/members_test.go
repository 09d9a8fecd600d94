package root_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"context"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/testenv/kube/fleetsim"
)

// memberWatcher waits until a node that left has come back.
type memberWatcher struct {
	mu     sync.Mutex
	left   map[string]bool
	total  int // number of nodes last reported
	fewer  bool
	joined func()
}

// said processes a line of standard error.
func (c *memberWatcher) said(line string) {
	name, ok := strings.CutPrefix(line, "warning: node ")
	if name, gone := strings.CutSuffix(name, " left the cluster"); ok && gone {
		c.mu.Lock()
		c.left[name] = true
		c.mu.Unlock()
	}
}

// shown processes a line of standard output.
func (c *memberWatcher) shown(line string) {
	var doc struct {
		Kind  string
		Node  string
		Nodes struct{ Total int }
	}
	if json.Unmarshal([]byte(line), &doc) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if doc.Kind == "FleetStatus" {
		c.fewer = c.fewer || doc.Nodes.Total < c.total
		if c.fewer && doc.Nodes.Total > c.total {
			c.joined()
		}
		c.total = doc.Nodes.Total
	}
	if c.left[doc.Node] {
		c.joined()
	}
}

// TestFollow_Members: every command that follows a cluster sees nodes leave and nodes with the
// same names join, with one list request per kind.
func TestFollow_Members(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 5, Seed: 1, Churn: 3 * time.Second, NodeChurn: 500 * time.Millisecond})
	for name, args := range map[string]string{
		"status": "status -w -o json", "top": "top -w -o json", "enis": "enis -w -o json", "ips": "ips -w -o json", "logs": "logs -f -o json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := before(t, sim)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := &memberWatcher{left: map[string]bool{}, joined: cancel}
			out, errOut := &lineWriter{line: c.shown}, &lineWriter{line: c.said}
			code := root.Main(ctx, factory(t, out, errOut), append(strings.Fields(args), "--interval=2s", "--kubeconfig="+front.kubeconfig))
			if code != 0 || !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("exit %d, %v: no node that left joined again, or none left: %q\n%.2000s", code, ctx.Err(), errOut, out)
			}
			if nodes, pods := front.listed("nodes"), front.listed("pods"); nodes != 1 || pods != 1 {
				t.Errorf("%d lists of nodes and %d of pods", nodes, pods)
			}
		})
	}
}

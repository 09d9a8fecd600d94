package root

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/kube/fleetsim"
)

// TestEvents_OfTheNodesAskedFor: Kubernetes events are limited to the nodes selected by
// arguments, --nodes and --selector. A node that does not exist is an error.
func TestEvents_OfTheNodesAskedFor(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 2, Seed: 5, Churn: -1})
	a, b := fleetsim.NodeName(0), fleetsim.NodeName(1)
	other := sandboxEvent("pay", "cart-2", b, time.Now())
	other["metadata"].(map[string]any)["uid"] = "21111111-2222-3333-4444-555555555555"
	w := &factWorld{kubeconfig: altered(t, sim, func(string, map[string]any) {}, map[string][]any{
		"Event": {sandboxEvent("shop", "cart-1", a, time.Now()), other},
	})}
	short, _, _ := strings.Cut(a, ".")
	for args, want := range map[string]struct {
		nodes string
		code  int
	}{
		"events":                                {a + " " + b, 0},
		"events " + a:                           {a, 0},
		"events " + short:                       {a, 0},
		"events --nodes " + b:                   {b, 0},
		"events --daemon --nodes " + b:          {b, 0},
		"events -l kubernetes.io/hostname=" + a: {a, 0},
		"events -n shop":                        {a, 0},
		"events --namespace pay":                {b, 0},
		"events -n shop --daemon":               {a, 0},
		"events -n pay " + a:                    {"", 0},
		"events -n none":                        {"", 0},
		"events -l foo=bar":                     {"", cli.ExitNotFound},
		"events --nodes nope":                   {"", cli.ExitNotFound},
		"events nope":                           {"", cli.ExitNotFound},
		"events --daemon nope":                  {"", cli.ExitNotFound},
		"events -w -l foo=bar":                  {"", cli.ExitNotFound},
		"events -w nope":                        {"", cli.ExitNotFound},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := w.ran(t, append(strings.Fields(args), "--filter", "from=kubernetes", "--sort-by", "node", "--no-headers", "--columns", "node"), ofSim)
			if got := strings.Join(strings.Fields(stdout), " "); got != want.nodes || code != want.code {
				t.Errorf("exit %d, nodes %q\n%s", code, got, stderr)
			}
		})
	}
	const unread = "; the daemons' own were not read: give --daemon"
	for args, want := range map[string]string{
		"events": "in the cluster with --filter" + unread, "events --nodes " + b: "on 1 node with --filter" + unread,
		"events -n x": "in the cluster in namespace x with --filter" + unread, "events --daemon -n x": "in the cluster in namespace x with --filter",
	} {
		_, stderr, code := w.ran(t, append(strings.Fields(args), "--filter", "what=nope"), ofSim)
		if code != 0 || stderr != "no events found "+want+"\n" {
			t.Errorf("%s: exit %d, %q", args, code, stderr)
		}
	}
	for _, args := range []string{"events -w --nodes " + a, "events -w --daemon --nodes " + a, "events -w -l kubernetes.io/hostname=" + a, "events -w -n shop"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &until{what: a, done: cancel}
			f := &cli.Factory{
				Streams: &cli.Streams{Out: out, Err: new(bytes.Buffer), Size: func() (int, int) { return 80, 24 }}, Env: call{}.lookup, Now: time.Now, Name: "cnictl",
				Tick:        func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} },
				LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
			}
			code := Main(ctx, f, append(strings.Fields(args), "--kubeconfig="+w.kubeconfig, "--filter", "from=kubernetes"))
			if got := out.String(); code != 0 || !strings.Contains(got, a) || strings.Contains(got, b) {
				t.Errorf("exit %d:\n%s", code, got)
			}
		})
	}
}

// TestEvents_OfANamespace: of the daemons' events, a namespace selects those about its pods.
func TestEvents_OfANamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.targets["rich"] = rich(t, dir, fleettest.Secondary())
	recording := twoNodeRecording(t, dir, w.targets)
	for _, from := range []string{"@rich", "--replay " + recording} {
		all, _, _ := w.runNoun(t, call{args: "events --daemon --columns object --no-headers " + from})
		want := ""
		for line := range strings.Lines(all) {
			if strings.HasPrefix(line, "shop/") {
				want += line
			}
		}
		got, _, code := w.runNoun(t, call{args: "events --daemon --columns object --no-headers -n shop " + from})
		none, _, _ := w.runNoun(t, call{args: "events --daemon --columns object --no-headers -n nope " + from})
		if code != 0 || want == "" || got != want || none != "" {
			t.Errorf("%s: exit %d\n%s\nwant\n%s\nof no namespace:\n%s", from, code, got, want, none)
		}
	}
}

// until collects what is written, and calls done once that contains what.
type until struct {
	what string
	done func()

	mu  sync.Mutex // guards all
	all bytes.Buffer
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.all.Write(p)
	if strings.Contains(u.all.String(), u.what) {
		u.done()
	}
	return n, err
}

func (u *until) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all.String()
}

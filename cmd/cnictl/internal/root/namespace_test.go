package root

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/kube/fleetsim"
)

// narrowed runs each command that shows what --namespace selects, where pods are of several
// namespaces. CLUSTER is a simulated cluster.
var narrowed = map[string]call{
	"events":           {args: "events --daemon @rich"},
	"ips":              {args: "ips @large,starved,prefixes"},
	"trunks":           {args: "trunks CLUSTER"},
	"pods":             {args: "pods CLUSTER"},
	"node ips":         {args: "node ips large @large"},
	"node pods":        {args: "node pods large @large"},
	"node checkpoint":  {args: "node checkpoint large @large"},
	"local ips":        {args: "local ips", local: "large"},
	"local pods":       {args: "local pods", local: "large"},
	"local checkpoint": {args: "local checkpoint", local: "large"},
}

// completed are the commands for which --namespace completes names; other tests hold them.
var completed = []string{"", "tui", "replay", "pod", "doctor pod", "config view"}

// TestNamespace_EveryCommand: a command selects by --namespace, or refuses it. None accepts and
// ignores it.
func TestNamespace_EveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := slices.Concat(slices.Collect(maps.Keys(narrowed)), completed)
	slices.Sort(known)
	if got := slices.Sorted(maps.Keys(namespaced)); !slices.Equal(got, known) {
		t.Errorf("--namespace is for %q, tests hold %q", got, known)
	}
	refused := 0
	everyCommand(tree("cnictl"), func(cmd *cobra.Command) {
		name := nameOf(cmd)
		known = slices.DeleteFunc(known, func(s string) bool { return s == name })
		if _, ok := narrowed[name]; ok && !strings.HasPrefix(name, "local ") && !strings.Contains(oneLine(connection), name) {
			t.Errorf("help connection does not name %q", name)
		}
		if _, selects := namespaced[name]; selects || !cmd.Runnable() || strings.HasPrefix(name, "completion") || name == "help" {
			return
		}
		args := name
		for cmd.ValidateArgs(make([]string, len(strings.Fields(args))-len(strings.Fields(name)))) != nil {
			if args += " x"; len(args) > len(name)+10 {
				t.Fatalf("%q takes no arguments", name)
			}
		}
		_, stderr, code := w.run(t, call{args: args + " -n shop"})
		if code != cli.ExitUsage || !strings.Contains(stderr, cmd.CommandPath()+" cannot filter by --namespace\n") {
			t.Errorf("%s -n shop: exit %d\n%s", args, code, stderr)
		}
		byDefault := map[string]string{"CNICTL_NAMESPACE": "shop"}
		_, stderr, _ = w.run(t, call{args: args + " --concurrency=0", env: byDefault}) // refused before it does anything
		if strings.Contains(stderr, "--namespace") {
			t.Errorf("%s with a default: %s", args, stderr)
		}
		refused++
	})
	if len(known) > 0 || refused < 20 {
		t.Errorf("%d commands refuse it; %q are none", refused, known)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestNamespace_Selects: the commands that select by --namespace show what concerns pods of the
// namespace, in documents and tables, once and with --watch, given as a flag or as a default.
func TestNamespace_Selects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 3, Churn: -1})
	cluster := "--node-timeout=1m --kubeconfig=" + altered(t, sim, func(string, map[string]any) {}, nil)
	for name, c := range narrowed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.args = strings.ReplaceAll(c.args, "CLUSTER", cluster)
			run := func(more string, env map[string]string) (string, string) {
				t.Helper()
				c := c
				c.args, c.env = c.args+" "+more, env
				stdout, stderr, code := w.runNoun(t, c)
				if code != 0 {
					t.Fatalf("%s: exit %d\n%s", c.args, code, stderr)
				}
				return stdout, stderr
			}
			all, _ := run("-o json", nil)
			every := namespacesIn(t, all)
			named := slices.DeleteFunc(slices.Clone(every), func(s string) bool { return s == "" })
			if len(every) < 2 || len(named) == 0 {
				t.Fatalf("it shows the namespaces %q without -n, which proves nothing", every)
			}
			chosen := named[len(named)-1]
			selected, _ := run("-o json -n "+chosen, nil)
			if got := namespacesIn(t, selected); !slices.Equal(got, []string{chosen}) {
				t.Errorf("-n %s shows the namespaces %q\n%.2000s", chosen, got, selected)
			}
			env := map[string]string{"CNICTL_NAMESPACE": chosen}
			if byDefault, _ := run("-o json", env); !slices.Equal(namespacesIn(t, byDefault), []string{chosen}) {
				t.Errorf("CNICTL_NAMESPACE=%s shows others\n%.2000s", chosen, byDefault)
			}
			if back, _ := run("-o json --namespace=", env); !slices.Equal(namespacesIn(t, back), every) {
				t.Errorf("--namespace= does not show all namespaces, despite a default\n%.2000s", back)
			}
			table, _ := run("-o wide -n "+chosen, nil)
			for _, other := range named[:len(named)-1] {
				if strings.Contains(table, other+"/") {
					t.Errorf("-n %s shows pods of %s:\n%s", chosen, other, table)
				}
			}
			none, note := run("-n nope", nil)
			notes := !strings.Contains(name, "checkpoint") // a list says why it is empty
			if name != "trunks" && (strings.Count(none, "\n") != 1 || notes != strings.Contains(note, "in namespace nope")) {
				t.Errorf("-n nope prints\n%s%s", none, note)
			}
			if cmd, _, err := tree("cnictl").Find(strings.Fields(name)); err != nil || cmd.Flags().Lookup("watch") == nil {
				return
			}
			first := `amespace":"` + chosen + `"`
			if name == "events" {
				first = `"object":"` + chosen + "/"
			}
			for _, line := range strings.Split(w.watch(t, c.args+" -w -o json -n "+chosen, first), "\n") {
				if got := namespacesIn(t, line); len(got) > 0 && !slices.Equal(got, []string{chosen}) {
					t.Errorf("-w -n %s shows %q: %s", chosen, got, line)
				}
			}
		})
	}
}

// watch runs a command with --watch until it has printed a text.
func (w world) watch(t *testing.T, line, text string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &until{what: text, done: cancel}
	errOut := new(bytes.Buffer)
	f := &cli.Factory{
		Streams: &cli.Streams{Out: out, Err: errOut, Size: func() (int, int) { return 80, 24 }},
		Env:     call{}.lookup, Now: fleettest.Now, Name: "cnictl",
		Tick:        func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} },
		LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
	}
	args := strings.Fields(line)
	for i, a := range args {
		if names, ok := strings.CutPrefix(a, "@"); ok {
			args[i] = "--targets=" + w.list(strings.Split(names, ",")...)
		}
	}
	if code := Main(ctx, f, args); code != 0 || !strings.Contains(out.String(), out.what) {
		t.Errorf("%q: exit %d\n%s%s", args, code, out, errOut)
	}
	return strings.TrimSpace(out.String())
}

// namespacesIn returns the namespaces of what a document shows of pods, sorted; "" is what is of
// no pod.
func namespacesIn(t *testing.T, document string) []string {
	t.Helper()
	var tree any
	if err := json.Unmarshal([]byte(document), &tree); err != nil {
		t.Fatalf("%v: %.300s", err, document)
	}
	found := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				text, _ := member.(string)
				switch name {
				case "namespace", "podNamespace":
					found[text] = true
				case "object": // of an event
					namespace, _, ok := strings.Cut(text, "/")
					found[namespace] = found[namespace] || ok
					found[""] = found[""] || !ok
				}
				walk(member)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(tree)
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(found))
}

// TestNamespace_OfANamedPod: --namespace completes the name of a pod, and must not contradict it.
// A default is overruled by a name that has a namespace.
func TestNamespace_OfANamedPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	shop := map[string]string{"CNICTL_NAMESPACE": "kube-system"}
	for args, want := range map[string]string{
		"pod cart-7d9f-1 -n shop @rich":                           "shop/cart-7d9f-1",
		"pod pod/cart-7d9f-1 -n shop @rich":                       "shop/cart-7d9f-1",
		"pod shop/cart-7d9f-1 @rich":                              "shop/cart-7d9f-1",
		"ips --pod cart-7d9f-1 -n shop @large":                    "shop/cart-7d9f-1",
		"ips --pod shop/cart-7d9f-1 -n shop @large":               "shop/cart-7d9f-1",
		"ips --pod shop/cart-7d9f-1 @large":                       "shop/cart-7d9f-1",
		"ips --ip 10.0.3.42 -n shop @large":                       "shop/cart-7d9f-1",
		"doctor pod cart-7d9f-1 -n shop --once --exit-zero @rich": "1 node",
	} {
		stdout, stderr, code := w.runNoun(t, call{args: args, env: shop})
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"pod shop/cart-7d9f-1 -n pay @rich":        {cli.ExitUsage, "pod shop/cart-7d9f-1 is not in --namespace=pay"},
		"doctor pod shop/cart-7d9f-1 -n pay @rich": {cli.ExitUsage, "pod shop/cart-7d9f-1 is not in --namespace=pay"},
		"ips --pod shop/cart-7d9f-1 -n pay @large": {cli.ExitUsage, "pod shop/cart-7d9f-1 is not in --namespace=pay"},
		"ips --ip 10.0.3.42 -n pay @large":         {cli.ExitNotFound, "address 10.0.3.42 of a pod in namespace pay not found"},
		"logs --pod cart -n shop @rich":            {cli.ExitUsage, "try: cnictl logs --pod shop/NAME"},
		"replay --print -n shop x":                 {cli.ExitUsage, "cnictl replay cannot filter by --namespace"},
	} {
		if _, stderr, code := w.runNoun(t, call{args: args}); code != want.code || !strings.Contains(stderr, want.says) {
			t.Errorf("%s: exit %d\n%s", args, code, stderr)
		}
	}
}

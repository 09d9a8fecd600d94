package root_test

import (
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/testenv/kube/fleetsim"
)

// TestNodeNames: in every command and in --nodes, NODE may be the name as -o name prints it, the
// instance ID, the address, or an unambiguous prefix of the name.
func TestNodeNames(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 12, Seed: 1, Churn: -1})
	front := before(t, sim)
	run := func(args ...string) (stdout, stderr string, code int) {
		ctx := t.Context()
		var out, errOut lineWriter
		code = root.Main(ctx, factory(t, &out, &errOut), append(args, "--kubeconfig="+front.kubeconfig, "--node-timeout=1m"))
		return out.String(), errOut.String(), code
	}
	node, other := fleetsim.NodeName(3), fleetsim.NodeName(4)
	printed, stderr, code := run("nodes", node, "-o", "name")
	if code != 0 || !strings.HasSuffix(printed, "/"+node+"\n") {
		t.Fatalf("exit %d: %s%s", code, printed, stderr)
	}
	ids, stderr, code := run("nodes", node, "-o", "jsonpath={.items[0].object.instanceId} {.items[0].object.internalIp}")
	id, address, both := strings.Cut(strings.TrimSpace(ids), " ")
	if code != 0 || !both {
		t.Fatalf("exit %d: %s%s", code, ids, stderr)
	}
	short, _, _ := strings.Cut(node, ".")
	for _, name := range []string{strings.TrimSpace(printed), "node/" + node, id, address, short, node[:len(node)-3]} {
		for _, args := range [][]string{{"nodes", name, "-o", "name"}, {"nodes", "--nodes", name, "-o", "name"}, {"node", name, "-o", "name"}, {"nodes", name, "--nodes", name + "," + other, "-o", "name"}} {
			if stdout, stderr, code := run(args...); code != 0 || stdout != printed {
				t.Errorf("%q: exit %d: %s%s", args, code, stdout, stderr)
			}
		}
	}
	// Names and --nodes mean the same in all commands.
	for _, args := range []string{"nodes", "node", "node enis", "node plan", "enis", "ips", "top", "trunks", "logs", "events", "events --daemon", "nodes -w"} {
		stdout, stderr, code := run(append(strings.Fields(args), node, "--nodes", other)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "node "+node+" is not one of --nodes") {
			t.Errorf("%s of a node outside: exit %d: %s%s", args, code, stdout, stderr)
		}
	}
	if _, stderr, code := run("node", "ip-10-"); code != 2 || !strings.Contains(stderr, "matches 12 nodes") {
		t.Errorf("ambiguous: exit %d: %s", code, stderr)
	}
	if _, stderr, code := run("node", short+"9"); code != 6 || !strings.Contains(stderr, "did you mean "+node) {
		t.Errorf("a name nearly right: exit %d: %s", code, stderr)
	}
}

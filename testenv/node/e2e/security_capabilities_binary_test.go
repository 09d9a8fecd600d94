package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// withCapabilities boots a node whose daemon will have only these capabilities. No daemon
// runs yet.
func (l *lab) withCapabilities(names ...string) *node.Node {
	l.t.Helper()
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "t3.medium", SubnetID: l.subnet.ID})
	if err != nil {
		l.t.Fatal(err)
	}
	n, err := node.Start(l.t.Context(), node.Options{
		Fabric: l.fabric, World: l.world, InstanceID: i.ID, Dir: l.t.TempDir(), Binaries: l.binaries, Capabilities: names,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if l.t.Failed() {
			for file, text := range n.Logs() {
				l.t.Logf("%s of %s:\n%s", file, n.Name, text)
			}
		}
		if err := n.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return n
}

// pathTo returns a PATH on which iptables uses the given one of its two modes.
func pathTo(t *testing.T, mode string) string {
	t.Helper()
	dir := t.TempDir()
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, part := range []string{"", "-save", "-restore"} {
			if err := os.Symlink(filepath.Join("/usr/sbin", program+"-"+mode+part), filepath.Join(dir, program+part)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir + ":" + os.Getenv("PATH")
}

// TestCapabilities_EachIsNeeded: without a capability that it needs the daemon exits at once
// and names it; with them, and user 0 owning the mounts, pods get their network.
func TestCapabilities_EachIsNeeded(t *testing.T) {
	t.Parallel()
	type row struct {
		mode  string // of iptables
		have  []string
		lacks string // "" if nothing
	}
	rows := map[string]row{}
	for _, r := range []row{
		{"nft", []string{"NET_ADMIN", "NET_RAW"}, ""},
		{"nft", []string{"NET_ADMIN"}, ""},
		{"nft", []string{"NET_RAW"}, "NET_ADMIN"},
		{"legacy", []string{"NET_ADMIN", "NET_RAW"}, ""},
		{"legacy", []string{"NET_ADMIN"}, "NET_RAW"},
		{"legacy", []string{"NET_RAW"}, "NET_ADMIN"},
	} {
		rows[fmt.Sprint(r.mode, " with ", strings.Join(r.have, " "))] = r
	}
	rowsAtOnce(t, rows, func(t *testing.T, r row) {
		l := newLab(t, fakeaws.Options{})
		n := l.withCapabilities(r.have...)
		env := map[string]string{"PATH": pathTo(t, r.mode)}
		if r.lacks == "" {
			l.start(n, env)
			l.del(n, l.mustAdd(n, "p", 2, 2), 2)
			l.nothingLeft(n)
			return
		}
		if err := n.StartDaemon(env); err != nil {
			t.Fatal(err)
		}
		ctx := testenv.Context(t)
		end, err := n.DaemonEnded(ctx)
		if err != nil {
			t.Fatal(err)
		}
		said := n.Logs()["daemon-1.out"]
		want := "add " + r.lacks + " to securityContext.capabilities.add of the container aws-node"
		if end.Code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, want) {
			t.Errorf("status %d, output %q; want one line with %q", end.Code, said, want)
		}
		if calls := l.world.Calls(); len(calls) > 0 {
			t.Errorf("EC2 was asked before: %v", calls)
		}
	})
}

// TestCapabilities_AreTheManifests: the daemon has exactly the capabilities that the manifest
// grants, and the only writable paths that it needs are the manifest's mounts.
func TestCapabilities_AreTheManifests(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("t3.medium", nil)
	pods := l.mustAdd(n, "p", 5, 5) // an ENI is attached for them
	granted, err := deploy.Capabilities()
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{"DAC_OVERRIDE": 1, "NET_ADMIN": 12, "NET_RAW": 13} // capabilities(7)
	var mask uint64
	for _, name := range granted {
		number, ok := numbers[name]
		if !ok {
			t.Fatalf("the manifest grants %s, which this test does not know", name)
		}
		mask |= 1 << number
	}
	status := l.procfs(n, n.DaemonPID(), "status")
	for field, want := range map[string]string{
		"CapPrm": fmt.Sprintf("%016x", mask), "CapEff": fmt.Sprintf("%016x", mask), "CapBnd": fmt.Sprintf("%016x", mask),
		"CapAmb": fmt.Sprintf("%016x", 0), "NoNewPrivs": "1",
	} {
		if !slices.Contains(strings.Split(status, "\n"), field+":\t"+want) {
			t.Errorf("%s is not %s in\n%s", field, want, status)
		}
	}
	mounts := map[string]string{} // writable ones
	for line := range strings.Lines(l.procfs(n, n.DaemonPID(), "mounts")) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(f[3]+",", "rw,") {
			mounts[f[1]] = f[2]
		}
	}
	want := []string{n.Dir, "/run/aws-node", "/run/xtables.lock"}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(mounts)); !slices.Equal(got, want) {
		t.Errorf("the daemon may write below %q, want %q", got, want)
	}
	l.del(n, pods, 5)
	l.kill(n, syscall.SIGTERM)
}

// procfs reads a file of a process of the node.
func (l *lab) procfs(n *node.Node, pid int, file string) string {
	l.t.Helper()
	r, err := n.Exec(agent.Cmd{Argv: []string{"/bin/cat", fmt.Sprintf("/proc/%d/%s", pid, file)}})
	if err != nil || r.Code != 0 {
		l.t.Fatalf("read %s of process %d: %v %s", file, pid, err, r.Stderr)
	}
	return string(r.Stdout)
}

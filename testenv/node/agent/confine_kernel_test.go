package agent_test

import (
	"os"
	"strings"
	"testing"

	"cnictl/testenv/node/agent"
)

// confined runs a script in a node with the given capabilities.
func confined(t *testing.T, a *agent.Agent, script string, capabilities ...string) string {
	t.Helper()
	c := sh(script)
	c.Confine = &agent.Confinement{Capabilities: capabilities, Writable: []string{t.TempDir()}}
	c.Env = append(c.Env, "W="+c.Confine.Writable[0])
	r, err := a.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(r.Stdout) + string(r.Stderr))
}

// TestConfine_Capabilities: only the named capabilities are left, in every relevant set, and
// also in the programs that the program starts.
func TestConfine_Capabilities(t *testing.T) {
	t.Parallel()
	a := start(t, "few")
	for _, c := range []struct {
		names []string
		mask  string // capabilities(7): NET_ADMIN is 12, NET_RAW 13
	}{
		{[]string{"NET_ADMIN", "NET_RAW"}, "0000000000003000"},
		{[]string{"NET_RAW"}, "0000000000002000"},
		{[]string{"CHECKPOINT_RESTORE"}, "0000010000000000"},
		{nil, "0000000000000000"},
	} {
		got := confined(t, a, `grep -E '^(CapPrm|CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d ' \t'; id -u`, c.names...)
		want := strings.Join([]string{"CapPrm:" + c.mask, "CapEff:" + c.mask, "CapBnd:" + c.mask, "NoNewPrivs:1", "0"}, "\n")
		if got != want {
			t.Errorf("with %v:\n%s\nwant\n%s", c.names, got, want)
		}
	}
	c := sh("true")
	c.Confine = &agent.Confinement{Capabilities: []string{"CAP_NET_RAW"}}
	if _, err := a.Run(c); err == nil || !strings.Contains(err.Error(), `no capability is named "CAP_NET_RAW"`) {
		t.Errorf("a capability that is none: error %v", err)
	}
}

// TestConfine_Files: a confined program can write only to its paths; the node's other programs
// and the agent's threads are not restricted.
func TestConfine_Files(t *testing.T) {
	t.Parallel()
	a := start(t, "tight")
	for path, writable := range map[string]bool{
		"$W/x": true, "/run/x": false, "/tmp/cnictl-confined": false, "/x": false, "/proc/sys/net/ipv4/ip_forward": false,
	} {
		got := confined(t, a, `echo 1 > "`+path+`" && echo written`, "NET_ADMIN", "DAC_OVERRIDE")
		if strings.HasSuffix(got, "written") != writable || !writable && !strings.Contains(got, "Read-only file system") {
			t.Errorf("write to %s: %s", path, got)
		}
	}
	r, err := a.Run(sh(`echo 1 > /run/x && echo 1 > /proc/sys/net/ipv4/ip_forward && grep CapEff /proc/self/status`))
	if err != nil || r.Code != 0 || strings.Contains(string(r.Stdout), "0000000000003000") {
		t.Errorf("another program of the node: %s%s (%v)", r.Stdout, r.Stderr, err)
	}
	if f, err := a.Open("/run/y", os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		t.Errorf("the agent: %v", err)
	} else {
		f.Close()
	}
}

// TestConfine_PodNamespaces: a confined program does not keep a pod's network namespace alive.
func TestConfine_PodNamespaces(t *testing.T) {
	t.Parallel()
	a := start(t, "host")
	ns, err := a.AddNetns("pod")
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	if got := confined(t, a, `grep -c /run/netns/pod /proc/self/mounts`); got != "0" {
		t.Errorf("the program has %s mounts of the pod's namespace", got)
	}
	if r, err := a.Run(sh(`grep -c /run/netns/pod /proc/self/mounts`)); err != nil || string(r.Stdout) != "1\n" {
		t.Errorf("the node has %s mounts of it (%v)", r.Stdout, err)
	}
	if err := a.RemoveNetns("pod"); err != nil {
		t.Error(err)
	}
}

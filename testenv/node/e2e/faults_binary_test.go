package e2e_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// unattached lists ENIs that are not attached to an instance.
func (l *lab) unattached() (ids []string) {
	for _, e := range l.world.ENIs() {
		if e.Attachment.ID == "" {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// TestAttach_OutlivesItsInstance: an ENI whose delete-on-termination EC2 refuses is used all the
// same.
func TestAttach_OutlivesItsInstance(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	l.allowOnly("DescribeNetworkInterfaces", "DescribeSubnets", "CreateNetworkInterface", "AttachNetworkInterface", "AssignPrivateIpAddresses", "CreateTags", "DeleteNetworkInterface")
	n := l.boot("t3.small", nil)
	l.mustAdd(n, "p", 5, 5)
	for _, c := range l.world.Calls() {
		if c.Code != "" && c.Code != "UnauthorizedOperation" {
			t.Errorf("EC2 refused %s: %s", c.Action, c.Code)
		}
	}
	if enis := l.world.ENIs(); len(enis) > 3 {
		t.Errorf("%d ENIs were made, the type takes 3", len(enis))
	}
}

// TestADD_SubnetFullAtFirst: the pool grows again once a subnet that was full has free addresses.
func TestADD_SubnetFullAtFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "t3.small", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.world.Occupy(l.subnet.ID, 1<<20); err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	l.start(n, map[string]string{"CNI_ADD_WAIT": "1s"})
	_, err = n.AddPod(node.PodSpec{Namespace: "default", Name: "first"})
	var failure *node.PluginError
	if !errors.As(err, &failure) || !strings.Contains(failure.Details, "subnet-exhausted") || failure.Code != 11 {
		t.Fatalf("ADD in a full subnet: %v, want code 11 and subnet-exhausted in the details", err)
	}
	if err := l.world.Vacate(l.subnet.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(l.t, "an ADD that succeeds", func() bool {
		p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: "later"})
		return err == nil && p.IP.IsValid()
	})
}

// TestStart_SaysWhatIsWrong starts daemons that must fail: the last line says what failed, why
// and what to do, and the exit code is 1.
func TestStart_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		env   map[string]string
		world func(w *fakeaws.World)
		says  []string
	}{
		{"metadata fails", nil, func(w *fakeaws.World) { w.SetIMDSFaults(func(string, int) int { return 403 }) }, []string{"Initialization failure", "instance metadata", "must be enabled"}},
		{"EC2 refuses", nil, func(w *fakeaws.World) { w.Allow() }, []string{"Initialization failure", "DescribeNetworkInterfaces", "UnauthorizedOperation"}},
		{"a bad value", map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "lax"}, nil, []string{"NETWORK_POLICY_ENFORCING_MODE", "lax", "none, strict, standard"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "t3.small", SubnetID: l.subnet.ID})
			if err != nil {
				t.Fatal(err)
			}
			n := l.node(i.ID)
			if row.world != nil {
				l.refusing = true
				row.world(l.world)
			}
			if err := n.StartDaemon(row.env); err != nil {
				t.Fatal(err)
			}
			err = n.WaitServing(t.Context())
			if err == nil {
				t.Fatal("it serves")
			}
			t.Log(err)
			for _, word := range row.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("does not say %q: %v", word, err)
				}
			}
		})
	}
}

// TestStart_LogsTime logs how long the daemon takes until it serves.
func TestStart_LogsTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		latency  map[string]time.Duration
		original string
	}{
		{"latency 0", nil, "300 ms, possible 60 ms"},
		{"realistic latency", fakeaws.RealisticLatency(), "1150 ms, possible 450 ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{Latency: row.latency})
			i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.4xlarge", SubnetID: l.subnet.ID})
			if err != nil {
				t.Fatal(err)
			}
			n := l.node(i.ID)
			for try := range 3 {
				started := time.Now()
				l.start(n, nil)
				t.Logf("start %d: serving after %d ms (original: %s)", try+1, time.Since(started).Milliseconds(), row.original) //realtime: logged
				l.settled(n)
				l.kill(n, 15)
			}
			if took := l.world.CallCounts(); took["DescribeNetworkInterfaces"] != 3 || took["DescribeSubnets"] != 3 {
				t.Errorf("three starts made %v", took)
			}
		})
	}
}

// TestRestart_MetadataBehind restarts a daemon while IMDS does not show its newest ENIs yet:
// they are in the pool anyway, and no device index is used twice.
func TestRestart_MetadataBehind(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{MetadataLag: 10 * time.Minute})
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 12, 4)
	l.settled(n)
	l.kill(n, 9)
	l.start(n, nil)
	held := l.assigned(n)
	for _, p := range pods {
		if !held[p.IP] {
			t.Errorf("%s is lost: %s is on no ENI that the daemon knows", p.Name, p.IP)
		}
	}
	for i, p := range l.mustAdd(n, "more", 10, 4) {
		if held[p.IP] {
			t.Errorf("pod %d got %s, which another has", i, p.IP)
		}
	}
	for _, c := range l.world.Calls() {
		if c.Code != "" {
			t.Errorf("EC2 refused %s: %s", c.Action, c.Code)
		}
	}
}

// TestRestart_LinkMissing restarts a daemon with an ENI whose link is missing: it serves at
// once, and the ENI's pods and slot are kept.
func TestRestart_LinkMissing(t *testing.T) {
	t.Parallel()
	l := newLabWithLinks(t, fakeaws.Options{}, 0)
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 12, 4)
	l.settled(n)
	l.kill(n, 9)
	var link string
	for _, e := range l.world.ENIsOf(n.InstanceID) {
		if !e.Primary() && link == "" {
			link = e.MAC
		}
	}
	name := l.linkOf(n, link)
	l.ip(n, "link", "set", name, "address", "02:00:00:00:00:01")
	testenv.Within(t, 90*time.Second, "a start without the link, which would be waited for 2 min", func() { l.start(n, nil) })
	l.ip(n, "link", "set", name, "address", link)
	testenv.Eventually(l.t, "all pods on ENIs that the daemon knows", func() bool {
		held := l.assigned(n)
		for _, p := range pods {
			if !held[p.IP] {
				return false
			}
		}
		return true
	})
}

func (l *lab) ip(n *node.Node, args ...string) string {
	l.t.Helper()
	r, err := n.Exec(agent.Cmd{Argv: append([]string{"/usr/sbin/ip"}, args...)})
	if err != nil || r.Code != 0 {
		l.t.Fatalf("ip %v: %v: %s", args, err, r.Stderr)
	}
	return string(r.Stdout)
}

func (l *lab) linkOf(n *node.Node, mac string) string {
	l.t.Helper()
	for _, line := range strings.Split(l.ip(n, "-o", "link"), "\n") {
		if strings.Contains(line, mac) {
			name, _, _ := strings.Cut(strings.Fields(line)[1], "@")
			return strings.TrimSuffix(name, ":")
		}
	}
	l.t.Fatalf("no link has the MAC %s", mac)
	return ""
}

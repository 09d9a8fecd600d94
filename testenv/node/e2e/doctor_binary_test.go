package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/evidence"
	doctorbundle "cnictl/doctor/evidence/bundle"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
	"cnictl/testenv/situation"
)

// TestDoctor_HealthyNode: what the built cnictl reads on a healthy node equals the evidence
// expected for the same world. The two are independent: one comes from the kernel and the
// daemon, the other from the rules that both implement.
func TestDoctor_HealthyNode(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"secondary IPs": {},
		"prefixes":      {"ENABLE_PREFIX_DELEGATION": "true"},
		"external SNAT": {"AWS_VPC_K8S_CNI_EXTERNALSNAT": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			n := l.boot("m5.large", env)
			pods := l.mustAdd(n, "p", 12, 4)
			l.settled(n)
			got, _ := l.doctor(n, "--once")
			want := l.expected(n, env, pods, got.First)
			equalReading(t, got.First, want)
		})
	}
}

// TestDoctor_HealthyIPv6Node does the same for a node whose pods have addresses of its /80.
func TestDoctor_HealthyIPv6Node(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	v := l.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	var err error
	if l.subnet, err = l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64")}); err != nil {
		t.Fatal(err)
	}
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID, IPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	l.start(n, ipv6Env)
	pods := l.mustAdd(n, "p", 3, 1)
	l.settled(n)
	got, saved := l.doctor(n, "--once")
	equalReading(t, got.First, l.expected(n, ipv6Env, pods, got.First))
	l.finds(saved, "")
}

// TestDoctor_TwoReadings: a second reading of an unchanged node shows the same, and its logs
// continue those of the first. The doctor finds no fault in either.
func TestDoctor_TwoReadings(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	l.mustAdd(n, "p", 4, 2)
	l.settled(n)
	got, saved := l.doctor(n, "--interval", "2s")
	l.finds(saved, "")
	first, second := got.First, got.Second
	if second == nil || second.At.Sub(first.At) < 2*time.Second {
		t.Fatalf("readings at %v and %+v", first.At, second)
	}
	for name, logs := range map[string][2]evidence.Source[evidence.Log]{"log.ipamd": {first.LogIPAMD, second.LogIPAMD}, "log.plugin": {first.LogPlugin, second.LogPlugin}} {
		before, after := logs[0].Content.Lines, logs[1].Content.Lines
		if len(before) == 0 || len(after) < len(before) || !cmp.Equal(before, after[:len(before)]) {
			t.Errorf("%s: %d lines (missing: %q), then %d (missing: %q)", name, len(before), logs[0].Missing, len(after), logs[1].Missing)
		}
	}
	second.LogIPAMD, second.LogPlugin = first.LogIPAMD, first.LogPlugin
	if d := cmp.Diff([]any{first.ENIs, first.Rules, first.Routes, first.IPTables, first.CNI, first.IMDS}, []any{second.ENIs, second.Rules, second.Routes, second.IPTables, second.CNI, second.IMDS},
		cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Errorf("readings differ (-first +second):\n%s", d)
	}
}

// TestDoctor_Faults: the doctor finds a node's faults in what it reads there.
func TestDoctor_Faults(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	l.mustAdd(n, "p", 2, 1)
	l.settled(n)
	iptables, err := exec.LookPath("iptables")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		code  string
		cause func() error
	}{
		{"net/forward-drop", func() error {
			r, err := n.Exec(agent.Cmd{Argv: []string{iptables, "-P", "FORWARD", "DROP"}})
			if err == nil && r.Code != 0 {
				err = errors.New(string(r.Stderr))
			}
			return err
		}},
		{"boot/ipamd-down", func() error {
			ctx := testenv.Context(t)
			if _, err := n.StopDaemon(ctx, syscall.SIGKILL); err != nil {
				return err
			}
			if _, err := n.AddPod(node.PodSpec{Namespace: "default", Name: "late"}); err == nil {
				return errors.New("a pod was added without a daemon")
			}
			return nil
		}},
	} {
		if err := fault.cause(); err != nil {
			t.Fatalf("%s: %v", fault.code, err)
		}
		_, saved := l.doctor(n, "--interval", "2s")
		l.finds(saved, fault.code)
	}
}

// finds runs the doctor on saved evidence, and on an anonymized bundle of it. Without a code it
// expects no finding of severity warning or higher.
func (l *lab) finds(saved []byte, code string) {
	l.t.Helper()
	ev, err := file.Load(saved)
	if err != nil {
		l.t.Fatal(err)
	}
	var packed bytes.Buffer
	if _, err := doctorbundle.Write(&packed, ev, doctorbundle.Options{Anonymize: true}); err != nil {
		l.t.Fatal(err)
	}
	dir := l.t.TempDir()
	l.write(filepath.Join(dir, "evidence.yaml"), string(saved), 0o600)
	l.write(filepath.Join(dir, "bundle.tar.gz"), packed.String(), 0o600)
	for _, in := range []string{"--evidence=" + filepath.Join(dir, "evidence.yaml"), "--bundle=" + filepath.Join(dir, "bundle.tar.gz")} {
		cmd := exec.CommandContext(l.t.Context(), filepath.Join(l.binaries, "cnictl"), "doctor", in, "--fail-on", "warning", "--skip", strings.Join(node.MachineFindings, ","))
		out, err := cmd.CombinedOutput()
		const undecided = 7
		switch exit := cmd.ProcessState.ExitCode(); {
		case code == "" && (exit == 0 || exit == undecided):
		case code != "" && strings.Contains(string(out), "  ("+code+", "):
		default:
			l.t.Errorf("doctor %s: %v, want %q\n%s", in, err, code, out)
		}
	}
}

// doctor makes cnictl save the state of a node.
func (l *lab) doctor(n *node.Node, flags ...string) (_ evidence.Node, saved []byte) {
	l.t.Helper()
	name := filepath.Join(n.Dir, "evidence.yaml")
	r, err := n.Exec(agent.Cmd{
		Argv: append([]string{filepath.Join(l.binaries, "cnictl"), "local", "doctor", "--exit-zero", "--node-timeout", testenv.Left(l.t).String(), "--save-evidence", name}, flags...),
		Env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.t.TempDir()},
	})
	if err != nil || r.Code != 0 || len(r.Stderr) > 0 {
		l.t.Fatalf("cnictl local doctor: %v, exit %d\n%s%s", err, r.Code, r.Stdout, r.Stderr)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		l.t.Fatalf("%v: %v", info, err)
	}
	if saved, err = os.ReadFile(name); err != nil {
		l.t.Fatal(err)
	}
	ev, err := file.Load(saved)
	if err != nil {
		l.t.Fatalf("what cnictl local doctor wrote: %v\n%s", err, saved)
	}
	return ev.Nodes[0], saved
}

// expected returns the evidence that a node of the lab's world should produce. The assignments
// are those of the daemon.
func (l *lab) expected(n *node.Node, env map[string]string, pods []*node.Pod, now *evidence.Reading) *evidence.Reading {
	l.t.Helper()
	world := map[string]any{
		"node": n.Name, "instance": n.InstanceID, "instanceType": "m5.large", "zone": l.subnet.AZ, "vpcCIDRs": now.IMDS.Content.VPCCIDRs,
		"daemon": "ours", "agentVersion": "", "env": env,
		"subnets": []map[string]any{{"id": l.subnet.ID, "cidr": l.subnet.CIDR, "zone": l.subnet.AZ}},
	}
	if env["ENABLE_IPv6"] == "true" {
		world["ipFamily"] = "ipv6"
	}
	owner := map[netip.Addr]string{}
	var enis, residents []map[string]any
	for _, e := range l.world.ENIs() {
		if e.Attachment.InstanceID != n.InstanceID {
			continue
		}
		enis = append(enis, map[string]any{
			"id": e.ID, "device": e.Attachment.Device, "mac": e.MAC, "subnet": e.SubnetID, "addresses": e.SecondaryIPs, "cidrs": slices.Concat(e.Prefixes, e.IPv6Prefixes),
		})
	}
	for _, e := range now.ENIs.Content {
		for _, a := range slices.Concat(append(prefixed(e), e.IPs)...) {
			owner[a.Address] = e.ID
		}
	}
	for _, p := range pods {
		residents = append(residents, map[string]any{"pod": p.Namespace + "/" + p.Name, "ips": []netip.Addr{p.IP}, "eni": owner[p.IP]})
	}
	world["enis"], world["pods"] = enis, residents
	doc, err := json.Marshal(map[string]any{"schemaVersion": 1, "at": now.At, "mode": "node", "base": "healthy", "once": true, "world": world})
	if err != nil {
		l.t.Fatal(err)
	}
	ev, err := situation.Load(doc)
	if err != nil {
		l.t.Fatalf("%v\n%s", err, doc)
	}
	return ev.Nodes[0].First
}

// equalReading compares a node's evidence with the expected one. It ignores what the world does
// not determine: times, MAC addresses of veth pairs, settings that are not set.
func equalReading(t *testing.T, got, want *evidence.Reading) {
	t.Helper()
	same := func(source string, got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
			t.Errorf("%s (-expected +read):\n%s", source, d)
		}
	}
	got.RunFiles.Content = slices.DeleteFunc(got.RunFiles.Content, func(name string) bool { return name == "ipam-subnets.json" }) // once EC2 has answered
	macs := map[evidence.Pod]string{}
	for i := range got.Links.Content {
		switch l := &got.Links.Content[i]; {
		case l.ENI != "":
			l.Kind = "device" // the fabric's cables are veth pairs
		case l.Pod != "":
			macs[l.Pod], l.MAC = l.MAC, ""
		}
	}
	for i := range want.Links.Content {
		if l := &want.Links.Content[i]; l.Pod != "" {
			l.MAC = ""
		}
	}
	for i := range want.Neighbours.Content {
		n := &want.Neighbours.Content[i]
		n.MAC = macs[n.Pod]
	}
	family := want.Rules.Content[0].Family // of the pods; the kernel has rules of the other family
	got.Rules.Content = slices.DeleteFunc(got.Rules.Content, func(r evidence.Rule) bool { return r.Family != family })
	got.Routes.Content = slices.DeleteFunc(got.Routes.Content, func(r evidence.Route) bool { // to the node's own IPv6 address
		return r.Family == 6 && r.Dev != "" && r.To != "default"
	})
	proxy := func(text string) bool { return strings.Contains(text, "KUBE-") } // no kube-proxy runs
	for _, list := range []*[]string{&want.IPTables.Content.NFT.Chains, &want.IPTables.Content.NFT.Rules} {
		*list = slices.DeleteFunc(*list, proxy)
	}
	same("kern.link", sorted(got.Links), sorted(want.Links))
	same("kern.rule", sorted(got.Rules), sorted(want.Rules))
	same("kern.route", sorted(got.Routes), sorted(want.Routes))
	same("kern.neigh", sorted(got.Neighbours), sorted(want.Neighbours))
	same("kern.ipt", got.IPTables, want.IPTables)
	for name, value := range want.Sysctls.Content {
		same("kern.sysctl "+name, got.Sysctls.Content[name], value)
	}
	same("imds", got.IMDS, want.IMDS)
	for _, r := range []*evidence.Reading{got, want} {
		for _, e := range r.ENIs.Content {
			for _, list := range slices.Concat([][]evidence.Address{e.IPs}, prefixed(e)) {
				for i := range list {
					list[i].AssignedAt = time.Time{}
				}
			}
		}
		c := &r.Checkpoint.Content
		c.Bytes, c.ModifiedAt = nil, time.Time{}
		for i := range c.Allocations {
			c.Allocations[i].At = time.Time{}
		}
	}
	same("intro.enis", got.ENIs, want.ENIs)
	same("intro.counters", got.Counters, want.Counters)
	same("intro.env", got.Env, want.Env)
	same("ckpt", got.Checkpoint, want.Checkpoint)
	same("host.listen", got.Listeners, want.Listeners)
	same("host.run", got.RunFiles, want.RunFiles)
	for name, missing := range map[string]string{
		"intro.summary": got.Summary.Missing, "intro.config": got.Config.Missing, "intro.plan": got.Plan.Missing, "intro.failures": got.Failures.Missing,
		"intro.events": got.Journal.Missing, "metrics": got.Metrics.Missing, "kern.ct": got.Conntrack.Missing,
		"host.pkg": got.Packages.Missing, "host.env": got.ContainerEnv.Missing, "host.res": got.Resources.Missing,
	} {
		if missing != "" {
			t.Errorf("%s is missing: %s", name, missing)
		}
	}
}

func prefixed(e evidence.ENI) (out [][]evidence.Address) {
	for _, p := range e.Prefixes {
		out = append(out, p.IPs)
	}
	return out
}

// sorted returns the entries of a list as JSON, sorted.
func sorted[T any](s evidence.Source[[]T]) (out []string) {
	for _, e := range s.Content {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err) // types of evidence always encode
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return append(out, s.Missing)
}

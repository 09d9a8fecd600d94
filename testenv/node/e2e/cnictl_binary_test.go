package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// TestCnictl_EqualsTheWorldAndTheKernel compares the built cnictl's output about a real node
// with EC2 and with the node's kernel.
func TestCnictl_EqualsTheWorldAndTheKernel(t *testing.T) {
	t.Parallel()
	for mode, env := range map[string]map[string]string{
		introspect.ModeSecondaryIP: {},
		introspect.ModePrefix:      {"ENABLE_PREFIX_DELEGATION": "true"},
	} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
			if err != nil {
				t.Fatal(err)
			}
			if mode == introspect.ModePrefix {
				// The prefixes of one ENI serve more pods than an m5.large may run, so
				// attach a second ENI before the daemon starts.
				e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID, Prefixes: 1})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: i.ID, Device: 1}); err != nil {
					t.Fatal(err)
				}
			}
			n := l.node(i.ID)
			c := cnictl{l, n, "unix:" + filepath.Join(n.Dir, "i.sock")}
			env["INTROSPECTION_BIND_ADDRESS"] = c.address
			l.start(n, env)
			pods := l.mustAdd(n, "p", 24, 8)
			show := c.settled()
			if got := show.Summary.Cards[0]; got.Mode != mode || got.Assigned != len(pods) {
				t.Errorf("node show: mode %s with %d assigned, want %s with %d", got.Mode, got.Assigned, mode, len(pods))
			}
			enis := c.enis()
			c.equalWorld(enis)
			c.equalPods(enis, pods)
			c.equalKernel(enis)
			for _, e := range enis[:min(2, len(enis))] {
				if len(assignedOn(e)) == 0 {
					t.Errorf("ENI %s serves no pod of %d: too little for a proof", e.ID, len(pods))
				}
			}

			l.del(n, pods[:len(pods)/2], 8)
			c.settled()
			enis = c.enis()
			c.equalWorld(enis)
			c.equalPods(enis, pods[len(pods)/2:])
			c.equalKernel(enis)
		})
	}
}

// cnictl is the built tool, pointed at one node.
type cnictl struct {
	*lab
	n       *node.Node
	address string
}

// run runs a command and decodes its JSON output.
func (c cnictl) run(into any, command ...string) error {
	var out, errOut bytes.Buffer
	ctx := testenv.Context(c.t)
	args := append(command, "--targets", "worker="+c.address, "-o", "json")
	cmd := exec.CommandContext(ctx, filepath.Join(c.binaries, "cnictl"), args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run cnictl %v: %w\n%s%s", args, err, &out, &errOut)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("read what cnictl %v printed: %w\n%s", args, err, &out)
	}
	return nil
}

// settled waits until no EC2 operation is in progress or planned. The introspection server may not
// listen yet: it starts concurrently with the sockets that show that the daemon serves.
func (c cnictl) settled() (shown document.NodeIPAM) {
	c.t.Helper()
	quiet := 0
	var err error
	c.t.Cleanup(func() {
		if c.t.Failed() && err != nil {
			c.t.Log(err)
		}
	})
	testenv.Eventually(c.t, "a quiet pool", func() bool {
		shown = document.NodeIPAM{}
		if err = c.run(&shown, "node", "show", "worker"); err != nil || len(shown.Summary.Operations) > 0 || *shown.Summary.WaitingADDs > 0 {
			quiet = 0
			return false
		}
		quiet++
		return quiet == 3
	})
	return shown
}

func (c cnictl) enis() []introspect.NodeENI {
	c.t.Helper()
	var list struct {
		Kind  string
		Node  string
		Items []introspect.NodeENI
		Error *document.NodeError
	}
	if err := c.run(&list, "node", "enis", "worker"); err != nil {
		c.t.Fatal(err)
	}
	if list.Kind != document.KindENIList || list.Node != "worker" || list.Error != nil {
		c.t.Fatalf("node enis: %s of %s, error %v", list.Kind, list.Node, list.Error)
	}
	return list.Items
}

// TestCnictl_ShowsUnusedSettings: cnictl shows for every setting what this version does with it.
func TestCnictl_ShowsUnusedSettings(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	c := cnictl{l, n, "unix:" + filepath.Join(n.Dir, "i.sock")}
	l.start(n, map[string]string{"INTROSPECTION_BIND_ADDRESS": c.address})
	c.settled()
	var doc introspect.NodeConfig
	if err := c.run(&doc, "node", "config", "worker"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range doc.Items {
		got[row.Name] = row.Support
	}
	want := map[string]string{}
	for _, row := range config.Table() {
		want[row.Name] = string(row.Support)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("support of settings (-config +cnictl):\n%s", diff)
	}
}

// facts are an ENI's properties that both EC2 and cnictl show.
type facts struct {
	Device  int
	Subnet  string
	Primary bool
	CIDRs   []string
}

// equalWorld compares ids, cards, devices and all CIDRs with EC2's.
func (c cnictl) equalWorld(shown []introspect.NodeENI) {
	c.t.Helper()
	want, got := map[string]facts{}, map[string]facts{}
	for _, e := range c.world.ENIsOf(c.n.InstanceID) {
		f := facts{Device: e.Attachment.Device, Subnet: e.SubnetID, Primary: e.Attachment.Device == 0}
		for _, a := range e.SecondaryIPs {
			f.CIDRs = append(f.CIDRs, netip.PrefixFrom(a, 32).String())
		}
		for _, p := range e.Prefixes {
			f.CIDRs = append(f.CIDRs, p.String())
		}
		slices.Sort(f.CIDRs)
		want[e.ID] = f
	}
	for _, e := range shown {
		f := facts{Device: e.Device, Subnet: e.SubnetID, Primary: e.Primary}
		for _, cidr := range e.CIDRs {
			f.CIDRs = append(f.CIDRs, cidr.CIDR.String())
		}
		slices.Sort(f.CIDRs)
		got[e.ID] = f
	}
	if len(want) < 2 {
		c.t.Errorf("EC2 has %d ENIs on the node, too few for a proof", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("ENIs (-EC2 +cnictl):\n%s", diff)
	}
}

// equalPods compares the addresses shown as assigned with those the pods got.
func (c cnictl) equalPods(shown []introspect.NodeENI, pods []*node.Pod) {
	c.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, p := range pods {
		want[p.IP.String()] = p.Namespace + "/" + p.Name
	}
	for _, e := range shown {
		for _, a := range assignedOn(e) {
			got[a.Address.String()] = a.PodNamespace + "/" + a.PodName
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("assigned addresses (-pods +cnictl):\n%s", diff)
	}
}

func assignedOn(e introspect.NodeENI) (out []introspect.NodeAddress) {
	for _, cidr := range e.CIDRs {
		for _, a := range cidr.Addresses {
			if a.State == introspect.AddressAssigned {
				out = append(out, a)
			}
		}
	}
	return out
}

// equalKernel compares the ENIs and assigned addresses shown with the node's rules and
// routes: each assigned address has its route and its rules, each secondary ENI has the rule
// for its primary address, and the kernel has no others.
func (c cnictl) equalKernel(shown []introspect.NodeENI) {
	c.t.Helper()
	state, err := c.n.KernelState()
	if err != nil {
		c.t.Fatal(err)
	}
	own := map[string]netip.Addr{}
	for _, e := range c.world.ENIsOf(c.n.InstanceID) {
		own[e.ID] = e.PrimaryIP
	}
	var rules, routes []string
	for _, e := range shown {
		if e.RouteTable == nil {
			c.t.Errorf("ENI %s: no route table", e.ID)
			continue
		}
		table := strconv.Itoa(*e.RouteTable)
		if !e.Primary {
			rules = append(rules, "32765: from "+own[e.ID].String()+" lookup "+table)
			if !strings.Contains(state.Routes, " table "+table) {
				c.t.Errorf("ENI %s: table %s has no route", e.ID, table)
			}
		}
		for _, a := range assignedOn(e) {
			routes = append(routes, a.Address.String())
			rules = append(rules, "512: from all to "+a.Address.String()+" lookup main")
			if !e.Primary {
				rules = append(rules, "1536: from "+a.Address.String()+" lookup "+table)
			}
		}
	}
	slices.Sort(rules)
	slices.Sort(routes)
	if diff := cmp.Diff(rules, rulesOf(state.Rules, "512:", "1536:", "32765:")); diff != "" {
		c.t.Errorf("rules (-cnictl +kernel):\n%s", diff)
	}
	if diff := cmp.Diff(routes, podRoutes(state.Routes)); diff != "" {
		c.t.Errorf("routes to pods (-cnictl +kernel):\n%s", diff)
	}
}

// rulesOf returns the rules with the given priorities, sorted, with single spaces.
func rulesOf(text string, priorities ...string) (out []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && slices.Contains(priorities, words[0]) {
			out = append(out, strings.Join(words, " "))
		}
	}
	slices.Sort(out)
	return out
}

// podRoutes returns the addresses that have a route in the main table over a pod's link.
func podRoutes(text string) (out []string) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] != "fe80::/64" && words[1] == "dev" && strings.HasPrefix(words[2], "eni") && !slices.Contains(words, "table") {
			out = append(out, words[0])
		}
	}
	slices.Sort(out)
	return out
}

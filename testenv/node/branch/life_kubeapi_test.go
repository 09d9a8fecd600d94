package branch_test

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/testenv/aws/vpcrc"
)

// TestBranch_VLANIDAgain: the controller gives the VLAN id of an ended pod to another pod
// at once, and the first pod's DEL comes late.
func TestBranch_VLANIDAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{ReuseVLANs: true}), l.host()
	first := m.run("first")
	l.reaches("before", pair{"first", first, other.Primary.PrimaryIP})
	first.forget()
	second := m.withVLAN("second", first.VLAN)
	if err := m.runBound(second); err != nil {
		t.Fatal(err)
	}
	works := func(when string) {
		t.Helper()
		l.reaches(when, pair{"second", second, other.Primary.PrimaryIP}, pair{"to second", other, second.IP})
		if link := m.ip("link", "show", second.device()); !strings.Contains(link, second.MAC) {
			t.Errorf("%s: %s", when, link)
		}
	}
	works("while the first is there")
	m.endSandbox(first.Pod) // uses its namespace and result
	works("after the late DEL")
	first.Path = ""
	if _, err := m.RunPlugin(first.Pod, "DEL", first.Result); err != nil {
		t.Errorf("DEL without a namespace: %v", err)
	}
	works("after one more, without a namespace")
	m.end(second)
	m.nothingLeft()
}

// TestBranch_NameAgain: like a StatefulSet's, a pod comes back under its name before its first
// sandbox's DEL, with the same VLAN id or another.
func TestBranch_NameAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{ReuseVLANs: true}), l.host()
	for _, same := range []bool{true, false} {
		first := m.run("web-0")
		first.forget()
		var second *branchPod
		if same {
			second = m.withVLAN("web-0", first.VLAN)
		} else {
			second = m.bind("web-0")
		}
		if err := m.runBound(second); err != nil {
			t.Fatal(err)
		}
		m.endSandbox(first.Pod)
		l.reaches(fmt.Sprintf("VLAN id %d after %d", second.VLAN, first.VLAN), pair{"second", second, other.Primary.PrimaryIP}, pair{"to second", other, second.IP})
		m.end(second)
		m.nothingLeft()
	}
}

// TestBranch_SandboxAgain: the runtime creates a new sandbox for a running pod and deletes the old
// one late. Both have the same branch ENI.
func TestBranch_SandboxAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m, other := l.join(strict, vpcrc.Faults{}), l.host()
	first := m.run("p")
	second := *first
	if err := m.runBound(&second); err != nil {
		t.Fatal(err)
	}
	m.endSandbox(first.Pod)
	l.reaches("after the old sandbox's DEL", pair{"pod", second, other.Primary.PrimaryIP}, pair{"to pod", other, second.IP})
	m.end(&second)
	m.nothingLeft()
}

// TestBranch_DEL: DEL can be repeated, and works with as little as a runtime may pass.
func TestBranch_DEL(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, mode := range []string{strict, standard} {
		m := l.join(mode, vpcrc.Faults{})
		twice := m.run("twice-" + mode)
		twice.forget()
		for range 2 {
			if _, err := m.RunPlugin(twice.Pod, "DEL", twice.Result); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
		if err := m.RemoveSandbox(twice.Pod); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()

		bare := m.run("bare-" + mode)
		bare.forget()
		if _, err := m.RunPlugin(bare.Pod, "DEL", nil); err != nil {
			t.Errorf("%s: without a result: %v", mode, err)
		}
		if err := m.RemoveSandbox(bare.Pod); err != nil {
			t.Fatal(err)
		}
		m.nothingLeft()

		// Without a namespace the plugin uses its stored record of the sandbox.
		gone := m.run("gone-" + mode)
		gone.forget()
		if err := m.RemoveSandbox(gone.Pod); err != nil {
			t.Fatal(err)
		}
		gone.Path = ""
		if _, err := m.RunPlugin(gone.Pod, "DEL", gone.Result); err != nil {
			t.Errorf("%s: without a namespace: %v", mode, err)
		}
		m.nothingLeft()
	}
}

// TestBranch_ADDFailsHalfWay: the VLAN id is already in use on the trunk, by a device with another
// name. Whatever ADD created before it failed is removed.
func TestBranch_ADDFailsHalfWay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	m := l.join(strict, vpcrc.Faults{})
	p := m.bind("p")
	trunk := m.linkOf(m.trunk().MAC)
	m.ip("link", "add", "link", trunk, "name", "busy", "type", "vlan", "id", fmt.Sprint(p.VLAN))
	sandbox, err := m.NewSandbox(p.spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(sandbox); err == nil {
		t.Error("ADD succeeded with the VLAN id in use")
	}
	if links, rules := m.ip("-o", "link"), m.rules("10"); strings.Contains(links, ": vlan") || len(rules) > 0 {
		t.Errorf("left by ADD: rules %q, links\n%s", rules, links)
	}
	if err := m.RemoveSandbox(sandbox); err != nil {
		t.Fatal(err)
	}
	m.nothingLeft()
	m.ip("link", "del", "busy")
	if err := m.runBound(p); err != nil {
		t.Fatal(err)
	}
	m.end(p)
	m.nothingLeft()
}

// withVLAN binds pods until one gets the given VLAN id.
func (m *member) withVLAN(name string, vlan int) *branchPod {
	m.l.t.Helper()
	for range 5 {
		p := m.bind(name)
		if p.VLAN == vlan {
			return p
		}
		p.forget()
	}
	m.l.t.Fatalf("VLAN id %d was not used again", vlan)
	return nil
}

// runBound runs a bound pod in a new sandbox.
func (m *member) runBound(p *branchPod) (err error) {
	p.Pod, err = m.AddPod(p.spec())
	return err
}

// linkOf returns the name of the member's link with a MAC.
func (m *member) linkOf(mac string) (name string) {
	m.l.t.Helper()
	for line := range strings.Lines(m.ip("-o", "link", "show", "type", "veth")) {
		if strings.Contains(line, mac) {
			name, _, _ = strings.Cut(strings.Fields(line)[1], "@")
			return strings.TrimSuffix(name, ":")
		}
	}
	m.l.t.Fatalf("no link has MAC %s", mac)
	return ""
}

// TestBranch_SandboxEndsAlone: a running pod's sandbox is deleted, as before a new one is created.
// Its network is not restored before the runtime removes the namespace.
func TestBranch_SandboxEndsAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, mode := range []string{strict, standard} {
		m := l.join(mode, vpcrc.Faults{})
		for i := range 3 {
			p := m.run(fmt.Sprintf("p-%s-%d", mode, i))
			m.endSandbox(p.Pod)
			m.nothingLeft()
		}
	}
}

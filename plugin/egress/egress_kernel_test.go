package egress_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	rules "cnictl/daemon/hostnet/egress"
	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// eachBed runs a test with both backends and both families.
func eachBed(t *testing.T, f func(t *testing.T, b *bed)) {
	for _, backend := range backends {
		for _, v6 := range []bool{false, true} {
			name := backend + "/v4"
			if v6 {
				name = backend + "/v6"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t, newBed(t, backend, v6))
			})
		}
	}
}

// TestEgress: a pod without an address of the family opens outgoing TCP connections, which carry
// the node's address; it cannot be reached from outside; and DEL leaves nothing behind.
func TestEgress(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		p := b.pod("054c9853b64776d97f4782d2e281e98d8daa22b4ae7ac7339f623e505318424f")
		var result types100.Result
		if err := json.Unmarshal([]byte(p.run("ADD", b.stdin())), &result); err != nil {
			t.Fatal(err)
		}
		b.checkResult(&result, p)
		podIP := netip.MustParseAddr(b.leases()[0])
		if want := b.wantedRules(p.id, podIP); b.saved() != want {
			t.Errorf("iptables-save (-want +got):\n%s", cmp.Diff(want, b.saved()))
		}
		echo, err := b.outside.EchoTCP(netip.AddrPortFrom(b.out, 7))
		if err != nil {
			t.Fatal(err)
		}
		defer echo.Close()
		// Immediately: nothing here waits for duplicate address detection.
		saw, err := p.ns.AskEcho(t.Context(), "tcp", netip.Addr{}, echo.Addr, testenv.Left(t))
		if err != nil {
			t.Fatal(err)
		}
		if saw.Addr() != b.nodeIP {
			t.Errorf("outside saw %v, want the node's %v", saw, b.nodeIP)
		}
		inPod, err := p.ns.EchoTCP(netip.AddrPortFrom(podIP, 7))
		if err != nil {
			t.Fatal(err)
		}
		defer inPod.Close()
		if saw, err := b.outside.AskEcho(t.Context(), "tcp", netip.Addr{}, inPod.Addr, time.Second); err == nil { //realtime: nothing answers
			t.Errorf("outside reaches the pod as %v", saw)
		}
		if saw, err := b.node.AskEcho(t.Context(), "tcp", netip.Addr{}, inPod.Addr, testenv.Left(t)); err != nil {
			t.Errorf("the node does not reach the pod: %v, %v", saw, err)
		}
		p.run("CHECK", b.withPrevResult(&result))
		p.run("DEL", b.withPrevResult(&result))
		b.empty()
		p.run("DEL", b.withPrevResult(&result))
		p.fails("CHECK", b.withPrevResult(&result), []string{"host-local"})
	})
}

func (b *bed) withPrevResult(r *types100.Result) string {
	b.t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		b.t.Fatal(err)
	}
	before, _, _ := strings.Cut(b.stdin(), `"prevResult"`)
	return before + `"prevResult":` + string(text) + "}"
}

// checkResult: our two interfaces follow the existing ones, and no address is added.
func (b *bed) checkResult(r *types100.Result, p *pod) {
	b.t.Helper()
	name := "v4if0"
	if b.v6 {
		name = "v6if0"
	}
	if len(r.IPs) != 1 || len(r.Interfaces) != 5 || r.Interfaces[4].Name != name || r.Interfaces[4].Sandbox != p.ns.Path {
		b.t.Fatalf("result %v", r)
	}
	host := r.Interfaces[3]
	b.do(b.node, func() error {
		l, err := netlink.LinkByName(host.Name)
		if err == nil && (l.Attrs().HardwareAddr.String() != host.Mac || l.Attrs().MTU != 9001 || !strings.HasPrefix(host.Name, "veth") || len(host.Name) != 12) {
			err = fmt.Errorf("host link is %+v, result %+v", l.Attrs(), host)
		}
		return err
	})
}

// wantedRules is the text that upstream writes.
func (b *bed) wantedRules(id string, podIP netip.Addr) string {
	chain, multicast, bits := "CNI-E4-", "224.0.0.0/4", "32"
	if b.v6 {
		chain, multicast, bits = "CNI-E6-", "ff00::/8", "128"
	}
	chain += "82d2b717654a20b90c9ed"
	comment := ` -m comment --comment "name: \"aws-cni\" id: \"` + id + `\"" -j `
	return ":" + chain + " - [0:0]\n-A POSTROUTING -s " + podIP.String() + "/" + bits + comment + chain +
		"\n-A " + chain + " -d " + multicast + comment + "ACCEPT\n-A " + chain + comment + "SNAT --to-source " + b.nodeIP.String() + " --random-fully\n"
}

// TestState: addresses and routes match upstream's.
func TestState(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		v6   bool
		pod  string
		host string
	}{
		{false, "addr 169.254.172.2/22 dev v4if0 scope 0\nroute 0.0.0.0/0 via 169.254.172.1 dev v4if0 scope universe src <nil>\n" +
			"route 169.254.172.0/22 via 169.254.172.1 dev v4if0 scope universe src 169.254.172.2\nroute 169.254.172.1/32 via <nil> dev v4if0 scope link src 169.254.172.2\n",
			"addr 169.254.172.1/32 dev veth scope 253\nroute 169.254.172.2/32 via <nil> dev veth scope link src <nil>\n"},
		{true, "addr fd00::ac:2/118 dev v6if0 scope 0\nroute ::/0 via fe80:: dev v6if0 scope universe src <nil>\n" +
			"route fd00::ac:0/118 via <nil> dev v6if0 scope universe src <nil>\n",
			"addr fe80:: dev veth scope 253\nroute fd00::ac:2/128 via <nil> dev veth scope universe src <nil>\nroute fe80::/64 via <nil> dev veth scope universe src <nil>\n"},
	} {
		b := newBed(t, "nft", row.v6)
		p := b.pod("c1")
		p.run("ADD", b.stdin())
		if diff := cmp.Diff(row.pod, b.state(p.ns, "v")); diff != "" {
			t.Errorf("pod (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(row.host, b.state(b.node, "veth")); diff != "" {
			t.Errorf("host (-want +got):\n%s", diff)
		}
		if !row.v6 {
			continue
		}
		b.do(p.ns, func() error {
			got, err := os.ReadFile("/proc/thread-self/net/if_inet6")
			for line := range strings.Lines(string(got)) {
				f := strings.Fields(line)
				if f[5] == "eth0" {
					t.Errorf("eth0 has IPv6: %s", line)
				}
				if flags, scope := f[4], f[3]; f[5] == "v6if0" && scope == "00" && flags != "82" { // permanent, nodad; not tentative
					t.Errorf("address with flags %s: %s", flags, line)
				}
			}
			return err
		})
	}
}

// state returns the addresses and routes of the links with a name prefix. Digits of host link
// names and of link-local addresses are left out. In the pod, the kernel adds link-local
// addresses at unpredictable times.
func (b *bed) state(ns *netns.NS, prefix string) string {
	b.t.Helper()
	var lines []string
	fam := netlink.FAMILY_V4
	if b.v6 {
		fam = netlink.FAMILY_V6
	}
	short := func(s string) string {
		if strings.HasPrefix(s, "fe80::") && s != "fe80::/64" {
			return "fe80::"
		}
		return s
	}
	b.do(ns, func() error {
		links, err := netns.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		for _, l := range links {
			name := l.Attrs().Name
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			name = name[:min(len(name), 5)]
			if prefix == "veth" {
				name = "veth"
			}
			addrs, err := netns.Dump(func() ([]netlink.Addr, error) { return netlink.AddrList(l, fam) })
			if err != nil {
				return err
			}
			for _, a := range addrs {
				if a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil && ns != b.node {
					continue
				}
				lines = append(lines, fmt.Sprintf("addr %s dev %s scope %d\n", short(a.IPNet.String()), name, a.Scope))
			}
			routes, err := netns.Dump(func() ([]netlink.Route, error) { return netlink.RouteList(l, fam) })
			if err != nil {
				return err
			}
			for _, r := range routes {
				if r.Dst.IP.IsMulticast() || r.Dst.String() == "fe80::/64" && ns != b.node {
					continue
				}
				lines = append(lines, fmt.Sprintf("route %s via %s dev %s scope %s src %v\n", r.Dst, short(r.Gw.String()), name, r.Scope, r.Src))
			}
		}
		return nil
	})
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestDel_Releases: DEL works without the namespace and with egress off.
func TestDel_Releases(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		for _, row := range []struct {
			name  string
			stdin string
			env   []string
		}{
			{"without namespace", b.stdin(), []string{"CNI_NETNS="}},
			{"namespace gone", b.stdin(), []string{"CNI_NETNS=/run/netns/gone"}},
			{"switched off", b.stdin(isOn, isOff), nil},
			{"switched off, without node address and namespace", b.stdin(isOn, isOff, b.nodeIP.String(), ""), []string{"CNI_NETNS="}},
			{"without previous result", strings.Split(b.stdin(), `,"prevResult"`)[0] + "}", nil},
			{"previous result damaged", b.stdin(`"ips":[`, `"ips":[5,`), nil},
			{"other node address", b.stdin(b.nodeIP.String(), map[bool]string{false: "203.0.113.7", true: "2001:db8:7::7"}[b.v6]), nil},
		} {
			p := b.pod("c1")
			p.run("ADD", b.stdin())
			p.run("DEL", row.stdin, row.env...)
			b.empty()
			if t.Failed() {
				t.Fatal(row.name)
			}
			p.run("DEL", row.stdin, row.env...)
		}
	})
}

// TestDel_ChainWithoutLease: upstream releases the lease first and may leave a chain, which
// the next DEL removes.
func TestDel_ChainWithoutLease(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		p := b.pod("c1")
		p.run("ADD", b.stdin())
		if err := os.Remove(filepath.Join(b.dataDir, "aws-cni", b.leases()[0])); err != nil {
			t.Fatal(err)
		}
		p.run("DEL", b.stdin())
		if got := b.saved(); got != "" {
			t.Errorf("rules are left:\n%s", got)
		}
	})
}

// dropLink deletes the egress link, as the end of the namespace does.
func (p *pod) dropLink() {
	p.b.t.Helper()
	name := rules.PodLink4
	if p.b.v6 {
		name = rules.PodLink6
	}
	p.b.do(p.ns, func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

// TestAdd_OverLeftovers: ADD repairs an existing chain of its container and does not add a
// second jump to it.
func TestAdd_OverLeftovers(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		for _, id := range []string{"c0", "c1"} {
			p := b.pod(id)
			p.run("ADD", b.stdin())
			p.dropLink()
		}
		if err := os.RemoveAll(filepath.Join(b.dataDir, "aws-cni")); err != nil {
			t.Fatal(err)
		}
		b.pod("c1").run("ADD", b.stdin())
		// The address differs from that of the first ADD.
		want, err := rules.Wanted("aws-cni", "c1", netip.MustParseAddr(b.leases()[0]), b.nodeIP, rules.RandomFully)
		if err != nil {
			t.Fatal(err)
		}
		if missing := want.Missing(rules.NAT("*nat\n:POSTROUTING ACCEPT [0:0]\n" + b.saved())); missing != nil {
			t.Errorf("%v in\n%s", missing, b.saved())
		}
	})
}

// TestParallel: 30 pods come and go at the same time, and nothing is left.
func TestParallel(t *testing.T) {
	eachBed(t, func(t *testing.T, b *bed) {
		pods := make([]*pod, 30)
		for i := range pods {
			pods[i] = b.pod(fmt.Sprintf("c%d", i))
		}
		for _, verb := range []string{"ADD", "DEL"} {
			var wg sync.WaitGroup
			for _, p := range pods {
				wg.Go(func() {
					if _, err := p.try(t.Context(), verb, b.stdin()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if got := strings.Count(b.saved(), "-A POSTROUTING"); verb == "ADD" && (got != len(pods) || len(b.leases()) != len(pods) || len(b.routes()) != len(pods)) {
				t.Errorf("%d jumps, %d leases, %d routes", got, len(b.leases()), len(b.routes()))
			}
		}
		b.empty()
	})
}

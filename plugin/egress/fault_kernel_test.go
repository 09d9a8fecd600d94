package egress_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// hangs replaces a program in a directory with one that hangs, either before or after it does
// the program's work. It returns the file that appears once it hangs.
func (b *bed) hangs(dir, name, real string, doesIt bool) (marker string) {
	b.t.Helper()
	marker = filepath.Join(b.t.TempDir(), "marker")
	script := "#!/bin/sh\n"
	if doesIt {
		script += `"` + real + `" "$@" || exit` + "\n"
	}
	script += "PATH=/usr/bin:/bin\necho $$ >" + marker + ".new && mv " + marker + ".new " + marker + "\nexec tail -f /dev/null\n"
	file := filepath.Join(dir, name)
	_ = os.Remove(file)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		b.t.Fatal(err)
	}
	return marker
}

// TestKilled: DEL cleans up after an ADD that was killed halfway.
func TestKilled(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		restore := "iptables-restore"
		if b.v6 {
			restore = "ip6tables-restore"
		}
		real, err := filepath.EvalSymlinks(filepath.Join(b.path, restore))
		if err != nil {
			t.Fatal(err)
		}
		backend, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(real), "xtables-"), "-")
		callAs := filepath.Join(t.TempDir(), restore) // the program acts on the name it is called by
		if err := os.Symlink(real, callAs); err != nil {
			t.Fatal(err)
		}
		hostLocal := b.cniPath
		for _, row := range []struct {
			name   string
			plugin bool // host-local hangs rather than iptables
			doesIt bool
		}{
			{"before the lease", true, false}, {"after the lease", true, true}, {"before the rules", false, false}, {"after the rules", false, true},
		} {
			var marker string
			if row.plugin {
				b.cniPath = t.TempDir()
				marker = b.hangs(b.cniPath, "host-local", filepath.Join(hostLocal, "host-local"), row.doesIt)
			} else {
				marker = b.hangs(b.path, restore, callAs, row.doesIt)
			}
			p := b.pod("c1")
			cmd := p.command(t.Context(), "ADD", b.stdin())
			b.do(b.node, cmd.Start)
			testenv.Eventually(t, row.name, func() bool { _, err := os.Stat(marker); return err == nil })
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // "signal: killed"
			endProgram(t, marker)
			b.cniPath = hostLocal
			b.useBackend(backend)
			if held := len(b.leases()) > 0 || b.saved() != ""; held == (row.plugin && !row.doesIt) {
				t.Errorf("%s: lease or rules there: %t", row.name, held)
			}
			p.run("DEL", b.stdin(), "CNI_NETNS=")
			b.empty()
			if t.Failed() {
				t.Fatal(row.name)
			}
		}
	})
}

// endProgram kills the program that wrote its PID to a file.
func endProgram(t *testing.T, marker string) {
	t.Helper()
	text, err := os.ReadFile(marker)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// It may have exited already because its output was closed.
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
}

// TestAdd_FailsWithoutTrace: wherever ADD fails, nothing is left on the node or in the pod.
func TestAdd_FailsWithoutTrace(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		dst := map[bool]string{false: "0.0.0.0/0", true: "::/0"}[b.v6]
		for _, row := range []struct {
			name    string
			stdin   string
			says    string
			cniPath string
		}{
			{"no previous result", strings.Split(b.stdin(), `,"prevResult"`)[0] + "}", `"must be called as a chained plugin"`, ""},
			{"no MTU", b.stdin(`"9001"`, `"jumbo"`), "failed to parse config: mtu is not an integer", ""},
			{"no MTU, off", b.stdin(`"9001"`, `"jumbo"`, isOn, isOff), "failed to parse config: mtu is not an integer", ""},
			{"number", b.stdin(`"9001"`, `9001`), "failed to parse config: mtu is number, not string, at offset ", ""},
			{"no node address", b.stdin(`"nodeIP":"`+b.nodeIP.String(), `"nodeIP":"`), "global unicast IPv6 not found in host primary interface", ""},
			{"no host-local", b.stdin(), `running IPAM plugin failed: failed to find plugin \"host-local\" in path [/nonexistent ` + t.TempDir(), "none"},
			{"no range", b.stdin(b.subnet, "x"), "running IPAM plugin failed: invalid CIDR", ""},
			{"no address of the family", b.stdin(b.subnet, map[bool]string{true: "169.254.172.0/22", false: "fd00::ac:00/118"}[b.v6]), "are not of one family", ""},
			{"gateway out of reach", b.stdin(`"dst":"`+dst, `"gw":"`+map[bool]string{false: "10.7.7.7", true: "fd07::7"}[b.v6]+`","dst":"`+dst), "", ""},
			{"previous result of another form", b.stdin(`"prevResult":{"cniVersion":"1.1.0"`, `"prevResult":{"cniVersion":"0.4.0"`), "could not parse prevResult: result type supports", ""},
		} {
			p := b.pod("c1")
			env := []string{}
			if row.cniPath != "" {
				env = append(env, "CNI_PATH=/nonexistent:"+strings.TrimPrefix(row.says, `running IPAM plugin failed: failed to find plugin \"host-local\" in path [/nonexistent `))
			}
			if row.says == "" && b.v6 {
				continue // in IPv6 every route leads to the host's end of the link
			}
			p.fails("ADD", row.stdin, []string{`"code": 999`, row.says}, env...)
			b.empty()
			if links := p.links(); !slices.Equal(links, []string{"eth0", "lo", "peer0"}) {
				t.Errorf("the pod has %v", links)
			}
			if t.Failed() {
				t.Fatal(row.name)
			}
		}
	})
}

// TestAdd_NameTaken: a link in the pod that already has the egress link's name is left alone.
func TestAdd_NameTaken(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nft", false)
	p := b.pod("c1")
	p.run("ADD", b.stdin())
	before := b.saved()
	again := &pod{b: b, ns: p.ns, id: "c2"}
	again.fails("ADD", b.stdin(), []string{"failed to make veth pair: container veth name provided (v4if0) already exists"})
	if got := b.saved(); got != before || len(b.leases()) != 1 {
		t.Errorf("leases %v, rules (-before +after):\n%s", b.leases(), cmp.Diff(before, got))
	}
}

// TestExhausted: host-local's error text reaches the runtime, and nothing is left.
func TestExhausted(t *testing.T) {
	t.Parallel()
	b := newBed(t, "nft", false)
	b.subnet = "169.254.172.0/30"
	b.pod("c1").run("ADD", b.stdin())
	p := b.pod("c2")
	p.fails("ADD", b.stdin(), []string{"running IPAM plugin failed: failed to allocate for range 0: no IP addresses available in range set: 169.254.172.1-169.254.172.2"})
	if links := p.links(); len(links) != 3 || strings.Count(b.saved(), "-A POSTROUTING") != 1 {
		t.Errorf("links %v, rules\n%s", links, b.saved())
	}
}

// TestNoIPTables: without iptables, ADD fails with that reason and takes no address, and
// existing pods can be deleted. A repeated DEL removes the chain. Not parallel: it hides the
// system's programs from all tests.
func TestNoIPTables(t *testing.T) {
	b := newBed(t, "nft", false)
	before, p := b.pod("before"), b.pod("c1")
	before.run("ADD", b.stdin())
	dirs := []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}
	for _, dir := range dirs {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	p.fails("ADD", b.stdin(), []string{"failed to locate iptables-", "install iptables"}, "PATH=/nonexistent:")
	p.fails("STATUS", b.stdin(), []string{`"code": 50`, "failed to locate iptables-"}, "PATH=/nonexistent:")
	p.run("DEL", b.stdin(), "PATH=/nonexistent:")
	for range 2 {
		before.run("DEL", b.stdin(), "PATH=/nonexistent:", "CNI_NETNS=")
		if leases, routes := b.leases(), b.routes(); len(leases) != 0 || len(routes) != 0 {
			t.Errorf("leases %v, routes %v", leases, routes)
		}
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if left := b.saved(); strings.Count(left, "-A POSTROUTING") != 1 {
		t.Errorf("no chain was left:\n%s", left)
	}
	before.run("DEL", b.stdin(), "CNI_NETNS=")
	b.empty()
	p.run("STATUS", b.stdin())
}

// ownerOf creates a link with a route to the address that the next pod gets.
func (b *bed) ownerOf(up bool) (address string) {
	b.t.Helper()
	dst := netip.MustParsePrefix("169.254.172.2/32")
	if b.v6 {
		dst = netip.MustParsePrefix("fd00::ac:2/128")
	}
	other := netns.New(b.t)
	b.do(b.node, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "vethold"
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "old", PeerNamespace: netlink.NsFd(other.FD())}); err != nil {
			return err
		}
		l, err := netlink.LinkByName("vethold")
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err == nil {
			parsed, _ := netlink.ParseIPNet(dst.String())
			err = netlink.RouteAdd(&netlink.Route{Dst: parsed, LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK})
		}
		return err
	})
	if up {
		b.do(other, func() error {
			l, err := netlink.LinkByName("old")
			if err == nil {
				err = netlink.LinkSetUp(l)
			}
			return err
		})
	}
	return dst.Addr().String()
}

func (b *bed) routeLeadsTo(address string) (link string) {
	b.t.Helper()
	b.do(b.node, func() error {
		parsed, err := netip.ParseAddr(address)
		if err != nil {
			return err
		}
		list, err := netlink.RouteGet(parsed.AsSlice())
		if err != nil {
			return err
		}
		l, err := netlink.LinkByIndex(list[0].LinkIndex)
		if err == nil {
			link = l.Attrs().Name
		}
		return err
	})
	return link
}

// TestStaleRoute: ADD replaces a route left over a dead link, waits for one that is about to
// disappear, and fails if the route's link is alive (#3702).
func TestStaleRoute(t *testing.T) {
	t.Parallel()
	for _, v6 := range []bool{false, true} {
		t.Run("replaced", func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "nft", v6)
			address := b.ownerOf(false)
			p := b.pod("c1")
			p.run("ADD", b.stdin())
			if got := b.routeLeadsTo(address); got == "vethold" || !strings.HasPrefix(got, "veth") {
				t.Errorf("%s is reached over %s", address, got)
			}
			p.run("DEL", b.stdin())
			b.empty()
		})
		t.Run("waited for", func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "nft", v6)
			address := b.ownerOf(true)
			p := b.pod("c1")
			cmd := p.command(t.Context(), "ADD", b.stdin())
			b.do(b.node, cmd.Start)
			// The lease is taken before the route is tried.
			testenv.Eventually(t, "the lease", func() bool { return len(b.leases()) > 0 })
			b.do(b.node, func() error {
				l, err := netlink.LinkByName("vethold")
				if err != nil {
					return err
				}
				return netlink.LinkDel(l)
			})
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := b.routeLeadsTo(address); !strings.HasPrefix(got, "veth") {
				t.Errorf("%s is reached over %s", address, got)
			}
		})
		t.Run("in use", func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "nft", v6)
			address := b.ownerOf(true)
			p := b.pod("c1")
			p.fails("ADD", b.stdin(), []string{"stale route still exists after 5 attempts: ", "file exists"})
			if got := b.routeLeadsTo(address); got != "vethold" || b.saved() != "" || len(b.leases()) != 0 {
				t.Errorf("%s is reached over %s, leases %v, rules\n%s", address, got, b.leases(), b.saved())
			}
		})
	}
}

// TestCheck: CHECK names each part of ADD's work that was removed.
func TestCheck(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		iptables := "iptables"
		podLink, all := "v4if0", "0.0.0.0/0"
		if b.v6 {
			iptables, podLink, all = "ip6tables", "v6if0", "::/0"
		}
		link := func(ns *netns.NS, name string, change func(netlink.Link) error) {
			b.do(ns, func() error {
				l, err := netlink.LinkByName(name)
				if err != nil {
					return err
				}
				return change(l)
			})
		}
		for _, row := range []struct {
			says  string
			spoil func(p *pod, host string)
		}{
			{"the one jump to the chain is not -A POSTROUTING", func(*pod, string) { b.rules(iptables, "-t", "nat", "-F", "POSTROUTING") }},
			{"of table nat has other rules than", func(p *pod, _ string) {
				b.rules(iptables, "-t", "nat", "-F", strings.Fields(b.saved())[0][1:])
			}},
			{"host link ", func(_ *pod, host string) { link(b.node, host, netlink.LinkSetDown) }},
			{"pod link " + podLink + " is missing or down", func(p *pod, _ string) { link(p.ns, podLink, netlink.LinkSetDown) }},
			{"pod route " + all, func(p *pod, _ string) {
				b.do(p.ns, func() error {
					dst, err := netlink.ParseIPNet(all)
					if err != nil {
						return err
					}
					return netlink.RouteDel(&netlink.Route{Dst: dst})
				})
			}},
		} {
			p := b.pod("c1")
			out := p.run("ADD", b.stdin())
			var result struct {
				Interfaces []struct{ Name string } `json:"interfaces"`
			}
			if err := json.Unmarshal([]byte(out), &result); err != nil {
				t.Fatal(err)
			}
			before, _, _ := strings.Cut(b.stdin(), `"prevResult"`)
			stdin := before + `"prevResult":` + out + "}"
			p.run("CHECK", stdin)
			row.spoil(p, result.Interfaces[3].Name)
			p.fails("CHECK", stdin, []string{"the pod's egress is not as ADD left it: ", row.says})
			p.run("DEL", stdin)
			b.empty()
		}
	})
}

// rules runs iptables on the node.
func (b *bed) rules(args ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), filepath.Join(b.path, args[0]), args[1:]...)
	b.do(b.node, cmd.Start)
	if err := cmd.Wait(); err != nil {
		b.t.Fatal(err)
	}
}

// TestGC: GC removes whatever belongs to no valid attachment, including chains whose lease
// upstream released, and keeps the rest, including that of other networks.
func TestGC(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		keep, stale, unleased := b.pod("keep"), b.pod("stale"), b.pod("unleased")
		keep.run("ADD", b.stdin())
		stays := b.saved()
		other := b.pod("other")
		other.run("ADD", b.stdin(`"name":"aws-cni"`, `"name":"second"`, b.subnet, map[bool]string{false: "169.254.200.0/24", true: "fd00::bc:0/118"}[b.v6]))
		unleased.run("ADD", b.stdin())
		for _, address := range b.leases() {
			text, err := os.ReadFile(filepath.Join(b.dataDir, "aws-cni", address))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(text), "unleased") {
				if err := os.Remove(filepath.Join(b.dataDir, "aws-cni", address)); err != nil {
					t.Fatal(err)
				}
			}
		}
		unleased.dropLink()
		stale.run("ADD", b.stdin())
		list := func(attachments string) string {
			return b.stdin(`"mtu"`, `"cni.dev/valid-attachments":`+attachments+`,"mtu"`)
		}
		everything := b.saved()
		stale.run("GC", b.stdin()) // no list of attachments
		if got := b.saved(); got != everything || len(b.leases()) != 2 {
			t.Errorf("leases %v, rules (-before +after):\n%s", b.leases(), cmp.Diff(everything, got))
		}
		const valid = `[{"containerID":"keep","ifname":"eth0"}]`
		stale.run("GC", list(valid))
		got := b.saved()
		if strings.Count(got, "-A POSTROUTING") != 2 || !containsLines(got, stays) || !strings.Contains(got, `name: \"second\" id: \"other\"`) || len(b.leases()) != 1 {
			t.Errorf("leases %v, rules\n%s", b.leases(), got)
		}
		stale.fails("GC", list(`[5]`), []string{`"code": 6`})
		keep.run("GC", strings.Replace(list(`[]`), isOn, isOff, 1), "CNI_CONTAINERID=", "CNI_NETNS=", "CNI_IFNAME=")
		if got := b.leases(); len(got) != 0 || len(b.routes()) != 0 {
			t.Errorf("leases %v, routes %v", got, b.routes())
		}
	})
}

func containsLines(text, lines string) bool {
	for line := range strings.Lines(lines) {
		if !strings.Contains(text, line) {
			return false
		}
	}
	return true
}

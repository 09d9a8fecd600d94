package hostnet

import (
	"fmt"
	"net"
	"regexp"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

// podLink is the host link of the sending pod.
const podLink = "eni00000000001"

// pod connects a pod 10.0.0.21 to a forwarding node. It counts forwarded packets by mark and
// outgoing ones by source.
func (n *bed) pod() *netns.NS {
	n.t.Helper()
	pod := netns.New(n.t)
	n.sh(fmt.Sprintf(`ip link add %[1]s type veth peer name podeth0 netns %[2]s
ip link set %[1]s up
ip route add 10.0.0.21 dev %[1]s scope link
ip neigh add 10.0.0.1 lladdr 02:00:00:00:00:fe dev eth0
echo 1 > /proc/sys/net/ipv4/ip_forward
nft -f - <<'EOF'
table ip watch {
	counter both { }
	counter ours { }
	counter theirs { }
	counter none { }
	counter translated { }
	counter untranslated { }
	counter aside { }
	chain forward {
		type filter hook forward priority 0;
		udp dport != 9999 accept
		meta mark 0x01000080 counter name both
		meta mark 0x00000080 counter name ours
		meta mark 0x01000000 counter name theirs
		meta mark 0 counter name none
	}
	chain out {
		type filter hook postrouting priority 300;
		udp dport != 9999 accept
		ip saddr 10.0.0.10 counter name translated
		ip saddr 10.0.0.21 counter name untranslated
		oifname "eth1" counter name aside
	}
}
EOF`, podLink, pod.Path))
	shell(n.t, pod, `ip link set podeth0 up
ip addr add 10.0.0.21/32 dev podeth0
ip route add 169.254.1.1 dev podeth0 scope link
ip route add default via 169.254.1.1 dev podeth0
ip neigh add 169.254.1.1 lladdr `+linkMAC.FindStringSubmatch(n.sh("ip link show " + podLink))[1]+` dev podeth0`)
	return pod
}

var linkMAC = regexp.MustCompile(`link/ether (\S+)`)

// dial opens a connection from the pod.
func (n *bed) dial(pod *netns.NS, to string) (c net.Conn) {
	n.t.Helper()
	err := pod.Do(func() (err error) {
		c, err = net.Dial("udp", to+":9999")
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends count packets of a new connection and waits until all have left.
func (n *bed) send(pod *netns.NS, to string, count int) (seen map[string]int) {
	n.t.Helper()
	return n.sendOn(n.dial(pod, to), count)
}

// sendOn does the same on an open connection.
func (n *bed) sendOn(c net.Conn, count int) (seen map[string]int) {
	n.t.Helper()
	before := n.counters()
	for range count {
		if _, err := c.Write([]byte("x")); err != nil {
			n.t.Fatal(err)
		}
	}
	testenv.Eventually(n.t, fmt.Sprintf("%d packets to %s have left the node", count, c.RemoteAddr()), func() bool {
		seen = n.counters()
		for k, v := range before {
			seen[k] -= v
		}
		return seen["translated"]+seen["untranslated"] >= count
	})
	return seen
}

var counterText = regexp.MustCompile(`counter (\w+) \{\s*packets (\d+)`)

func (n *bed) counters() map[string]int {
	n.t.Helper()
	out := map[string]int{}
	testenv.EventuallyErr(n.t, "nft lists all counters", func() error {
		text := n.sh("nft list counters table ip watch")
		for _, m := range counterText.FindAllStringSubmatch(text, -1) {
			var v int
			if _, err := fmt.Sscan(m[2], &v); err != nil {
				n.t.Fatal(err)
			}
			out[m[1]] = v
		}
		if len(out) < 7 { // one that is missing would count as 0
			n.t.Logf("nft lists only:\n%s", text)
			return fmt.Errorf("%d of 7", len(out))
		}
		return nil
	})
	return out
}

const outside, inVPC = "198.51.100.10", "10.0.1.1"

// markAll sets marks like another agent, before or after our rules.
func (n *bed) markAll(op string) {
	n.sh(n.tool + " -t mangle " + op + " PREROUTING -i " + podLink + " -j MARK --set-xmark 0x1000000/0x1000000")
}

func TestMarks_OutboundTrafficIsMarkedAndTranslated(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, n *bed) {
		pod := n.pod()
		n.setup()
		// The first packet gets its mark in the nat hook, the others from the mangle rule.
		seen := n.send(pod, outside, 5)
		if seen["ours"] != 5 || seen["translated"] != 5 {
			t.Errorf("to the outside: %v", seen)
		}
		seen = n.send(pod, inVPC, 5)
		if seen["none"] != 5 || seen["untranslated"] != 5 {
			t.Errorf("to the VPC: %v", seen)
		}
		n.setup(externalSNAT)
		seen = n.send(pod, outside, 5)
		if seen["none"] != 5 || seen["untranslated"] != 5 {
			t.Errorf("to the outside with external SNAT: %v", seen)
		}
		n.setup()
		seen = n.send(pod, outside, 5)
		if seen["ours"] != 5 || seen["translated"] != 5 {
			t.Errorf("to the outside again: %v", seen)
		}
	})
}

// Bits of the packet mark that are not ours survive.
func TestMarks_OtherBitsSurvive(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"-I", "-A"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			backends(t, func(t *testing.T, n *bed) {
				pod := n.pod()
				n.setup()
				n.markAll(op)
				if seen := n.send(pod, outside, 5); seen["both"] != 5 {
					t.Errorf("to the outside: %v", seen)
				}
				if seen := n.send(pod, inVPC, 5); seen["theirs"] != 5 {
					t.Errorf("to the VPC: %v", seen)
				}
				n.quiet()
			})
		})
	}
}

// The same with upstream's table: its restore rule clears other bits of first packets until
// one of our passes replaces it.
func TestMarks_UpstreamLosesOtherBitsUntilUpgraded(t *testing.T) {
	t.Parallel()
	n := newBed(t, "iptables-nft")
	pod := n.pod()
	n.load(withoutComments(readFile(t, "recorded.iptables-save.txt")))
	n.sh("nft -f - <<'EOF'\n" + originalTable(t) + "EOF")
	n.markAll("-I")
	if seen := n.send(pod, outside, 1); seen["ours"] != 1 {
		t.Fatalf("upstream was expected to lose the mark: %v", seen)
	}
	n.setup()
	if seen := n.send(pod, outside, 1); seen["both"] != 1 {
		t.Errorf("after the upgrade: %v", seen)
	}
}

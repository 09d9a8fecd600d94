package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"cnictl/testenv"
)

// ipv6State prints the CNI's state on an IPv6 node, including the IPv4 rules that protect it.
const ipv6State = `ip -6 rule; ip -6 route | grep -v fe80; ip -o link | grep -v ' lo: '; iptables-save; ip6tables-save`

// TestAssert_IPv6 does what TestAssert does, on a node of an IPv6 cluster.
func TestAssert_IPv6(t *testing.T) {
	t.Parallel()
	a := egressNode(t, "nft")
	a.shown = ipv6State
	pods := a.mustAdd(a.n, "p", 2, 1)
	a.settled(a.n)
	one := pods[0]
	a.whole(one)
	words := strings.NewReplacer("$IP", one.IP.String(), "$VETH", a.linkTo(one), "$PRIMARY", a.n.Link)
	for _, row := range []struct{ what, take string }{
		{"rule to a pod", "ip -6 rule del priority 512 to $IP"},
		{"rule of marked traffic", "ip -6 rule del priority 1024"},
		{"route to a pod", "ip -6 route del $IP"},
		{"link of a pod", "ip link set $VETH down"},
		{"MTU of the primary link", "ip link set $PRIMARY mtu 1500"},
		{"guard of egress addresses", "iptables -F FORWARD"},
	} {
		a.takenAway(row.what, words.Replace(row.take), true)
		if err := a.n.PingFrom(one, pods[1].IP, testenv.Left(t)); err != nil {
			t.Errorf("after %s was taken away: %v", row.what, err)
		}
	}
	a.promptly()
	a.quietAfterwards()

	// The daemon's /proc/sys is read-only: it logs that once, and counts no repair.
	before := a.repairs()
	a.sh("echo 0 > /proc/sys/net/ipv6/conf/all/forwarding")
	refused := func() int { return len(a.logged("kernel setting differs and cannot be set")) }
	testenv.Eventually(a.t, "a setting that the daemon cannot make", func() bool { return refused() > 0 })
	a.quietAfterwards()
	if after := a.repairs(); !slices.Equal(before, after) || refused() != 1 {
		t.Errorf("warned %d times; repairs before %v, after %v", refused(), before, after)
	}
	a.sh("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
	a.del(a.n, pods, 2)
	a.nothingLeft(a.n)
}

package warmpool

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// six is the policy of an IPv6 cluster with the manifest's targets and others, all of which
// are ignored.
func six() Policy {
	return Policy{IPv6: true, PrefixDelegation: true, WarmENI: 1, WarmPrefix: 1, WarmIP: 40, MinIP: 100, MaxPods: 110}
}

func multiNIC(p *Policy) { p.MultiNIC = true }

func TestPlan_IPv6(t *testing.T) {
	t.Parallel()
	cards := Limits{10, []int{3, 2, 2}}
	waits := func(n int) func(*Snapshot) { return func(s *Snapshot) { s.Waiting[0] = n } }
	quarantined := func(s *Snapshot) { s.Book.ENIs[0].QuarantinedAt = epoch.Add(-time.Minute) }
	cordoned := func(s *Snapshot) { s.Unschedulable = true }
	subnetA := func(change func(*Subnet)) func(*Snapshot) {
		return func(s *Snapshot) {
			for i := range s.Book.ENIs {
				s.Book.ENIs[i].SubnetID = "subnet-a"
			}
			one := Subnet{ID: "subnet-a", AvailableIPs: 0}
			change(&one)
			s.Subnets = []Subnet{one}
		}
	}
	same := func(*Subnet) {}
	runPlans(t, []planRow{
		{"the primary gets its /80", scene{"primary:", m5large, nil}, six(), 0, `
			assign 1 prefix to eni-0: ipv6-prefix`},
		{"for pods that wait", scene{"primary:", m5large, waits(40)}, six(), 0, `
			assign 1 prefix to eni-0: waiting-pods`},
		{"or are expected", scene{"primary:", m5large, func(s *Snapshot) { s.Expected = []int{3} }}, six(), 0, `
			assign 1 prefix to eni-0: expected-pods`},
		{"and that is all, whatever the targets", scene{"primary:6F", m5large, nil}, six(), 0, ""},
		{"and whatever the pods", scene{"primary:6A", m5large, waits(100)}, six(), 0, ""},
		{"one in flight", scene{"primary:", m5large, pending(Pending{Kind: PendingAssign, ENI: "eni-0", Prefixes: 1})}, six(), 0, ""},
		{"a second /80 stays where it is", scene{"primary:6F6F", m5large, nil}, six(), 0, ""},
		{"every ENI that serves has one", scene{"primary:6A eni: efa: trunk: excluded:", p3dnLarge, nil}, six(), 0, `
			assign 1 prefix to eni-1: ipv6-prefix
			assign 1 prefix to eni-2: ipv6-prefix`},
		{"none is detached for want of pods", scene{"primary:6A eni:6F", m5large, nil}, six(), 0, ""},
		{"IPv4 addresses are not the pool's business", scene{"primary:ffF6F", m5large, nil}, six(), 0, ""},
		{"nor do they take its slot", scene{"primary:fffffffff", m5large, nil}, six(), 0, `
			assign 1 prefix to eni-0: ipv6-prefix`},
		{"nor does a /80 in an IPv4 cluster", scene{"primary:6F", t3small, nil}, e(1), 0, `
			assign 3 secondary IPs to eni-0: warm-eni-target`},
		{"excluded: its /80 goes, another ENI comes", scene{"excluded:6F", m5large, primary}, six(), 0, `
			attach an ENI at card 0 device 1 with 1 prefix: ipv6-prefix
			unassign 2001:db8:0:0:1::/80 from eni-0: eni-excluded`},
		{"excluded with pods: it stays", scene{"excluded:6A eni:6F", m5large, primary}, six(), 0, ""},
		{"an excluded ENI is not detached", scene{"primary:6A excluded:", m5large, nil}, six(), 0, ""},
		{"never two at once", scene{"excluded:", m5large, both(primary, pending(Pending{Kind: PendingAttach, Device: 1, Prefixes: 1}))}, six(), 0, ""},
		{"nor beside a late one", scene{"excluded:", m5large, both(primary, pending(Pending{Kind: PendingAttach, Device: 1, Prefixes: 1, Late: true}))}, six(), 0, ""},
		{"a primary that EC2 does not show is waited for", scene{"primary:6A", m5large, quarantined}, six(), 0, ""},
		{"unless pods wait", scene{"primary:6A", m5large, both(quarantined, waits(1))}, six(), 0, `
			attach an ENI at card 0 device 1 with 1 prefix: waiting-pods`},
		{"a doubtful /80 is not replaced", scene{"primary:6Q", m5large, nil}, six(), 0, ""},
		{"unless pods wait, who would wait while a pod lives in it", scene{"primary:6Q", m5large, waits(1)}, six(), 0, `
			assign 1 prefix to eni-0: waiting-pods`},
		{"and there is no other", scene{"primary:6Q eni:6F", m5large, waits(1)}, six(), 0, ""},
		{"one per card", scene{"primary:6F", cards, nil}, six().with(multiNIC), 0, `
			attach an ENI at card 1 device 0 with 1 prefix: ipv6-prefix
			attach an ENI at card 2 device 0 with 1 prefix: ipv6-prefix`},
		{"and none more", scene{"primary:6F eni@1:6A eni@2:", cards, nil}, six().with(multiNIC), 0, `
			assign 1 prefix to eni-2: ipv6-prefix`},
		{"not on a card without a pool", scene{"primary:6F eni@2:6F", cards, func(s *Snapshot) {
			s.OtherENIs, s.Unmanaged = []int{0, 1, 0}, []bool{false, true}
		}}, six().with(multiNIC), 0, ""},
		{"a /80 costs the subnet no IPv4 address", scene{"primary:", m5large, subnetA(same)}, six(), 0, `
			assign 1 prefix to eni-0: ipv6-prefix`},
		{"an ENI costs it one", scene{"excluded:", m5large, both(primary, subnetA(func(s *Subnet) { s.AvailableIPs = 1 }))}, six(), 0, `
			attach an ENI in subnet-a at card 0 device 1 with 1 prefix: ipv6-prefix`},
		{"which it may not have", scene{"excluded:", m5large, both(primary, subnetA(same))}, six(), 0, `
			wait 1m0s: subnet-exhausted`},
		{"no further ENI because the first one's request failed", scene{"primary:", m5large, func(s *Snapshot) { s.ENIBackoff["eni-0"] = after(3 * time.Second) }}, six(), 0, `
			wait 3s: eni-backed-off`},
		{"no /80 is free in the subnet", scene{"primary:", m5large, subnetA(func(s *Subnet) { s.PrefixBackoff = after(9 * time.Second) })}, six(), 0, `
			wait 9s: subnet-fragmented`},
		{"cordoned: not without pods", scene{"primary:", m5large, cordoned}, six(), 0, ""},
		{"cordoned: for pods", scene{"primary:", m5large, both(cordoned, waits(1))}, six(), 0, `
			assign 1 prefix to eni-0: waiting-pods`},
		{"cordoned: nothing goes", scene{"excluded:6F", m5large, both(primary, cordoned)}, six(), 0, ""},
	})
}

// primary makes the first ENI of a scene the primary one.
func primary(s *Snapshot) { s.Book.ENIs[0].Primary = true }

func TestBlocked_IPv6(t *testing.T) {
	t.Parallel()
	waits := func(s *Snapshot) { s.Waiting[0] = 1 }
	for _, row := range []struct {
		name  string
		scene scene
		code  cause.Code // "" if not blocked
		text  string
	}{
		{"2^48 addresses", scene{"primary:6A", m5large, waits}, "", ""},
		{"it comes", scene{"primary:", m5large, waits}, "", ""},
		{"it is on its way", scene{"primary:", m5large, both(waits, pending(Pending{Kind: PendingAssign, ENI: "eni-0", Prefixes: 1}))}, "", ""},
		{"a late ENI may still come", scene{"excluded:", m5large, both(waits, pending(Pending{Kind: PendingAttach, Device: 1, Prefixes: 1, Late: true}))}, "", ""},
		{"excluded, and no slot", scene{"excluded:6F", Limits{10, []int{1}}, both(waits, primary)}, cause.PoolFull,
			"1 of 1 network interfaces are attached and none holds a /80 for pods (1 of them excluded from serving pods)"},
		{"no block", scene{"primary:", m5large, func(s *Snapshot) {
			waits(s)
			s.Book.ENIs[0].SubnetID = "subnet-a"
			s.Subnets = []Subnet{{ID: "subnet-a", AvailableIPs: 9, PrefixBackoff: after(2 * time.Second)}}
		}}, cause.SubnetFragmented, "subnet-a has no free aligned /80 block, next attempt in 2s"},
		{"refused", scene{"primary:", m5large, func(s *Snapshot) {
			waits(s)
			s.ENIBackoff["eni-0"] = after(time.Second)
			s.ENIBackoffCause = map[ipam.ENIID]cause.Code{"eni-0": cause.EC2Unauthorized}
		}}, cause.EC2Unauthorized, "the last request for eni-0 failed: " + cause.EC2Unauthorized.Title() + ", next attempt in 1s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, text, blocked := Blocked(row.scene.snapshot(t), timers(six()), epoch, 0)
			if code != row.code || text != row.text || blocked != (row.code != "") {
				t.Errorf("%q %q %v, want %q %q", code, text, blocked, row.code, row.text)
			}
		})
	}
}

// An IPv6 node needs one call in its whole life; pods come and go without another.
func TestPlan_IPv6AtRest(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{six(), six().with(multiNIC)} {
		n := newNode(t, Limits{IPv4PerENI: 15, ENIsByCard: []int{4, 4}}, p)
		n.settle()
		cards := 1
		if p.MultiNIC {
			cards = 2
		}
		for range 110 {
			for card := range cards {
				if !n.add(card) {
					t.Fatalf("no address on card %d\n%s", card, n.history())
				}
			}
			n.act()
		}
		for len(n.pods) > 0 {
			n.stop(n.pods[0])
			n.now = n.now.Add(time.Second)
			n.act()
		}
		n.settle()
		n.rest()
		if n.assigns != 1 || n.attaches != cards-1 || n.unassigns+n.detaches > 0 {
			t.Errorf("%d cards: %d assigns, %d attaches, %d unassigns, %d detaches\n%s", cards, n.assigns, n.attaches, n.unassigns, n.detaches, n.history())
		}
	}
}

package warmpool

import (
	"fmt"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

func waiting(n int) func(*Snapshot) { return func(s *Snapshot) { s.Waiting[0] = n } }

func pending(ops ...Pending) func(*Snapshot) {
	return func(s *Snapshot) { s.Pending = append(s.Pending, ops...) }
}

func subnetList(list ...Subnet) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Subnets = list
		for i := range s.Book.ENIs {
			s.Book.ENIs[i].SubnetID = list[0].ID
		}
	}
}

// resting puts all addresses of the first /28 in cooldown.
func resting(n int) func(*Snapshot) {
	return func(s *Snapshot) {
		c := &s.Book.ENIs[0].CIDRs[0]
		a := c.Prefix.Addr()
		for range n {
			c.Records = append(c.Records, ipam.AddressState{Address: a, UnassignedAt: epoch.Add(-10 * time.Second)})
			a = a.Next()
		}
	}
}

// misplaced makes EC2 show a CIDR on another ENI than the book.
func misplaced(id ipam.ENIID) func(*Snapshot) {
	return func(s *Snapshot) { s.Misplaced = map[ipam.ENIID]int{id: 1} }
}

func both(changes ...func(*Snapshot)) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, c := range changes {
			c(s)
		}
	}
}

func TestPlan_Demand(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	runPlans(t, []planRow{
		{"nothing waits, target met", scene{"primary:fffffffff", m5large, nil}, e(1), 0, ""},
		{"one step serves all that wait, ENIs side by side", scene{"primary:aaaaaaaaa", Limits{10, []int{8}}, waiting(20)}, e(1), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 4 with 9 secondary IPs: waiting-pods`},
		{"150 on a fresh m5.4xlarge: five ENIs side by side", scene{"primary:", m5x4large, waiting(150)}, ip(1, 0), 0, `
			assign 29 secondary IPs to eni-0: waiting-pods
			attach an ENI at card 0 device 1 with 29 secondary IPs: waiting-pods
			attach an ENI at card 0 device 2 with 29 secondary IPs: waiting-pods
			attach an ENI at card 0 device 3 with 29 secondary IPs: waiting-pods
			attach an ENI at card 0 device 4 with 29 secondary IPs: waiting-pods
			attach an ENI at card 0 device 5 with 6 secondary IPs: waiting-pods`},
		{"free slots and a new ENI at once", scene{"primary:aaaaa", Limits{10, []int{8}}, waiting(10)}, ip(1, 0), 0, `
			assign 4 secondary IPs to eni-0: waiting-pods
			attach an ENI at card 0 device 1 with 7 secondary IPs: waiting-pods`},
		{"free slots alone when they suffice", scene{"primary:aaaaa eni:a", Limits{10, []int{8}}, waiting(10)}, ip(1, 0), 0, `
			assign 4 secondary IPs to eni-0: waiting-pods
			assign 7 secondary IPs to eni-1: waiting-pods`},
		{"the primary fills first, then the fullest", scene{"primary:aaaaaaaaa eni:a eni:aa", m5large, waiting(3)}, ip(1, 0), 0, `
			assign 4 secondary IPs to eni-2: waiting-pods`},
		{"free addresses count for those who wait", scene{"primary:aaff", m5large, waiting(2)}, ip(1, 0), 0, `
			assign 1 secondary IP to eni-0: warm-ip-target`},
		{"prefixes for all that wait", scene{"primary:A", m5large, waiting(60)}, pd, 0, `
			assign 4 prefixes to eni-0: waiting-pods`},
		{"prefixes on several ENIs", scene{"primary:A", t3small, waiting(100)}, pd, 0, `
			assign 2 prefixes to eni-0: waiting-pods
			attach an ENI at card 0 device 1 with 3 prefixes: waiting-pods
			attach an ENI at card 0 device 2 with 2 prefixes: waiting-pods`},
		{"MINIMUM_IP_TARGET alone is no cap", scene{"primary:aaaaa", m5large, nil}, ip(0, 5), 0, `
			assign 1 secondary IP to eni-0: pool-empty`},
		{"minimum asks for more than the spare", scene{"primary:f", m5large, nil}, ip(1, 6), 0, `
			assign 5 secondary IPs to eni-0: minimum-ip-target`},
		{"cooling addresses are not free", scene{"primary:acccc", m5large, nil}, ip(2, 0), 0, `
			assign 2 secondary IPs to eni-0: warm-ip-target`},
		{"nor are held ones", scene{"primary:ahhhh", m5large, nil}, ip(2, 0), 0, `
			assign 2 secondary IPs to eni-0: warm-ip-target`},
		{"nor those of a prefix with pods", scene{"primary:CC", m5large, nil}, Policy{PrefixDelegation: true, WarmIP: 31}, 0, `
			assign 1 prefix to eni-0: warm-ip-target`},
		{"an address with a pod that EC2 moved to another ENI takes a slot there", scene{"primary:aap eni:aa", t3small, both(waiting(1), misplaced("eni-1"))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 2 with 2 secondary IPs: waiting-pods`},
		{"a full node plans nothing", scene{"primary:aaa eni:aaa eni:aaa", t3small, waiting(5)}, e(1), 0, ""},
		{"nothing is known of the instance", scene{"primary:aaa", Limits{}, nil}, e(1), 0, ""},
	})
}

func TestPlan_Pending(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true, WarmIP: 1}
	runPlans(t, []planRow{
		{"addresses in flight to an ENI are as good as there",
			scene{"primary:a", m5large, both(waiting(3), pending(Pending{Kind: PendingAssign, ENI: "eni-0", IPs: 4}))}, ip(1, 0), 0, ""},
		{"an ENI in flight too",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(8), pending(Pending{Kind: PendingAttach, Device: 1, IPs: 9}))}, ip(1, 0), 0, ""},
		{"for the minimum as well",
			scene{"primary:f", m5large, pending(Pending{Kind: PendingAttach, Device: 1, IPs: 5})}, ip(1, 6), 0, ""},
		{"what is missing beside it gets its own device",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(10), pending(Pending{Kind: PendingAttach, Device: 1, IPs: 9}))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 2 with 2 secondary IPs: waiting-pods`},
		{"one operation per ENI: the rest of its slots is left to the next plan",
			scene{"primary:a", m5large, both(waiting(6), pending(Pending{Kind: PendingAssign, ENI: "eni-0", IPs: 2}))}, ip(1, 0), 0, ""},
		{"what exceeds those slots is not",
			scene{"primary:a", m5large, both(waiting(10), pending(Pending{Kind: PendingAssign, ENI: "eni-0", IPs: 2}))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"nor is what the ENI in flight can take after it",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(8), pending(Pending{Kind: PendingAttach, Device: 1, IPs: 2}))}, ip(1, 0), 0, ""},
		{"one more than that needs an ENI of its own, at once",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(9), pending(Pending{Kind: PendingAttach, Device: 1, IPs: 2}))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 2 with 1 secondary IP: waiting-pods`},
		{"all that attached, busy and coming ENIs can't take, side by side",
			scene{"primary:aaaaaaaaa eni:a", Limits{10, []int{8}}, both(waiting(33), pending(Pending{Kind: PendingAssign, ENI: "eni-1", IPs: 2}, Pending{Kind: PendingAttach, Device: 2, IPs: 2}))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 3 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 4 with 8 secondary IPs: waiting-pods`},
		{"prefixes that the ENI in flight can take",
			scene{"primary:AAA", t3small, both(waiting(92), pending(Pending{Kind: PendingAttach, Device: 1, Prefixes: 1}))}, pd, 0, ""},
		{"and cannot",
			scene{"primary:AAA", t3small, both(waiting(93), pending(Pending{Kind: PendingAttach, Device: 1, Prefixes: 1}))}, pd, 0, `
			attach an ENI at card 0 device 2 with 1 prefix: waiting-pods`},
		{"an ENI in flight takes no more than its subnet has",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(8), subnetList(Subnet{ID: "a", AvailableIPs: 3}, Subnet{ID: "b", AvailableIPs: 90}),
				pending(Pending{Kind: PendingAttach, Device: 1, IPs: 2, SubnetID: "a"}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 2 with 4 secondary IPs: waiting-pods`},
		{"nothing of an exhausted one",
			scene{"primary:aaaaaaaaa", m5large, both(waiting(8), subnetList(Subnet{ID: "a", AvailableIPs: 90, BackoffUntil: after(time.Minute)}, Subnet{ID: "b", AvailableIPs: 30}),
				pending(Pending{Kind: PendingAttach, Device: 1, IPs: 2, SubnetID: "a"}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 2 with 7 secondary IPs: waiting-pods`},
		{"an ENI in flight on another card is none of ours",
			scene{"primary:aaaaaaaaa", Limits{10, []int{3, 3}}, both(waiting(2), pending(Pending{Kind: PendingAttach, Card: 1, IPs: 1}))}, ip(1, 0), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"slots of CIDRs that are being released come free",
			scene{"primary:aaaaaahhh", m5large, both(waiting(2), pending(Pending{Kind: PendingRelease, ENI: "eni-0"}))}, ip(1, 0), 0, ""},
		{"a detaching ENI keeps its slot",
			scene{"primary:aaa eni:aaa eni:", t3small, both(waiting(2), pending(Pending{Kind: PendingDetach, ENI: "eni-2"}), func(s *Snapshot) { s.Book.ENIs[2].Held = true })}, ip(1, 0), 0, ""},
		{"in the book or not",
			scene{"primary:aaa eni:aaa", t3small, both(waiting(2), func(s *Snapshot) { s.OtherENIs = []int{1} })}, ip(1, 0), 0, ""},
		{"a device that a foreign ENI uses is left alone",
			scene{"primary:aaaaaaaaa", Limits{10, []int{4}}, func(s *Snapshot) { s.OtherENIs, s.OtherDevices = []int{1}, [][]int{{1}} }}, ip(1, 0), 0, `
			attach an ENI at card 0 device 2 with 1 secondary IP: warm-ip-target`},
		{"nothing is given back while something is on its way",
			scene{"primary:afffff", m5large, pending(Pending{Kind: PendingAttach, Device: 1, IPs: 1})}, ip(1, 0), 0, ""},
	})
}

// TestPlan_RollingUpdate: on a node that is full by max-pods, replacement pods get addresses
// while those of their predecessors are in cooldown, whatever share of the pods is replaced
// and however often. After the cooldown the pool comes to rest at no more than its target.
func TestPlan_RollingUpdate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limits Limits
		policy Policy
		full   int // addresses when the node is full
		after  int // at most, at rest after the updates
	}{
		"WARM_ENI_TARGET=1":               {m5x4large, e(1).with(pods(60)), 87, 116},
		"WARM_ENI_TARGET=1, ENIs hold it": {m5x4large, e(1).with(pods(58)), 61, 116},
		"WARM_ENI_TARGET=0":               {m5x4large, e(0).with(pods(60)), 87, 116},
		"WARM_IP_TARGET=1":                {m5x4large, ip(1, 0).with(pods(60)), 60, 61},
		"WARM_IP_TARGET=5 and a minimum":  {m5x4large, ip(5, 40).with(pods(60)), 60, 65},
		"WARM_PREFIX_TARGET=1":            {m5large, prefix(1, 0, 0, 60), 64, 96},
		"prefixes for single addresses":   {m5large, prefix(0, 5, 0, 60), 64, 80},
		"custom networking":               {m5x4large, e(1).with(custom).with(pods(60)), 87, 116},
		"further cards beside a full one": {Limits{30, []int{8, 1}}, e(1).with(multiNIC).with(pods(60)), 88, 117},
	} {
		for _, part := range []int{1, 3, 10, 60} {
			t.Run(fmt.Sprintf("%s/%d", name, part), func(t *testing.T) {
				t.Parallel()
				n := newNode(t, row.limits, row.policy)
				if len(row.limits.ENIsByCard) > 1 {
					n.attach(ipam.ENI{Card: 1})
				}
				n.settle()
				for range row.policy.MaxPods {
					if !n.add(0) {
						t.Fatalf("no address for pod %d\n%s", len(n.pods)+1, n.history())
					}
					n.act()
				}
				n.settle()
				if n.total() != row.full {
					t.Errorf("%d addresses on the full node, want %d\n%s", n.total(), row.full, n.history())
				}
				for range min(40, 2*row.policy.MaxPods/part) { // longer than a cooldown
					for range min(part, len(n.pods)) {
						n.stop(n.pods[0])
					}
					n.act()
					for len(n.pods) < row.policy.MaxPods {
						if !n.add(0) {
							code, text, _ := Blocked(n.snapshot(), n.policy, n.now, 0)
							t.Fatalf("a pod that replaces another gets no address: %s, %s\n%s", code, text, n.history())
						}
					}
					n.now = n.now.Add(time.Second)
					n.act()
				}
				n.settle()
				n.rest()
				if n.total() > row.after {
					t.Errorf("%d addresses after the update, want %d at most\n%s", n.total(), row.after, n.history())
				}
			})
		}
	}
}

func TestPlan_Limits(t *testing.T) {
	t.Parallel()
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	runPlans(t, []planRow{
		{"the ENI that reaches max-pods is filled", scene{"primary:aaaaaaaaa", m5large, nil}, e(1).with(pods(12)), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: warm-eni-target`},
		{"no ENI after it", scene{"primary:aaaaaaaaa eni:aaaffffff", m5large, nil}, e(1).with(pods(12)), 0, ""},
		{"but a reserve where it fills to max-pods", scene{"primary:aaaaaaaaa", m5large, nil}, e(1).with(pods(9)), 0, `
			attach an ENI at card 0 device 1 with 1 secondary IP: warm-eni-target`},
		{"WARM_ENI_TARGET=0 asks for no reserve", scene{"primary:aaaaaaaaa", m5large, nil}, e(0).with(pods(9)), 0, ""},
		{"a step ends at max-pods", scene{"primary:aaaaaaaaa", m5large, nil}, ip(9, 0).with(pods(12)), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: warm-ip-target`},
		{"for waiting pods as well", scene{"primary:aaaaaaaaa", m5large, waiting(20)}, ip(1, 0).with(pods(12)), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"prefixes round up to it", scene{"primary:A", m5large, waiting(60)}, pd.with(pods(29)), 0, `
			assign 1 prefix to eni-0: waiting-pods`},
		{"at max-pods nothing grows", scene{"primary:aaaaaaaaa", m5large, waiting(1)}, ip(1, 0).with(pods(9)), 0, ""},
		{"cooling addresses do not count for it", scene{"primary:aaaacccc", m5large, waiting(3)}, ip(1, 0).with(pods(8)), 0, `
			assign 1 secondary IP to eni-0: waiting-pods
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"nor in prefix mode", scene{"primary:F", m5large, both(waiting(1), resting(16))}, pd.with(pods(16)), 0, `
			assign 1 prefix to eni-0: waiting-pods
			wait 20.000000001s: addresses-cooling`},
		{"nor for whole ENIs", scene{"primary:aaaaaaaac", m5large, waiting(1)}, e(1).with(pods(9)), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods
			wait 20.000000001s: addresses-cooling`},
		{"nor before anybody waits", scene{"primary:aaaaaaaac", m5large, nil}, ip(1, 0).with(pods(9)), 0, `
			attach an ENI at card 0 device 1 with 1 secondary IP: warm-ip-target`},
		{"nor on a further card", scene{"primary:fffffffff eni@1:aaac", Limits{10, []int{1, 3}}, func(s *Snapshot) { s.Waiting[1] = 1 }}, e(1).with(pods(4)).with(multiNIC), 0, `
			assign 1 secondary IP to eni-1: waiting-pods
			wait 20.000000001s: addresses-cooling`},
		{"in flight counts", scene{"primary:aaaaaaaaa", m5large, both(waiting(9), pending(Pending{Kind: PendingAttach, Device: 1, IPs: 3}))}, e(1).with(pods(12)), 0, ""},
		{"MAX_ENI", scene{"primary:aaaaaaaaa", Limits{10, []int{8}}, waiting(30)}, e(1).with(maxENI(3)), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods
			attach an ENI at card 0 device 2 with 9 secondary IPs: waiting-pods`},
		{"MAX_ENI above the type's limit", scene{"primary:aaa", Limits{4, []int{2}}, waiting(30)}, e(1).with(maxENI(9)), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"MAX_ENI below what is attached still fills the slots", scene{"primary:aaa eni:a", t3small, waiting(30)}, e(1).with(maxENI(1)), 0, `
			assign 2 secondary IPs to eni-1: waiting-pods`},
		{"a slot is kept for the trunk", scene{"primary:aaa", t3small, waiting(30)}, e(1).with(trunkSlot), 0, `
			attach an ENI at card 0 device 1 with 3 secondary IPs: waiting-pods`},
		{"until there is one", scene{"primary:aaa trunk:", t3small, waiting(30)}, e(1).with(trunkSlot), 0, `
			attach an ENI at card 0 device 2 with 3 secondary IPs: waiting-pods`},
		{"quarantined addresses are not there, but occupy slots", scene{"primary:pp", t3small, nil}, ip(1, 0), 0, "assign 1 secondary IP to eni-0: warm-ip-target"},
		{"EFA ENIs grow, excluded and held ones do not", scene{"primary:aaa efa:a excluded: eni:", Limits{4, []int{4}}, both(waiting(1), func(s *Snapshot) { s.Book.ENIs[3].Held = true })}, ip(1, 0), 0, `
			assign 2 secondary IPs to eni-1: waiting-pods
			detach eni-2: eni-excluded`},
		{"slots hold CIDRs of either kind", scene{"primary:aA eni:aaA", t3small, waiting(31)}, pd.with(maxENI(2)), 0, `
			assign 1 prefix to eni-0: waiting-pods`},
	})
}

func TestPlan_Subnets(t *testing.T) {
	t.Parallel()
	eight := Limits{10, []int{8}}
	pd := Policy{PrefixDelegation: true, WarmIP: 1}
	full := "primary:aaaaaaaaa"
	refused := Subnet{ID: "a", AvailableIPs: 90, PrefixBackoff: after(-time.Minute)}
	secondIn := func(subnet string) func(*Snapshot) {
		return func(s *Snapshot) { s.Book.ENIs[1].SubnetID = subnet }
	}
	runPlans(t, []planRow{
		{"the one with the most free addresses", scene{full, eight, both(waiting(5), subnetList(Subnet{ID: "a", AvailableIPs: 50}, Subnet{ID: "b", AvailableIPs: 60}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 1 with 6 secondary IPs: waiting-pods`},
		{"equal ones by name", scene{full, eight, both(waiting(5), subnetList(Subnet{ID: "b", AvailableIPs: 50}, Subnet{ID: "a", AvailableIPs: 50}))}, ip(1, 0), 0, `
			attach an ENI in a at card 0 device 1 with 6 secondary IPs: waiting-pods`},
		{"a plan counts what it takes", scene{full, eight, both(waiting(25), subnetList(Subnet{ID: "a", AvailableIPs: 25}, Subnet{ID: "b", AvailableIPs: 22}))}, ip(1, 0), 0, `
			attach an ENI in a at card 0 device 1 with 9 secondary IPs: waiting-pods
			attach an ENI in b at card 0 device 2 with 9 secondary IPs: waiting-pods
			attach an ENI in a at card 0 device 3 with 8 secondary IPs: waiting-pods`},
		{"and takes what is left", scene{full, eight, both(waiting(25), subnetList(Subnet{ID: "a", AvailableIPs: 4}))}, ip(1, 0), 0, `
			attach an ENI in a at card 0 device 1 with 3 secondary IPs: waiting-pods
			wait 1m0s: subnet-exhausted`},
		{"one address is not enough for an ENI", scene{full, eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 1}))}, ip(1, 0), 0, `
			wait 1m0s: subnet-exhausted`},
		{"but for an attached one", scene{"primary:a", eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 1}))}, ip(1, 0), 0, `
			assign 1 secondary IP to eni-0: waiting-pods
			wait 1m0s: subnet-exhausted`},
		{"attached ENIs and new ones draw on the same count", scene{"primary:aaaaaaa eni:aaaaaaa", eight, both(waiting(20), subnetList(Subnet{ID: "a", AvailableIPs: 9}))}, ip(1, 0), 0, `
			assign 2 secondary IPs to eni-0: waiting-pods
			assign 2 secondary IPs to eni-1: waiting-pods
			attach an ENI in a at card 0 device 2 with 4 secondary IPs: waiting-pods
			wait 1m0s: subnet-exhausted`},
		{"unknown counts come last", scene{full, eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: -1}, Subnet{ID: "b", AvailableIPs: 3}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 1 with 2 secondary IPs: waiting-pods`},
		{"one subnet's back-off leaves the others alone", scene{full, eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 90, BackoffUntil: after(time.Minute)}, Subnet{ID: "b", AvailableIPs: 30}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 1 with 2 secondary IPs: waiting-pods`},
		{"an attached ENI of an exhausted subnet is left, another subnet tried", scene{"primary:aa", eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 90, BackoffUntil: after(time.Minute)}, Subnet{ID: "b", AvailableIPs: 30}))}, ip(1, 0), 0, `
			attach an ENI in b at card 0 device 1 with 2 secondary IPs: waiting-pods`},
		{"a fragmented one does not stop secondary IPs", scene{full, eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 90, PrefixBackoff: after(time.Minute)}))}, ip(1, 0), 0, `
			attach an ENI in a at card 0 device 1 with 2 secondary IPs: waiting-pods`},
		{"it stops prefixes there only", scene{"primary:", eight, both(waiting(1), subnetList(Subnet{ID: "a", AvailableIPs: 90, PrefixBackoff: after(time.Minute)}, Subnet{ID: "b", AvailableIPs: 30}))}, pd, 0, `
			attach an ENI in b at card 0 device 1 with 1 prefix: waiting-pods`},
		{"a subnet that refused a prefix is asked after the others", scene{"primary: eni:", eight, both(waiting(1), subnetList(refused, Subnet{ID: "b", AvailableIPs: 30}), secondIn("b"))}, pd, 0, `
			assign 1 prefix to eni-1: waiting-pods`},
		{"for a new ENI too", scene{full, eight, both(waiting(1), subnetList(refused, Subnet{ID: "b", AvailableIPs: 30}))}, pd, 0, `
			attach an ENI in b at card 0 device 1 with 1 prefix: waiting-pods`},
		{"of several the one that refused first", scene{"primary: eni:", eight, both(waiting(1), subnetList(refused, Subnet{ID: "b", AvailableIPs: 30, PrefixBackoff: after(-time.Hour)}), secondIn("b"))}, pd, 0, `
			assign 1 prefix to eni-1: waiting-pods`},
		{"it is asked if there is no other", scene{"primary:", eight, both(waiting(1), subnetList(refused))}, pd, 0, `
			assign 1 prefix to eni-0: waiting-pods`},
		{"secondary IPs do not mind", scene{"primary: eni:", eight, both(waiting(1), subnetList(refused, Subnet{ID: "b", AvailableIPs: 30}), secondIn("b"))}, ip(1, 0), 0, `
			assign 2 secondary IPs to eni-0: waiting-pods`},
		{"sixteen addresses and a primary are needed", scene{"primary:AAAAAAAAA", eight, both(waiting(200), subnetList(Subnet{ID: "a", AvailableIPs: 16}))}, pd, 0, `
			wait 1m0s: subnet-exhausted`},
		{"no subnet is usable", scene{full, eight, both(waiting(1), func(s *Snapshot) { s.NoUsableSubnet = true })}, ip(1, 0), 0, ""},
		{"subnets not known yet", scene{full, eight, waiting(1)}, ip(1, 0), 0, `
			attach an ENI at card 0 device 1 with 2 secondary IPs: waiting-pods`},
	})
}

func TestPlan_NodeState(t *testing.T) {
	t.Parallel()
	cordon := func(s *Snapshot) { s.Unschedulable = true }
	throttled := func(s *Snapshot) { s.Throttled = true }
	terminate := func(s *Snapshot) { s.Terminating = true }
	manage := func(p *Policy) { p.ManageUnschedulable = true }
	runPlans(t, []planRow{
		{"terminating", scene{"primary:a", m5large, both(waiting(3), terminate)}, ip(1, 0), 0, ""},
		{"cordoned: no warm addresses", scene{"primary:a", m5large, cordon}, ip(3, 0), 0, ""},
		{"cordoned: nothing given back", scene{"primary:fffffffff eni:fffffffff eni:fffffffff", m5large, cordon}, ip(1, 0), 0, ""},
		{"cordoned: what waits is served, no more", scene{"primary:aaaaaaaaa", m5large, both(waiting(2), cordon)}, e(1), 0, `
			attach an ENI at card 0 device 1 with 2 secondary IPs: waiting-pods`},
		{"throttled: no warm addresses", scene{"primary:a", m5large, throttled}, ip(3, 0), 0, ""},
		{"throttled: nothing given back", scene{"primary:fffffffff eni:fffffffff eni:fffffffff", m5large, throttled}, ip(1, 0), 0, ""},
		{"throttled: what waits is served", scene{"primary:aaaaaaaaa", m5large, both(waiting(2), throttled)}, e(1), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods`},
		{"cordoned but managed: targets", scene{"primary:a", m5large, cordon}, ip(3, 0).with(manage), 0, `
			assign 3 secondary IPs to eni-0: warm-ip-target`},
		{"cordoned but managed: releases", scene{"primary:aff", m5large, cordon}, ip(1, 0).with(manage), 0, `
			unassign 10.0.0.2 from eni-0: surplus-ips`},
	})
}

func TestPlan_Cards(t *testing.T) {
	t.Parallel()
	two := Limits{10, []int{3, 2, 2}}
	multi := func(p *Policy) { p.MultiNIC = true }
	waitOn := func(card, n int) func(*Snapshot) { return func(s *Snapshot) { s.Waiting[card] = n } }
	runPlans(t, []planRow{
		{"only the first card by default", scene{"primary:fffffffff", two, waitOn(1, 3)}, e(1), 0, ""},
		{"each further card keeps one address", scene{"primary:fffffffff", two, nil}, e(1).with(multi), 0, `
			attach an ENI at card 1 device 0 with 1 secondary IP: card-pool
			attach an ENI at card 2 device 0 with 1 secondary IP: card-pool`},
		{"but not one with an EFA-only ENI", scene{"primary:fffffffff", two, func(s *Snapshot) {
			s.OtherENIs, s.Unmanaged = []int{0, 1, 0}, []bool{false, true}
		}}, e(1).with(multi), 0, `
			attach an ENI at card 2 device 0 with 1 secondary IP: card-pool`},
		{"waiting pods of each card", scene{"primary:aaaaaaaaa eni@1:a eni@2:a", two, both(waitOn(0, 2), waitOn(1, 4))}, e(0).with(multi), 0, `
			attach an ENI at card 0 device 1 with 9 secondary IPs: waiting-pods
			assign 5 secondary IPs to eni-1: waiting-pods
			assign 1 secondary IP to eni-2: card-pool`},
		{"an idle card with one prefix is at rest", scene{"primary:F eni@1:F eni@2:F", two, nil}, prefix(1, 0, 0, 0).with(multi), 0, ""},
		{"a card beyond its target shrinks by whole prefixes", scene{"primary:F eni@1:FFF eni@2:A", two, nil}, prefix(1, 0, 0, 0).with(multi), 0, `
			unassign 10.1.2.0/28 10.1.1.0/28 from eni-1: surplus-prefixes`},
		{"the last ENI of a card stays", scene{"primary:fffffffff eni@1:f eni@2:f", two, nil}, e(1).with(multi), 0, ""},
	})
}

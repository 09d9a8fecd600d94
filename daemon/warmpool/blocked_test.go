package warmpool

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

func TestBlocked(t *testing.T) {
	t.Parallel()
	one := Limits{4, []int{1}}
	pd := Policy{PrefixDelegation: true, WarmPrefix: 1}
	tests := []struct {
		name   string
		scene  scene
		policy Policy
		card   int
		code   cause.Code // "" if not blocked
		text   string
	}{
		{"an address is free", scene{"primary:aaf", one, nil}, e(1), 0, "", ""},
		{"the pool can grow", scene{"primary:aa", one, nil}, e(1), 0, "", ""},
		{"an ENI can come", scene{"primary:aaa", t3small, nil}, e(1), 0, "", ""},
		{"addresses are on their way", scene{"primary:aaa", one, pending(Pending{Kind: PendingAttach, Device: 1, IPs: 1})}, e(1), 0, "", ""},
		{"a slot is coming free", scene{"primary:aah", one, pending(Pending{Kind: PendingRelease, ENI: "eni-0"})}, e(1), 0, "", ""},
		{"or will be", scene{"primary:fff", one, nil}, pd, 0, "", ""},
		{"full", scene{"primary:aaa eni:aaa eni:aaa", t3small, nil}, e(1), 0,
			cause.PoolFull, "3 of 3 network interfaces are attached and hold all 9 addresses they can"},
		{"full since EC2 moved an address with a pod", scene{"primary:aap eni:aa", Limits{4, []int{2}}, misplaced("eni-1")}, e(1), 0,
			cause.PoolFull, "2 of 2 network interfaces are attached and hold all 4 addresses they can (1 address range in use by pods moved between interfaces in EC2)"},
		{"full by MAX_ENI", scene{"primary:aaa eni:aaa", t3small, nil}, e(1).with(maxENI(2)), 0,
			cause.PoolFull, "2 of 3 network interfaces are attached and hold all 6 addresses they can (MAX_ENI is 2)"},
		{"full by the trunk's slot", scene{"primary:aaa eni:aaa", t3small, nil}, e(1).with(trunkSlot), 0,
			cause.PoolFull, "2 of 3 network interfaces are attached and hold all 6 addresses they can (one slot is reserved for a trunk)"},
		{"full by max-pods", scene{"primary:aaa", t3small, nil}, ip(1, 0).with(pods(3)), 0,
			cause.PoolFull, "the pool holds 3 addresses, max-pods is 3"},
		{"full and cooling", scene{"primary:aac", one, nil}, e(1), 0,
			cause.AddressesCooling, "1 of 1 network interfaces are attached and hold all 3 addresses they can; 1 of its 3 addresses are cooling, the first is free in 20s"},
		{"exhausted", scene{"primary:aaa", t3small, subnetList(Subnet{ID: "subnet-a", AvailableIPs: 1})}, e(1), 0,
			cause.SubnetExhausted, "subnet-a has no free addresses, next attempt in 1m0s"},
		{"exhausted for an attached ENI", scene{"primary:aa", one, subnetList(Subnet{ID: "subnet-a", BackoffUntil: after(90123 * time.Millisecond)})}, e(1), 0,
			cause.SubnetExhausted, "subnet-a has no free addresses, next attempt in 1m30s"},
		{"fragmented before exhausted", scene{"primary:", t3small, subnetList(Subnet{ID: "subnet-a", AvailableIPs: 9}, Subnet{ID: "subnet-b", AvailableIPs: 99, PrefixBackoff: after(time.Second)})}, pd, 0,
			cause.SubnetFragmented, "subnet-b has no free aligned /28 block, next attempt in 1s"},
		{"no subnet", scene{"primary:aaa", t3small, func(s *Snapshot) { s.NoUsableSubnet = true }}, e(1), 0,
			cause.NoUsableSubnet, "no subnet can be used for new network interfaces"},
		{"throttled attach", scene{"primary:aaa", t3small, func(s *Snapshot) {
			s.AttachBackoff, s.AttachBackoffCause = after(2*time.Second), cause.EC2Throttled
		}}, e(1), 0, cause.EC2Throttled, "EC2 is throttling requests, next attempt in 2s"},
		{"failed attach", scene{"primary:aaa", t3small, func(s *Snapshot) { s.AttachBackoff = after(2 * time.Second) }}, e(1), 0,
			cause.EC2Error, "the last network interface could not be created or attached, next attempt in 2s"},
		{"failed assign", scene{"primary:aa", one, func(s *Snapshot) { s.ENIBackoff["eni-0"] = after(time.Second) }}, e(1), 0,
			cause.EC2Error, "the last request for eni-0 failed, next attempt in 1s"},
		{"forbidden assign", scene{"primary:aa", one, func(s *Snapshot) {
			s.ENIBackoff["eni-0"] = after(time.Second)
			s.ENIBackoffCause = map[ipam.ENIID]cause.Code{"eni-0": cause.EC2Unauthorized}
		}}, e(1), 0, cause.EC2Unauthorized, "the last request for eni-0 failed: the node's IAM role lacks an EC2 permission, next attempt in 1s"},
		{"terminating", scene{"primary:f", one, func(s *Snapshot) { s.Terminating = true }}, e(1), 0,
			cause.DaemonTerminating, "ipamd is shutting down"},
		{"multi-NIC off", scene{"primary:f", Limits{4, []int{1, 1}}, nil}, e(1), 1,
			cause.MultiNICDisabled, "the pod asks for several interfaces but ENABLE_MULTI_NIC is off"},
		{"no such card", scene{"primary:f", one, nil}, Policy{MultiNIC: true}, 1,
			cause.PoolFull, "the instance has no network card 1"},
		{"a card without a pool", scene{"primary:f", Limits{4, []int{1, 1}}, func(s *Snapshot) { s.Unmanaged = []bool{false, true} }}, Policy{MultiNIC: true}, 1,
			cause.PoolFull, "network card 1 has an EFA-only interface and no pool"},
		{"a card that grows", scene{"primary:a eni@1:a", Limits{4, []int{1, 1}}, nil}, Policy{MultiNIC: true}, 1, "", ""},
		{"an excluded ENI's addresses are not free", scene{"primary:aaa excluded:af", Limits{4, []int{2}}, unplaced}, e(1), 0,
			cause.PoolFull, "2 of 2 network interfaces are attached and hold all 3 addresses they can (1 of them excluded from serving pods)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, p := tt.scene.snapshot(t), timers(tt.policy)
			code, text, blocked := Blocked(s, p, epoch, tt.card)
			if code != tt.code || text != tt.text || blocked != (tt.code != "") {
				t.Errorf("%v %q %q\nwant %q %q", blocked, code, text, tt.code, tt.text)
			}
			if s.Waiting != nil && s.Waiting[0] != 0 {
				t.Error("the snapshot was changed")
			}
		})
	}
}

func TestReason_Titles(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if r.Title() == "" || seen[r.Title()] || seen[string(r)] {
			t.Errorf("reason %q: title %q is missing or used twice", r, r.Title())
		}
		seen[r.Title()], seen[string(r)] = true, true
	}
	if Reason("").Title() != "" || Reason("no-such").Title() != "" {
		t.Error("an unknown reason has a title")
	}
}

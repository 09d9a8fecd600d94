package warmpool

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// scene draws a snapshot at epoch. One word per ENI, "role:letters" or
// "role@card:letters", in order of attachment (ids eni-0, eni-1, … and the next
// device index of the card); everything is an hour old. Roles: primary, eni,
// trunk, efa, excluded. A letter is one CIDR, a capital a /28
// (a 6 before it makes it a /80):
//
//	f free   a assigned   c cooling for 10 s   h held   q quarantined   p the same with a pod
type scene struct {
	enis   string
	limits Limits
	change func(*Snapshot)
}

func (sc scene) snapshot(t *testing.T) Snapshot {
	t.Helper()
	s := Snapshot{Limits: sc.limits, LastScaleDown: epoch.Add(-time.Hour), ENIBackoff: map[ipam.ENIID]time.Time{}}
	s.Waiting = make([]int, len(sc.limits.ENIsByCard))
	devices := map[int]int{}
	for i, word := range strings.Fields(sc.enis) {
		role, letters, ok := strings.Cut(word, ":")
		if !ok {
			t.Fatalf("no colon in %q", word)
		}
		card := 0
		if r, c, ok := strings.Cut(role, "@"); ok {
			role = r
			card = int(c[0] - '0')
		}
		e := ipam.ENIState{ENI: ipam.ENI{ID: ipam.ENIID(fmt.Sprintf("eni-%d", i)), Card: card, Device: devices[card],
			AttachedAt: epoch.Add(-time.Hour), Primary: role == "primary", Trunk: role == "trunk", EFA: role == "efa", Excluded: role == "excluded"}}
		devices[card]++
		six := false
		for k, letter := range letters {
			if letter == '6' {
				six = true
				continue
			}
			e.CIDRs = append(e.CIDRs, cidr(t, i, k, letter, six))
			six = false
		}
		s.Book.ENIs = append(s.Book.ENIs, e)
	}
	if sc.change != nil {
		sc.change(&s)
	}
	return s
}

// cidr is the k-th CIDR of ENI i: 10.i.0.k, 10.i.k.0/28 or 2001:db8:i:0:k::/80.
func cidr(t *testing.T, i, k int, letter rune, six bool) ipam.CIDRState {
	t.Helper()
	c := ipam.CIDRState{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, byte(k)}), 32)}
	if six {
		c.Prefix = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i), 0, 0, 0, byte(k)}), 80)
	}
	if letter < 'a' {
		if !six {
			c.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), byte(k), 0}), 28)
		}
		letter += 'a' - 'A'
	}
	r := ipam.AddressState{Address: c.Prefix.Addr()}
	switch letter {
	case 'f':
		return c
	case 'h':
		c.Held = true
		return c
	case 'q':
		c.QuarantinedAt = epoch.Add(-time.Minute)
		return c
	case 'a', 'p':
		if letter == 'p' {
			c.QuarantinedAt = epoch.Add(-time.Minute)
		}
		r.Sandbox = ipam.Sandbox{Network: "aws-cni", ContainerID: r.Address.String(), IfName: "eth0"}
		c.Assigned = 1
	case 'c':
		r.UnassignedAt = epoch.Add(-10 * time.Second)
	default:
		t.Fatalf("letter %q", letter)
	}
	c.Records = []ipam.AddressState{r}
	return c
}

// after returns a time relative to epoch.
func after(d time.Duration) time.Time { return epoch.Add(d) }

// text prints a plan, with waits relative to epoch.
func text(plan []Action) string {
	var lines []string
	for _, a := range plan {
		if w, ok := a.(Wait); ok {
			lines = append(lines, fmt.Sprintf("wait %s: %s", w.Until.Sub(epoch), w.Reason))
			continue
		}
		lines = append(lines, fmt.Sprint(a))
	}
	return strings.Join(lines, "\n")
}

// planRow is a table row: a scene and its plan.
type planRow struct {
	name   string
	scene  scene
	policy Policy
	at     time.Duration // after epoch
	want   string
}

func runPlans(t *testing.T, rows []planRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, p := row.scene.snapshot(t), timers(row.policy)
			now := epoch.Add(row.at)
			plan := Plan(s, p, now)
			want := strings.TrimSpace(strings.ReplaceAll(row.want, "\t", ""))
			if got := text(plan); got != want {
				t.Errorf("plan:\n%s\nwant:\n%s", got, want)
			}
			j := &judge{t: t, s: s, p: p, now: now, plan: plan}
			j.judge()
		})
	}
}

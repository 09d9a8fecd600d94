package subnet_test

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/capacity/subnet"
	"cnictl/capacity/whatif"
)

// vectors are the subnet table of the capacity reference: type, pods per node, settings,
// addresses per node, wasted, then the worst and the best number of nodes in a /24, /22, /20
// and /19.
const vectors = `
m5.large 8 eni=1 20 10 12 12 50 50 204 204 409 409
m5.large 8 ip=2,min=8 12 2 20 20 84 84 340 340 682 682
m5.large 8 pd,prefix=1 33 24 4 7 20 30 84 123 170 248
m5.large 8 pd,ip=2,min=8 17 8 7 14 31 59 127 240 255 481
m5.large 20 eni=1 30 7 8 8 33 33 136 136 272 272
m5.large 20 ip=2,min=20 25 2 10 10 40 40 163 163 327 327
m5.large 20 pd,prefix=1 49 28 3 4 15 20 63 83 127 167
m5.large 20 pd,ip=2,min=20 33 12 4 7 20 30 84 123 170 248
m5.4xlarge 50 eni=1 90 37 2 2 11 11 45 45 90 90
m5.4xlarge 50 ip=2,min=50 54 2 4 4 18 18 75 75 151 151
m5.4xlarge 50 pd,prefix=1 81 30 2 2 10 12 42 50 85 101
m5.4xlarge 50 pd,ip=2,min=50 65 14 2 3 12 15 50 62 102 125
m5.24xlarge 100 eni=1 200 96 1 1 5 5 20 20 40 40
m5.24xlarge 100 ip=2,min=100 105 2 2 2 9 9 38 38 77 77
m5.24xlarge 100 pd,prefix=1 129 28 1 1 6 7 28 31 56 63
m5.24xlarge 100 pd,ip=2,min=100 113 12 1 2 7 8 31 36 63 72
`

func TestFit(t *testing.T) {
	t.Parallel()
	count := 0
	for line := range strings.Lines(vectors) {
		var instance, text string
		var pods, total, wasted int
		want := make([]int, 8)
		if n, _ := fmt.Sscan(line, &instance, &pods, &text, &total, &wasted, &want[0], &want[1], &want[2], &want[3], &want[4], &want[5], &want[6], &want[7]); n < 13 {
			continue
		}
		count++
		s := whatif.Settings{PrefixDelegation: strings.HasPrefix(text, "pd,")}
		s.Instance, _ = limits.Lookup(instance)
		for word := range strings.SplitSeq(strings.TrimPrefix(text, "pd,"), ",") {
			name, value, _ := strings.Cut(word, "=")
			if _, err := fmt.Sscan(value, map[string]*int{"eni": &s.WarmENI, "ip": &s.WarmIP, "min": &s.MinimumIP, "prefix": &s.WarmPrefix}[name]); err != nil {
				t.Fatal(err)
			}
		}
		h := whatif.Grow(s, pods, whatif.Upstream)
		node := subnet.Node{Interfaces: h.ENIs, Addresses: h.Slots}
		if s.PrefixDelegation {
			node = subnet.Node{Interfaces: h.ENIs, Prefixes: h.Slots}
		}
		if node.Total() != total || h.Wasted() != wasted {
			t.Errorf("%s: %d addresses, %d wasted", strings.TrimSpace(line), node.Total(), h.Wasted())
		}
		for n, cidr := range []string{"10.0.0.0/24", "10.0.0.0/22", "10.0.0.0/20", "10.0.0.0/19"} {
			s, err := subnet.Parse(cidr)
			if err != nil {
				t.Fatal(err)
			}
			if worst, best := s.Fit(node); worst != want[2*n] || best != want[2*n+1] {
				t.Errorf("%s in %s: %d to %d, want %d to %d", strings.TrimSpace(line), cidr, worst, best, want[2*n], want[2*n+1])
			}
		}
	}
	if count != 16 {
		t.Errorf("%d rows, want 16", count)
	}
}

// TestFit_Others: at worst each single address of others spoils a /28 of its own, at best they
// share those that cannot be prefixes anyway.
func TestFit_Others(t *testing.T) {
	t.Parallel()
	all, err := subnet.Parse("10.0.0.0/24") // 14 blocks, 27 loose addresses
	if err != nil {
		t.Fatal(err)
	}
	node := subnet.Node{Interfaces: 1, Prefixes: 1}
	for used, want := range map[int][2]int{0: {7, 14}, 4: {5, 14}, 14: {0, 13}, 30: {0, 13}, 247: {0, 0}} {
		if worst, best := all.Without(used).Fit(node); [2]int{worst, best} != want {
			t.Errorf("%d addresses of others: %d to %d nodes, want %v", used, worst, best, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"10.0.0.0/28": {11, 0}, "10.0.0.32/27": {27, 0}, "10.0.0.0/26": {59, 2}, "10.0.0.0/24": {251, 14}, "10.0.0.0/22": {1019, 62}, "10.0.0.0/16": {65531, 4094},
	} {
		if s, err := subnet.Parse(text); err != nil || s.Free != want[0] || s.Blocks != want[1] {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	for text, says := range map[string]string{
		"": "not a CIDR block", "10.0.0.0": "not a CIDR block", "10.0.0.0/-1": "not a CIDR block", "2001:db8::/64": "not an IPv4 block",
		"10.0.0.1/24": "want 10.0.0.0/24", "10.0.0.0/15": "/16 to /28 (VPC user guide", "10.0.0.0/29": "/16 to /28 (VPC user guide",
	} {
		if s, err := subnet.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v, want %q", text, s, err, says)
		}
	}
}

// FuzzFit: the worst case never exceeds the best, what fits has room, and one more does not.
func FuzzFit(f *testing.F) {
	f.Add(24, 3, 2, 10, 2)
	f.Fuzz(func(t *testing.T, bits, used, interfaces, addresses, prefixes int) {
		bound := func(n, most int) int { return ((n % most) + most) % most }
		s, err := subnet.Parse(fmt.Sprintf("10.0.0.0/%d", 16+bound(bits, 13)))
		if err != nil {
			t.Fatal(err)
		}
		s = s.Without(bound(used, 300))
		n := subnet.Node{Interfaces: 1 + bound(interfaces, 24), Addresses: bound(addresses, 800), Prefixes: bound(prefixes, 300)}
		worst, best := s.Fit(n)
		if worst < 0 || worst > best || best*n.Total() > s.Free || best*n.Prefixes > s.FreeBlocks() {
			t.Errorf("%+v in %+v: %d to %d", n, s, worst, best)
		}
		if n.Prefixes == 0 && (best+1)*n.Total() <= s.Free {
			t.Errorf("%+v in %+v: more than %d fit", n, s, best)
		}
	})
}

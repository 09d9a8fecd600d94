package whatif

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/capacity/limits"
)

// vectors are the cost table of the capacity reference: type, max-pods, pods, settings, ENIs,
// addresses, wasted, addresses of subnets, assign calls, new ENIs.
const vectors = `
m5.large 29 0 eni=1 1 9 9 10 1 0
m5.large 29 0 eni=0 1 9 9 10 1 0
m5.large 29 0 ip=1 1 1 1 2 1 0
m5.large 29 0 ip=5,min=10 2 10 10 12 1 1
m5.large 110 0 pd,prefix=1 1 16 16 17 1 0
m5.large 110 0 pd,ip=5 1 16 16 17 1 0
m5.large 29 8 eni=1 2 18 10 20 1 1
m5.large 29 8 eni=0 1 9 1 10 1 0
m5.large 29 8 ip=1 1 9 1 10 9 0
m5.large 29 8 ip=5,min=10 2 13 5 15 4 1
m5.large 110 8 pd,prefix=1 1 32 24 33 2 0
m5.large 110 8 pd,ip=5 1 16 8 17 1 0
m5.large 29 20 eni=1 3 27 7 30 1 2
m5.large 29 20 eni=0 3 27 7 30 1 2
m5.large 29 20 ip=1 3 21 1 24 19 2
m5.large 29 20 ip=5,min=10 3 25 5 28 15 2
m5.large 110 20 pd,prefix=1 1 48 28 49 3 0
m5.large 110 20 pd,ip=5 1 32 12 33 2 0
m5.large 29 27 eni=1 3 27 0 30 1 2
m5.large 29 27 eni=0 3 27 0 30 1 2
m5.large 29 27 ip=1 3 27 0 30 25 2
m5.large 29 27 ip=5,min=10 3 27 0 30 17 2
m5.large 110 27 pd,prefix=1 1 48 21 49 3 0
m5.large 110 27 pd,ip=5 1 32 5 33 2 0
m5.4xlarge 234 8 eni=1 2 58 50 60 1 1
m5.4xlarge 234 8 eni=0 1 29 21 30 1 0
m5.4xlarge 234 8 ip=1 1 9 1 10 9 0
m5.4xlarge 234 8 ip=5,min=10 1 13 5 14 4 0
m5.4xlarge 110 8 pd,prefix=1 1 32 24 33 2 0
m5.4xlarge 110 8 pd,ip=5 1 16 8 17 1 0
m5.4xlarge 234 20 eni=1 2 58 38 60 1 1
m5.4xlarge 234 20 eni=0 1 29 9 30 1 0
m5.4xlarge 234 20 ip=1 1 21 1 22 21 0
m5.4xlarge 234 20 ip=5,min=10 1 25 5 26 16 0
m5.4xlarge 110 20 pd,prefix=1 1 48 28 49 3 0
m5.4xlarge 110 20 pd,ip=5 1 32 12 33 2 0
m5.4xlarge 234 50 eni=1 3 87 37 90 1 2
m5.4xlarge 234 50 eni=0 2 58 8 60 1 1
m5.4xlarge 234 50 ip=1 2 51 1 53 50 1
m5.4xlarge 234 50 ip=5,min=10 2 55 5 57 45 1
m5.4xlarge 110 50 pd,prefix=1 1 80 30 81 5 0
m5.4xlarge 110 50 pd,ip=5 1 64 14 65 4 0
m5.4xlarge 234 100 eni=1 5 145 45 150 1 4
m5.4xlarge 234 100 eni=0 4 116 16 120 1 3
m5.4xlarge 234 100 ip=1 4 101 1 105 98 3
m5.4xlarge 234 100 ip=5,min=10 4 105 5 109 93 3
m5.4xlarge 110 100 pd,prefix=1 1 112 12 113 7 0
m5.4xlarge 110 100 pd,ip=5 1 112 12 113 7 0
m5.24xlarge 737 8 eni=1 2 98 90 100 1 1
m5.24xlarge 737 8 eni=0 1 49 41 50 1 0
m5.24xlarge 737 8 ip=1 1 9 1 10 9 0
m5.24xlarge 737 8 ip=5,min=10 1 13 5 14 4 0
m5.24xlarge 250 8 pd,prefix=1 1 32 24 33 2 0
m5.24xlarge 250 8 pd,ip=5 1 16 8 17 1 0
m5.24xlarge 737 50 eni=1 3 147 97 150 1 2
m5.24xlarge 737 50 eni=0 2 98 48 100 1 1
m5.24xlarge 737 50 ip=1 2 51 1 53 50 1
m5.24xlarge 737 50 ip=5,min=10 2 55 5 57 45 1
m5.24xlarge 250 50 pd,prefix=1 1 80 30 81 5 0
m5.24xlarge 250 50 pd,ip=5 1 64 14 65 4 0
m5.24xlarge 737 100 eni=1 4 196 96 200 1 3
m5.24xlarge 737 100 eni=0 3 147 47 150 1 2
m5.24xlarge 737 100 ip=1 3 101 1 104 99 2
m5.24xlarge 737 100 ip=5,min=10 3 105 5 108 94 2
m5.24xlarge 250 100 pd,prefix=1 1 128 28 129 8 0
m5.24xlarge 250 100 pd,ip=5 1 112 12 113 7 0
`

// settingsOf reads "pd,ip=5,min=10".
func settingsOf(t *testing.T, instance string, text string) (s Settings) {
	t.Helper()
	i, ok := limits.Lookup(instance)
	if !ok {
		t.Fatalf("no type %s", instance)
	}
	s.Instance = i
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(word, "=")
		n := 0
		if _, err := fmt.Sscan(value, &n); err != nil && value != "" {
			t.Fatal(err)
		}
		switch name {
		case "pd":
			s.PrefixDelegation = true
		case "eni":
			s.WarmENI = n
		case "ip":
			s.WarmIP = n
		case "min":
			s.MinimumIP = n
		case "prefix":
			s.WarmPrefix = n
		}
	}
	return s
}

// row is a row of the table.
type row struct {
	line string
	s    Settings
	pods int
	want Held
	// wasted addresses, and addresses of subnets
	wasted, subnet int
}

func rows(t *testing.T) (out []row) {
	t.Helper()
	for line := range strings.Lines(vectors) {
		var r row
		var instance, text string
		var maxPods int
		if n, _ := fmt.Sscan(line, &instance, &maxPods, &r.pods, &text, &r.want.ENIs, &r.want.Addresses, &r.wasted, &r.subnet, &r.want.Assigns, &r.want.NewENIs); n < 10 {
			continue
		}
		r.line = strings.TrimSpace(line)
		r.s = settingsOf(t, instance, text)
		r.s.MaxPods = maxPods
		out = append(out, r)
	}
	if len(out) != 66 {
		t.Fatalf("%d rows, want 66", len(out))
	}
	return out
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	for _, r := range rows(t) {
		h := Grow(r.s, r.pods, Upstream)
		r.want.Slots, r.want.Pods = h.Slots, r.pods
		if h != r.want || h.Wasted() != r.wasted || h.SubnetAddresses() != r.subnet {
			t.Errorf("%s: %+v", r.line, h)
		}
	}
}

// TestOurs: if pods come one at a time, our daemon holds the same as upstream's in every row, with
// as many requests. It differs where upstream's loop has the defects that Differences names.
func TestOurs(t *testing.T) {
	t.Parallel()
	for _, r := range rows(t) {
		if ours, theirs := Grow(r.s, r.pods, Ours), Grow(r.s, r.pods, Upstream); ours != theirs {
			t.Errorf("%s: ours %+v, upstream %+v", r.line, ours, theirs)
		}
	}
	s := settingsOf(t, "m5.large", "min=10")
	ours, theirs := Grow(s, 11, Ours), Grow(s, 11, Upstream)
	if ours.Pods != 11 || theirs.Pods != 10 || theirs.Addresses != 10 {
		t.Errorf("MINIMUM_IP_TARGET alone: ours %+v, upstream %+v", ours, theirs)
	}
	if why := Differences(s); len(why) != 2 || !strings.Contains(why[0], "MINIMUM_IP_TARGET") {
		t.Errorf("%q", why)
	}
}

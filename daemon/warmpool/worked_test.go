package warmpool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
)

// Instance types of the worked examples: ENIs and addresses per ENI.
var (
	t3small    = Limits{IPv4PerENI: 4, ENIsByCard: []int{3}}
	m5large    = Limits{IPv4PerENI: 10, ENIsByCard: []int{3}}
	m5x4large  = Limits{IPv4PerENI: 30, ENIsByCard: []int{8}} // m4.4xlarge too
	p3dnLarge  = Limits{IPv4PerENI: 50, ENIsByCard: []int{15}}
	m5x24large = p3dnLarge
)

// stage is a number of pods to reach, one at a time, and the pool at that point.
type stage struct {
	pods        int // if fewer than before, the last ones end
	shape       string
	total, free int
}

// worked is a row of the published behaviour (ipamd reference, "Worked examples"). fixes
// names the upstream defect that makes our result differ: 13.1 #n or 13.2.n of the same
// reference.
type worked struct {
	row    int
	limits Limits
	policy Policy
	stages []stage
	fails  cause.Code // no further pod gets an address, with this cause
	fixes  string
	theirs string
}

func e(n int) Policy { return Policy{WarmENI: n} }

func ip(w, m int) Policy { return Policy{WarmENI: 1, WarmIP: w, MinIP: m} }

func prefix(p, w, m, pods int) Policy {
	return Policy{PrefixDelegation: true, WarmENI: 1, WarmPrefix: p, WarmIP: w, MinIP: m, MaxPods: pods}
}

func (p Policy) with(change func(*Policy)) Policy { change(&p); return p }

func pods(n int) func(*Policy) { return func(p *Policy) { p.MaxPods = n } }

func maxENI(n int) func(*Policy) { return func(p *Policy) { p.MaxENI = n } }

func custom(p *Policy) { p.CustomNetworking = true }

func trunkSlot(p *Policy) { p.ReserveTrunkSlot = true }

var workedExamples = []worked{
	{row: 1, limits: t3small, policy: e(1).with(pods(11)), stages: []stage{{0, "3", 3, 3}}},
	{row: 2, limits: t3small, policy: e(1).with(pods(11)), stages: []stage{{1, "3,3", 6, 5}}},
	{row: 3, limits: t3small, policy: e(1).with(pods(11)), stages: []stage{{4, "3,3,3", 9, 5}}},
	{row: 4, limits: t3small, policy: e(1).with(pods(11)), stages: []stage{{9, "3,3,3", 9, 0}}},
	{row: 5, limits: m5large, policy: e(1).with(pods(29)), stages: []stage{{0, "9", 9, 9}}},
	{row: 6, limits: m5large, policy: e(1).with(pods(29)), stages: []stage{{1, "9,9", 18, 17}, {5, "9,9", 18, 13}, {9, "9,9", 18, 9}}},
	{row: 7, limits: m5large, policy: e(1).with(pods(29)), stages: []stage{{10, "9,9,9", 27, 17}, {18, "9,9,9", 27, 9}}},
	{row: 8, limits: m5large, policy: e(1).with(pods(29)), stages: []stage{{27, "9,9,9", 27, 0}}, fails: cause.PoolFull},
	{row: 9, limits: m5x4large, policy: e(1).with(pods(234)), stages: []stage{{0, "29", 29, 29}}},
	{row: 10, limits: m5x4large, policy: e(1).with(pods(234)), stages: []stage{{1, "29,29", 58, 57}, {29, "29,29", 58, 29}}},
	{row: 11, limits: m5x4large, policy: e(1).with(pods(234)), stages: []stage{{30, "29,29,29", 87, 57}, {58, "29,29,29", 87, 29}}},
	{row: 12, limits: m5large, policy: e(0).with(pods(29)), stages: []stage{{8, "9", 9, 1}}},
	{row: 13, limits: m5large, policy: e(0).with(pods(29)), stages: []stage{{9, "9,9", 18, 9}},
		fixes: "13.2.2", theirs: "swings between 1 and 2 ENIs for ever"},
	{row: 14, limits: m5large, policy: e(2).with(pods(29)), stages: []stage{{0, "9,9", 18, 18}, {1, "9,9,9", 27, 26}}},
	{row: 15, limits: m5large, policy: e(1).with(pods(29)).with(maxENI(2)), stages: []stage{{10, "9,9", 18, 8}, {18, "9,9", 18, 0}}, fails: cause.PoolFull},
	{row: 16, limits: t3small, policy: ip(1, 1).with(pods(11)), stages: []stage{{0, "1", 1, 1}, {5, "3,3", 6, 1}, {9, "3,3,3", 9, 0}}},
	{row: 17, limits: t3small, policy: ip(2, 5).with(pods(11)), stages: []stage{{0, "3,2", 5, 5}, {5, "3,3,1", 7, 2}}},
	{row: 18, limits: m5large, policy: ip(2, 12).with(pods(29)), stages: []stage{{0, "9,3", 12, 12}, {5, "9,3", 12, 7}, {10, "9,3", 12, 2}}},
	{row: 19, limits: m5large, policy: ip(2, 12).with(pods(29)), stages: []stage{{12, "9,5", 14, 2}}},
	{row: 20, limits: m5large, policy: ip(5, 0).with(pods(29)), stages: []stage{{0, "5", 5, 5}, {5, "9,1", 10, 5}}},
	{row: 21, limits: m5large, policy: ip(0, 10).with(pods(29)), stages: []stage{{0, "9,1", 10, 10}, {10, "9,2", 11, 1}, {11, "9,3", 12, 1}},
		fixes: "13.1 #12", theirs: "stays at 10 addresses; the 11th pod fails for ever"},
	{row: 22, limits: p3dnLarge, policy: ip(5, 10).with(pods(737)), stages: []stage{{0, "10", 10, 10}, {7, "12", 12, 5}, {45, "49,1", 50, 5}}},
	{row: 23, limits: m5large, policy: prefix(1, 0, 0, 110), stages: []stage{{0, "1", 16, 16}, {1, "2", 32, 31}, {16, "2", 32, 16}, {17, "3", 48, 31}}},
	{row: 24, limits: m5large, policy: prefix(1, 0, 0, 110), stages: []stage{{96, "7", 112, 16}}},
	{row: 25, limits: m5large, policy: prefix(1, 0, 0, 110), stages: []stage{{110, "7", 112, 2}}},
	{row: 26, limits: m5large, policy: prefix(1, 0, 0, 29), stages: []stage{{20, "2", 32, 12}}},
	{row: 27, limits: t3small, policy: prefix(1, 0, 0, 110), stages: []stage{{58, "3,2", 80, 22}}},
	{row: 28, limits: t3small, policy: prefix(0, 7, 20, 110), stages: []stage{{0, "2", 32, 32}, {17, "2", 32, 15}, {58, "3,2", 80, 22}}},
	{row: 29, limits: p3dnLarge, policy: prefix(0, 5, 10, 250), stages: []stage{{15, "2", 32, 17}, {45, "4", 64, 19}}},
	{row: 30, limits: m5large, policy: prefix(0, 16, 0, 110), stages: []stage{{0, "1", 16, 16}, {1, "2", 32, 31}}},
	{row: 31, limits: m5large, policy: e(1).with(custom).with(pods(20)), stages: []stage{{0, "0,9", 9, 9}, {1, "0,9,9", 18, 17}, {18, "0,9,9", 18, 0}}},
	{row: 32, limits: m5large, policy: prefix(1, 0, 0, 110).with(custom), stages: []stage{{0, "0,1", 16, 16}, {17, "0,3", 48, 31}}},
	{row: 33, limits: m5large, policy: e(1).with(trunkSlot).with(pods(29)), stages: []stage{{10, "9,9", 18, 8}}},
	{row: 34, limits: m5large, policy: e(1).with(pods(29)), stages: []stage{{20, "9,9,9", 27, 7}, {0, "9", 9, 9}}},
	{row: 35, limits: m5x4large, policy: e(1).with(pods(234)), stages: []stage{{100, "29,29,29,29,29", 145, 45}, {0, "29", 29, 29}}},
	{row: 36, limits: m5large, policy: ip(2, 5).with(pods(29)), stages: []stage{{20, "9,9,4", 22, 2}, {0, "5", 5, 5}},
		fixes: "13.1 #9", theirs: "1 to 3 ENIs, by chance"},
	{row: 37, limits: t3small, policy: prefix(1, 1, 1, 110), stages: []stage{{58, "3,1", 64, 6}, {5, "1", 16, 11}},
		fixes: "13.2.28", theirs: "the emptied ENI stays: 1,0"},
	{row: 38, limits: m5large, policy: prefix(0, 0, 22, 110), stages: []stage{{32, "3", 48, 16}, {33, "3", 48, 15}},
		fixes: "13.1 #12", theirs: "stays at 2 prefixes; the 33rd pod fails for ever"},
}

func TestPlan_WorkedExamples(t *testing.T) {
	t.Parallel()
	if len(workedExamples) != 38 {
		t.Errorf("%d rows, the reference has 38", len(workedExamples))
	}
	for i, w := range workedExamples {
		if w.row != i+1 {
			t.Errorf("row %d stands at place %d", w.row, i+1)
		}
		if (w.fixes == "") != (w.theirs == "") {
			t.Errorf("row %d: a row that differs says which defect it fixes and what upstream does", w.row)
		}
		t.Run(fmt.Sprint(w.row), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, w.limits, w.policy)
			for _, st := range w.stages {
				n.reach(st)
			}
			n.mustFail(w.fails)
		})
	}
}

// reach adds or ends pods up to the stage, lets the pool settle and compares.
func (n *node) reach(st stage) {
	n.t.Helper()
	n.settle()
	for len(n.pods) < st.pods {
		if !n.add(0) {
			n.t.Fatalf("pod %d gets no address:\n%s", len(n.pods)+1, n.history())
		}
		n.now = n.now.Add(5 * time.Second)
		n.act()
	}
	for len(n.pods) > st.pods {
		n.stop(n.pods[len(n.pods)-1])
	}
	n.settle()
	got := stage{len(n.pods), n.shape(), n.total(), n.total() - len(n.pods)}
	if got != st {
		n.t.Errorf("got %+v, want %+v\n%s", got, st, n.history())
	}
	n.rest()
}

func (n *node) mustFail(want cause.Code) {
	n.t.Helper()
	if want == "" {
		return
	}
	if n.add(0) {
		n.t.Fatalf("pod %d gets an address, it should not", len(n.pods))
	}
	if code, text, blocked := Blocked(n.snapshot(), n.policy, n.now, 0); !blocked || code != want {
		n.t.Errorf("cause %q (%s), %v; want %q", code, text, blocked, want)
	}
}

// The cost table of the capacity reference: the same pools, calculated independently, with
// the number of calls. Columns: type, max-pods, pods, setting, ENIs, total, free, subnet
// addresses, assign calls, new ENIs.
const costTable = `
m5.large 29 0 E=1 1 9 9 10 1 0
m5.large 29 0 E=0 1 9 9 10 1 0
m5.large 29 0 W=1 1 1 1 2 1 0
m5.large 29 0 W=5,M=10 2 10 10 12 1 1
m5.large 110 0 P=1 1 16 16 17 1 0
m5.large 110 0 prefix,W=5 1 16 16 17 1 0
m5.large 29 8 E=1 2 18 10 20 1 1
m5.large 29 8 E=0 1 9 1 10 1 0
m5.large 29 8 W=1 1 9 1 10 9 0
m5.large 29 8 W=5,M=10 2 13 5 15 4 1
m5.large 110 8 P=1 1 32 24 33 2 0
m5.large 110 8 prefix,W=5 1 16 8 17 1 0
m5.large 29 20 E=1 3 27 7 30 1 2
m5.large 29 20 E=0 3 27 7 30 1 2
m5.large 29 20 W=1 3 21 1 24 19 2
m5.large 29 20 W=5,M=10 3 25 5 28 15 2
m5.large 110 20 P=1 1 48 28 49 3 0
m5.large 110 20 prefix,W=5 1 32 12 33 2 0
m5.large 29 27 E=1 3 27 0 30 1 2
m5.large 29 27 E=0 3 27 0 30 1 2
m5.large 29 27 W=1 3 27 0 30 25 2
m5.large 29 27 W=5,M=10 3 27 0 30 17 2
m5.large 110 27 P=1 1 48 21 49 3 0
m5.large 110 27 prefix,W=5 1 32 5 33 2 0
m5.4xlarge 234 8 E=1 2 58 50 60 1 1
m5.4xlarge 234 8 E=0 1 29 21 30 1 0
m5.4xlarge 234 8 W=1 1 9 1 10 9 0
m5.4xlarge 234 8 W=5,M=10 1 13 5 14 4 0
m5.4xlarge 110 8 P=1 1 32 24 33 2 0
m5.4xlarge 110 8 prefix,W=5 1 16 8 17 1 0
m5.4xlarge 234 20 E=1 2 58 38 60 1 1
m5.4xlarge 234 20 E=0 1 29 9 30 1 0
m5.4xlarge 234 20 W=1 1 21 1 22 21 0
m5.4xlarge 234 20 W=5,M=10 1 25 5 26 16 0
m5.4xlarge 110 20 P=1 1 48 28 49 3 0
m5.4xlarge 110 20 prefix,W=5 1 32 12 33 2 0
m5.4xlarge 234 50 E=1 3 87 37 90 1 2
m5.4xlarge 234 50 E=0 2 58 8 60 1 1
m5.4xlarge 234 50 W=1 2 51 1 53 50 1
m5.4xlarge 234 50 W=5,M=10 2 55 5 57 45 1
m5.4xlarge 110 50 P=1 1 80 30 81 5 0
m5.4xlarge 110 50 prefix,W=5 1 64 14 65 4 0
m5.4xlarge 234 100 E=1 5 145 45 150 1 4
m5.4xlarge 234 100 E=0 4 116 16 120 1 3
m5.4xlarge 234 100 W=1 4 101 1 105 98 3
m5.4xlarge 234 100 W=5,M=10 4 105 5 109 93 3
m5.4xlarge 110 100 P=1 1 112 12 113 7 0
m5.4xlarge 110 100 prefix,W=5 1 112 12 113 7 0
m5.24xlarge 737 8 E=1 2 98 90 100 1 1
m5.24xlarge 737 8 E=0 1 49 41 50 1 0
m5.24xlarge 737 8 W=1 1 9 1 10 9 0
m5.24xlarge 737 8 W=5,M=10 1 13 5 14 4 0
m5.24xlarge 250 8 P=1 1 32 24 33 2 0
m5.24xlarge 250 8 prefix,W=5 1 16 8 17 1 0
m5.24xlarge 737 50 E=1 3 147 97 150 1 2
m5.24xlarge 737 50 E=0 2 98 48 100 1 1
m5.24xlarge 737 50 W=1 2 51 1 53 50 1
m5.24xlarge 737 50 W=5,M=10 2 55 5 57 45 1
m5.24xlarge 250 50 P=1 1 80 30 81 5 0
m5.24xlarge 250 50 prefix,W=5 1 64 14 65 4 0
m5.24xlarge 737 100 E=1 4 196 96 200 1 3
m5.24xlarge 737 100 E=0 3 147 47 150 1 2
m5.24xlarge 737 100 W=1 3 101 1 104 99 2
m5.24xlarge 737 100 W=5,M=10 3 105 5 108 94 2
m5.24xlarge 250 100 P=1 1 128 28 129 8 0
m5.24xlarge 250 100 prefix,W=5 1 112 12 113 7 0
`

func TestPlan_CostTable(t *testing.T) {
	t.Parallel()
	types := map[string]Limits{"m5.large": m5large, "m5.4xlarge": m5x4large, "m5.24xlarge": m5x24large}
	settings := map[string]Policy{"E=1": e(1), "E=0": e(0), "W=1": ip(1, 0), "W=5,M=10": ip(5, 10),
		"P=1": prefix(1, 0, 0, 0), "prefix,W=5": prefix(0, 5, 0, 0)}
	rows := strings.Split(strings.TrimSpace(costTable), "\n")
	if len(rows) != 66 {
		t.Errorf("%d rows, the reference has 66", len(rows))
	}
	for _, row := range rows {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			var typ, setting string
			var maxPods, want, enis, total, free, held, assigns, attaches int
			if _, err := fmt.Sscan(row, &typ, &maxPods, &want, &setting, &enis, &total, &free, &held, &assigns, &attaches); err != nil {
				t.Fatal(err)
			}
			n := newNode(t, types[typ], settings[setting].with(pods(maxPods)))
			n.settle()
			for range want {
				if !n.add(0) {
					t.Fatal("no address")
				}
				n.act()
			}
			got := fmt.Sprint(typ, " ", maxPods, len(n.pods), " ", setting, " ", len(n.enis), n.total(), n.total()-len(n.pods),
				n.total()+len(n.enis), n.assigns, n.attaches)
			if got != row {
				t.Errorf("got  %s\nwant %s\n%s", got, row, n.history())
			}
			n.settle()
			n.rest()
		})
	}
}

package capacity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/whatif"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/record"
)

func TestReadArrivals(t *testing.T) {
	t.Parallel()
	const good = `{"at": "2026-01-31T08:00:00Z", "node": "b", "pods": 2}` + "\n"
	got, err := readArrivals(strings.NewReader(good+"\n"+`{"at": "2026-01-31T09:01:00+01:00", "node": null, "pods": -3}`), []string{"a", "b"})
	if diff := cmp.Diff([]whatif.Step{{Node: 1, Pods: 2}, {At: time.Minute, Node: whatif.AnyNode, Pods: -3}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for line, want := range map[string]string{
		`{"at": "2026-01-31", "pods": 1}`:                                         "line 2, field at: \"2026-01-31\" is not an RFC 3339 time",
		`{"pods": 1}`:                                                             "line 2, field at: missing",
		`{"at": "2026-01-31T08:00:00Z"}`:                                          "line 2, field pods: missing",
		`{"at": "2026-01-31T08:00:00Z", "pods": 0}`:                               "line 2, field pods: 0",
		`{"at": "2026-01-31T08:00:00Z", "pods": 1.5}`:                             "line 2, field pods: a number 1.5",
		`{"at": "2026-01-31T08:00:00Z", "pods": 99999999}`:                        "line 2, field pods: 99999999",
		`{"at": "2026-01-31T07:00:00Z", "pods": 1}`:                               "line 2, field at: earlier",
		`{"at": "2026-01-31T08:00:00Z", "node": "c", "pods": 1}`:                  "line 2, field node: no node c",
		`{"at": "2026-01-31T08:00:00Z", "node": 3, "pods": 1}`:                    "line 2, field node: a number",
		`{"at": "2026-01-31T08:00:00Z", "pod": 1}`:                                `line 2: unknown field "pod"`,
		`{"at": "2026-01-31T08:00:00Z", "pods": 1} {}`:                            "line 2: more than one",
		`{"at": "2026-01-31T08:00:00Z"`:                                           "line 2: unexpected EOF",
		`{"at": "2026-01-31T08:00:00Z", "node": "` + strings.Repeat("x", maxLine): "line 2: ",
	} {
		if _, err := readArrivals(strings.NewReader(good+line), []string{"a", "b"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", line, err, want)
		}
	}
	for name, want := range map[string]string{
		"ip-10-0-0-69": "", "ip-10-0-0-69.ec2.internal": "", "ip-10-0-0-2": "line 3, field node: ip-10-0-0-2 matches 2 nodes, such as ip-10-0-0-21.ec2.internal",
		"ip-10-0-1-1": "line 3, field node: no node ip-10-0-1-1 is simulated",
	} {
		line := strings.Replace(good, `"node": "b"`, `"node": "`+name+`"`, 1)
		got, err := readArrivals(strings.NewReader(good+"\n"+line+"\n"+line), []string{"b", "ip-10-0-0-21.ec2.internal", "ip-10-0-0-22.ec2.internal", "ip-10-0-0-69.ec2.internal"})
		if want == "" && (err != nil || got[1].Node != 3 || got[2].Node != 3) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, want)
		}
	}
	if _, err := readArrivals(strings.NewReader("\n"), nil); err == nil {
		t.Error("an empty file is taken")
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	node := func(created time.Duration, pods, adds int) *document.NodeIPAM {
		at := from.Add(created)
		return &document.NodeIPAM{
			Object:  &document.NodeObject{CreatedAt: &at},
			Summary: &introspect.Summary{Cards: []introspect.CardSummary{{Assigned: pods}}, ADDs: &introspect.RequestCounts{Total: adds, Failed: new(0)}},
		}
	}
	samples := []struct {
		after time.Duration
		name  string
		node  *document.NodeIPAM
	}{
		{0, "a", node(-time.Hour, 2, 2)},
		{9 * time.Second, "late", node(-time.Hour, 5, 5)}, // it already existed: the first round takes a while
		{10 * time.Second, "a", &document.NodeIPAM{Error: &document.NodeError{}}},
		{20 * time.Second, "a", node(-time.Hour, 3, 3)},
		{30 * time.Second, "new", node(15*time.Second, 1, 1)},
		{40 * time.Second, "late", nil},
		{50 * time.Second, "late", node(-time.Hour, 1, 1)},
	}
	step := func(after time.Duration, node, pods int) whatif.Step {
		return whatif.Step{At: after, Node: node, Pods: pods}
	}
	const any = whatif.AnyNode
	gone := func(node int) (out []whatif.Step) {
		for _, after := range []time.Duration{15200, 21400, 27600, 33800, 40000} {
			out = append(out, step(after*time.Millisecond, node, -1))
		}
		return out
	}
	for name, x := range map[string]struct {
		tally
		want []whatif.Step
		left int
	}{
		"of the same names": {tally{index: map[string]int{"a": 0, "late": 1}}, slices.Concat([]whatif.Step{step(20*time.Second, 0, 1)}, gone(1), []whatif.Step{step(50*time.Second, 1, 1)}), 1},
		"of any":            {tally{anywhere: true}, slices.Concat([]whatif.Step{step(20*time.Second, any, 1), step(30*time.Second, any, 1)}, gone(any), []whatif.Step{step(50*time.Second, any, 1)}), 0},
	} {
		x.from, x.seen, x.tally.left = from, map[string]whatif.Seen{}, map[string]bool{}
		for _, s := range samples {
			x.take(record.Sample{At: from.Add(s.after), Name: s.name, Node: s.node})
		}
		if diff := cmp.Diff(x.want, x.steps); diff != "" || len(x.tally.left) != x.left {
			t.Errorf("%s: %d left out\n%s", name, len(x.tally.left), diff)
		}
	}
}

package capacity

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/whatif"
)

func TestReadArrivals(t *testing.T) {
	t.Parallel()
	const good = `{"at": "2026-01-31T08:00:00Z", "node": "b", "pods": 2}` + "\n"
	got, err := readArrivals(strings.NewReader(good+"\n"+`{"at": "2026-01-31T09:01:00+01:00", "node": null, "pods": -3}`), []string{"a", "b"})
	if diff := cmp.Diff([]whatif.Step{{Node: 1, Pods: 2}, {At: time.Minute, Node: whatif.AnyNode, Pods: -3}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for line, want := range map[string]string{
		`{"at": "2026-01-31", "pods": 1}`:                                         "line 2, field at: \"2026-01-31\" is no time",
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
	if _, err := readArrivals(strings.NewReader("\n"), nil); err == nil {
		t.Error("an empty file is taken")
	}
}

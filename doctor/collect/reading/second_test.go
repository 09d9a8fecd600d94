package reading

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

// TestContinueLogs: the second log is the first plus newer lines, however the second reading
// folded the older lines.
func TestContinueLogs(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	line := func(s int, msg string) evidence.Line { return evidence.Line{At: at(s), Msg: msg} }
	first := evidence.Log{From: at(0), To: at(20), Lines: []evidence.Line{line(5, "a"), line(10, "b"), line(20, "c")}}
	second := evidence.Log{
		From: at(10), To: at(60), Truncated: true,
		Lines: []evidence.Line{
			{Msg: "of no time"}, line(10, "b"), {At: at(50), Msg: "c", Count: 9, Every: 10 * time.Second}, line(60, "d"),
		},
	}
	want := evidence.Log{
		From: at(0), To: at(60), Truncated: true,
		Lines: []evidence.Line{line(5, "a"), line(10, "b"), line(20, "c"), {At: at(50), Msg: "c", Count: 3, Every: 10 * time.Second}, line(60, "d")},
	}
	a, b := evidence.Unread(at(20), "x"), evidence.Unread(at(60), "x")
	a.LogIPAMD, b.LogIPAMD = evidence.Read(first), evidence.Read(second)
	b.LogPlugin = evidence.Read(second) // missing in the first reading
	restarted := first
	restarted.Previous = &first
	a.LogAWSNode = evidence.Read(map[string]evidence.Log{"aws-node": restarted})
	b.LogAWSNode = evidence.Read(map[string]evidence.Log{"aws-node": {To: at(60), Previous: &second}, "new": second})
	ContinueLogs(a, b)
	for name, got := range map[string]evidence.Log{"log.ipamd": b.LogIPAMD.Content, "previous": *b.LogAWSNode.Content["aws-node"].Previous} {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if d := cmp.Diff(second, b.LogPlugin.Content); d != "" {
		t.Errorf("log.plugin (-want +got):\n%s", d)
	}
	if d := cmp.Diff(first.Lines, b.LogAWSNode.Content["aws-node"].Lines); d != "" {
		t.Errorf("aws-node (-want +got):\n%s", d)
	}
	if b.LogKubelet.Missing != "x" {
		t.Error("a log that was not read is there")
	}
}

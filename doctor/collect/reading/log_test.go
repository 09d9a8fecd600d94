package reading

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

func TestParseLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 11, 59, 30, 123e6, time.UTC)
	whole := at.Truncate(time.Second)
	for _, c := range []struct {
		text string
		want []evidence.Line
	}{
		{`{"level":"warn","ts":"2026-11-21T11:59:30.123Z","caller":"a.go:1","msg":"ADD failed","error":"no \"x\"","n":3}`,
			[]evidence.Line{{At: at, Level: "warn", Msg: `ADD failed error=no "x" n=3`}}},
		{`{"level":"info","ts":"2026-11-21T11:59:30.123Z","msg":"a"}{"level":"error","ts":"2026-11-21T11:59:30.123Z","msg":"b"}`,
			[]evidence.Line{{At: at, Level: "info", Msg: "a"}, {At: at, Level: "error", Msg: "b"}}},
		{`{"level":"info","ts":"2026-11-21T11:59:30.123Z","msg":"cut o{"level":"error","ts":"2026-11-21T11:59:30.123Z","msg":"b"}`,
			[]evidence.Line{{At: at, Level: "info", Msg: `{"level":"info","ts":"2026-11-21T11:59:30.123Z","msg":"cut o`}, {At: at, Level: "error", Msg: "b"}}},
		{`{"level":"info","msg":"it wrote {\"level\":\"error\",\"ts\":\"x\"}"}`, []evidence.Line{{Level: "info", Msg: `it wrote {"level":"error","ts":"x"}`}}},
		{`{"level":"info","ts":1795262370.123,"msg":"a number"}`, []evidence.Line{{At: at, Level: "info", Msg: "a number"}}},
		{"2026-11-21T13:59:30.123456789+02:00 stderr F " + `{"level":"info","msg":"in a container"}`,
			[]evidence.Line{{At: at.Add(456789), Level: "info", Msg: "in a container"}}},
		{`{"log":"{\"level\":\"warn\",\"msg\":\"docker\"}\n","stream":"stdout","time":"2026-11-21T11:59:30.123Z"}`,
			[]evidence.Line{{At: at, Level: "warn", Msg: "docker"}}},
		{`2026-11-21T12:00:00Z stdout F time="2026-11-21T11:59:30Z" level=warning msg="Unset \"X\"" who=a`,
			[]evidence.Line{{At: whole, Level: "warn", Msg: `Unset "X" who=a`}}},
		{`time="2026-11-21T11:59:30Z" level=info msg=plain`, []evidence.Line{{At: whole, Level: "info", Msg: "plain"}}},
		{`Nov 21 11:59:31 ip-10-0-0-1.ec2.internal kubelet[3412]: E1121 11:59:30.123000    3412 pod_workers.go:1300] "Error syncing pod, skipping" err="plugin \"aws-cni\" failed"`,
			[]evidence.Line{{At: at, Level: "error", Msg: `"Error syncing pod, skipping" err="plugin "aws-cni" failed"`}}},
		{`2026-11-21T11:59:30.123000+0000 ip-10-0-0-1 kubelet[3412]: I1121 11:59:30.123000    3412 x.go:1] fine`,
			[]evidence.Line{{At: at, Level: "info", Msg: "fine"}}},
		{`Dec 31 23:59:59 ip-10-0-0-1 systemd[1]: Started kubelet.`,
			[]evidence.Line{{At: time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC), Msg: "Started kubelet."}}},
		{"2026-11-21T11:59:30Z starting the daemon: now", []evidence.Line{{At: whole, Msg: "starting the daemon: now"}}},
		{"panic: boom\xff", []evidence.Line{{Msg: "panic: boom\uFFFD"}}},
		{"   ", nil},
		{"", nil},
		{"{", []evidence.Line{{Msg: "{"}}},
		{`{"ts":`, []evidence.Line{{Msg: `{"ts":`}}},
	} {
		if diff := cmp.Diff(c.want, ParseLine(c.text, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestLogOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ipamd.log": "log.ipamd", "ipamd-2026-11-20T01-02-03.456.log": "log.ipamd", "ipamd-2026-11-20T01-02-03.456.log.gz": "log.ipamd",
		"ipamd.log.1": "log.ipamd", "plugin.log": "log.plugin", "egress-v6-plugin.log": "log.plugin", "network-policy-agent.log": "log.np",
		"plugin": "", "ipamd-other.log": "", "x.log": "", "ebpf-sdk.log": "",
	} {
		if got := LogOf(name); got != want {
			t.Errorf("LogOf(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRotatedAt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ipamd-2026-11-20T01-02-03.456.log.gz": "2026-11-20T01:02:03Z", "0.log.20261120-010203": "2026-11-20T01:02:03Z", "3.log.20261120-010203.gz": "2026-11-20T01:02:03Z",
		"ipamd.log": "", "ipamd.log.1": "", "ipamd.log-20261120.gz": "", "ipamd-2026-13-20T01-02-03.456.log": "",
	} {
		at := RotatedAt(name)
		if got := at.Format(time.RFC3339); got != want && (want != "" || !at.IsZero()) {
			t.Errorf("RotatedAt(%q) = %s, want %q", name, got, want)
		}
	}
}

func object(level string, at time.Time, msg string) string {
	return fmt.Sprintf(`{"level":%q,"ts":%q,"caller":"a.go:1","msg":%q}`+"\n", level, at.Format("2006-01-02T15:04:05.000Z"), msg)
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100 { // identical but for numbers and IDs
		text.WriteString(object("error", ago(3*time.Hour-time.Duration(i)*time.Minute), fmt.Sprintf("Failed to free eni-%017x with 10.0.0.%d of default/web-%05x-bcdfg", i, i, i)))
	}
	text.WriteString(object("info", ago(20*time.Minute), "once"))
	text.WriteString("goroutine 1 [running]:\n\r\n\n")
	for i := range 5 { // identical
		text.WriteString(object("warn", ago(time.Minute-time.Duration(i)*10*time.Second), "again"))
	}
	for i := range 3 { // recent and different
		text.WriteString(object("info", ago(0), fmt.Sprintf("total IPs: %d", i)))
	}
	want := evidence.Log{From: ago(3 * time.Hour), To: noon, Lines: []evidence.Line{
		{At: ago(81 * time.Minute), Level: "error", Msg: "Failed to free eni-00000000000000063 with 10.0.0.99 of default/web-00063-bcdfg", Count: 100, Every: time.Minute},
		{At: ago(20 * time.Minute), Level: "info", Msg: "once"},
		{At: ago(20 * time.Minute), Msg: "goroutine 1 [running]:"},
		{At: ago(20 * time.Second), Level: "warn", Msg: "again", Count: 5, Every: 10 * time.Second},
		{At: noon, Level: "info", Msg: "total IPs: 0"},
		{At: noon, Level: "info", Msg: "total IPs: 1"},
		{At: noon, Level: "info", Msg: "total IPs: 2"},
	}}
	for name, now := range map[string]time.Time{"now is given": noon, "the newest line decides": {}} {
		got, err := ReadLog(iotest.OneByteReader(strings.NewReader(text.String())), now)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestRotated: files may come in any order.
func TestRotated(t *testing.T) {
	t.Parallel()
	files := []string{
		object("info", ago(time.Hour), "old 1") + object("error", ago(10*time.Minute), "recent a"),
		object("info", ago(9*time.Minute), "recent b") + object("info", ago(time.Minute), "recent c"),
	}
	read := func(order ...int) evidence.Log {
		l := NewLogReader(noon)
		for _, i := range order {
			if err := l.Read(strings.NewReader(files[i])); err != nil {
				t.Fatal(err)
			}
		}
		return l.Log()
	}
	want := read(0, 1)
	if len(want.Lines) != 4 || want.From != ago(time.Hour) || want.Truncated {
		t.Errorf("read %+v", want)
	}
	if diff := cmp.Diff(want, read(1, 0)); diff != "" {
		t.Errorf("order of the files matters (-oldest first +newest first):\n%s", diff)
	}
}

// TestPartial: container runtimes split long lines.
func TestPartial(t *testing.T) {
	t.Parallel()
	text := `2026-11-21T11:00:00Z stdout P {"level":"error","msg":"one ` + "\n" + `2026-11-21T11:00:00Z stdout F message"}` + "\n"
	log, err := ReadLog(strings.NewReader(text), noon)
	want := []evidence.Line{{At: ago(time.Hour), Level: "error", Msg: "one message"}}
	if diff := cmp.Diff(want, log.Lines); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestTooMuch: important lines stay, whether old or recent, and the log shows that it was
// truncated.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"old": time.Hour, "recent": time.Minute} {
		var text strings.Builder
		text.WriteString(object("error", ago(age), "matters"))
		text.WriteString(object("info", ago(age), "AWS CNI is on a non schedulable node, not reconciling"))
		for i := range 40_000 {
			text.WriteString(object("info", ago(age), "chatter "+letters(i)))
		}
		log, err := ReadLog(strings.NewReader(text.String()), noon)
		if err != nil || !log.Truncated || len(log.Lines) != mostLines {
			t.Fatalf("%s: %d lines, truncated %v, %v", name, len(log.Lines), log.Truncated, err)
		}
		found := 0
		for _, l := range log.Lines {
			if l.Msg == "matters" || strings.Contains(l.Msg, "non schedulable") {
				found++
			}
		}
		if found != 2 {
			t.Errorf("%s: %d of the two lines that matter are left", name, found)
		}
	}
}

// letters spells a number in letters, differently for each number.
func letters(n int) string {
	var b strings.Builder
	for ; n > 0; n /= 10 {
		b.WriteString([...]string{"zulu", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}[n%10])
	}
	return b.String()
}

// TestLongLine: a long line is cut, and the next one is read.
func TestLongLine(t *testing.T) {
	t.Parallel()
	text := object("info", noon, strings.Repeat("x", 1<<20)) + object("info", noon, "after") + strings.Repeat("y", 3*mostLine)
	log, err := ReadLog(strings.NewReader(text), noon)
	if err != nil || !log.Truncated || len(log.Lines) != 3 {
		t.Fatalf("%d lines, truncated %v, %v", len(log.Lines), log.Truncated, err)
	}
	if l := log.Lines[0]; len(l.Msg) != mostLine || l.Level != "info" || !l.At.Equal(noon) {
		t.Errorf("the long line has %d bytes, level %q, at %v", len(l.Msg), l.Level, l.At)
	}
	if log.Lines[1].Msg != "after" || len(log.Lines[2].Msg) != mostLine {
		t.Errorf("after it: %.20q, %.20q", log.Lines[1].Msg, log.Lines[2].Msg)
	}
}

func TestBrokenReader(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	log, err := ReadLog(io.MultiReader(strings.NewReader(object("info", noon, "kept")), iotest.ErrReader(broken)), noon)
	if !errors.Is(err, broken) || len(log.Lines) != 1 || !log.Truncated {
		t.Errorf("read %+v, %v", log, err)
	}
}

// stream is a log of a given size that covers a day up to noon, like that of a busy daemon.
type stream struct {
	left int
	n    int
	buf  bytes.Buffer
	peak uint64 // of the heap during reading
}

func (s *stream) Read(b []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	if s.buf.Len() == 0 {
		for range 1000 {
			s.n++
			at := noon.Add(-24*time.Hour + time.Duration(s.n)*10*time.Millisecond)
			switch pod := s.n / 20; s.n % 20 {
			case 0:
				s.buf.WriteString(object("info", at, fmt.Sprintf("Received AddNetwork for NS default, Sandbox %064x, ifname eth0", pod)))
			case 1:
				s.buf.WriteString(object("error", at, fmt.Sprintf("Failed to allocate a private IP/Prefix addresses on ENI eni-%017x: PrivateIpAddressLimitExceeded", pod)))
			case 2:
				s.buf.WriteString(object("debug", at, fmt.Sprintf("pod %s-%s of %s", letters(pod), letters(pod*7), letters(pod%50))))
			default:
				s.buf.WriteString(object("debug", at, fmt.Sprintf("IP stats for Network Card 0 - total IPs: %d, assigned IPs: %d, cooldown IPs: %d", s.n%29, s.n%17, s.n%5)))
			}
		}
	}
	n, _ := s.buf.Read(b[:min(len(b), s.left)])
	s.left -= n
	if s.n%50_000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.peak = max(s.peak, m.HeapAlloc)
	}
	return n, nil
}

// TestMemory reads a log with many different lines.
func TestMemory(t *testing.T) {
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := &stream{left: 40 << 20}
	log, err := ReadLog(s, time.Time{})
	if err != nil || len(log.Lines) != mostLines {
		t.Fatalf("%d lines, %v", len(log.Lines), err)
	}
	if grown := int64(s.peak) - int64(before.HeapAlloc); grown > 50<<20 {
		t.Errorf("reading took %d MiB of memory", grown>>20)
	}
}

func BenchmarkReadLog(b *testing.B) {
	const size = 64 << 20
	b.SetBytes(size)
	var all bytes.Buffer
	if _, err := io.Copy(&all, &stream{left: size}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ReadLog(bytes.NewReader(all.Bytes()), noon); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzReadLog: any log is read to its end, within bounds, and the times of its lines are in
// order and within From and To.
func FuzzReadLog(f *testing.F) {
	f.Add(object("info", noon, "a")+object("warn", ago(time.Hour), "b"), true)
	f.Add("2026-11-21T11:00:00Z stdout P {\"level\":\"error\",\n2026-11-21T11:00:00Z stdout F \"msg\":1}{\"level\":", false)
	f.Add("Nov 21 11:59:31 h kubelet[1]: E1121 11:59:30.123000 1 a.go:1] x\ntime=\"2026-11-21T11:59:30Z\" level=info msg=\"\\", true)
	f.Add("{\"log\":\"time=\\\"2026-11-21T11:59:30Z\\\" msg=x\\n\",\"time\":\"2026-11-21T11:59:30Z\"}\n{\"ts\":1e9}\n{\"level\":\"\",\"ts\":\"", false)
	f.Fuzz(func(t *testing.T, text string, known bool) {
		now := noon
		if !known {
			now = time.Time{}
		}
		log, err := ReadLog(strings.NewReader(text), now)
		if err != nil {
			t.Fatal(err)
		}
		if len(log.Lines) > mostLines {
			t.Fatalf("%d lines", len(log.Lines))
		}
		var last time.Time
		for _, l := range log.Lines {
			if l.At.Before(last) || !l.At.IsZero() && (l.At.Before(log.From) || l.At.After(log.To)) || l.Count < 0 || l.Every < 0 {
				t.Fatalf("line %+v of a log from %v to %v", l, log.From, log.To)
			}
			last = l.At
		}
		if again, _ := ReadLog(strings.NewReader(text), now); !cmp.Equal(log, again) {
			t.Fatal("read twice, it is not the same")
		}
	})
}

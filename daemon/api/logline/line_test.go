package logline

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAppend_AsRecorded(t *testing.T) {
	t.Parallel()
	var data []byte
	for _, name := range []string{"testdata/recorded.log", "testdata/ipamd.log"} {
		more, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, more...)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if len(lines) < 300 {
		t.Fatalf("%d recorded lines", len(lines))
	}
	for _, line := range lines[:len(lines)-1] {
		var in struct{ Level, TS, Caller, Msg string }
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		level, ok := ParseLevel(in.Level)
		if !ok {
			t.Fatalf("%s: level", line)
		}
		at, err := time.Parse(timeFormat, in.TS)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(End(Append(nil, level, at, in.Caller, in.Msg))); got != line {
			t.Errorf("encoded %swant    %s", got, line)
		}
	}
}

func TestAppend_Members(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 21, 11, 14, 3, 123999999, time.FixedZone("CEST", 7200))
	b := Append([]byte("> "), Warn, at, "", "say \"hi\" <&>\n\x01\xff")
	b = AppendString(b, KeyENI, "eni-1")
	b = AppendInt(b, KeyCount, -3)
	b = AppendUint(b, KeyMTU, 9001)
	b = AppendBool(b, "ok", true)
	b = AppendDuration(b, KeyDuration, 1500*time.Millisecond)
	b = AppendTime(b, KeyUntil, at.UTC())
	b = AppendJSON(b, KeyCIDRs, []byte(`["10.0.0.0/16"]`))
	b = AppendString(b, "odd\"key", "")
	want := `> {"level":"warn","ts":"2026-08-21T11:14:03.123+0200","msg":"say \"hi\" <&>\n\u0001\ufffd",` +
		`"eni_id":"eni-1","count":-3,"mtu":9001,"ok":true,"duration":"1.5s","until":"2026-08-21T09:14:03.123Z",` +
		`"cidrs":["10.0.0.0/16"],"odd\"key":""}` + "\n"
	if got := string(End(b)); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestParseLevel(t *testing.T) {
	t.Parallel()
	rows := []struct {
		text string
		want Level
		ok   bool
	}{
		{"debug", Debug, true}, {"INFO", Info, true}, {"Warn", Warn, true}, {"error", Error, true}, {"FATAL", Fatal, true},
		{"", Debug, false}, {"warning", Debug, false}, {"info ", Debug, false},
	}
	for _, row := range rows {
		if got, ok := ParseLevel(row.text); got != row.want || ok != row.ok {
			t.Errorf("%q: %v, %v", row.text, got, ok)
		}
	}
	if got := Level(9).String(); got != "level(9)" {
		t.Errorf("unknown level is %q", got)
	}
}

func TestAppendCaller(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"/src/cnictl/daemon/ipamd/loop.go": "ipamd/loop.go:81",
		"cnictl/daemon/ipamd/loop.go":      "ipamd/loop.go:81",
		"ipamd/loop.go":                    "ipamd/loop.go:81",
		"/loop.go":                         "/loop.go:81",
		"loop.go":                          "loop.go:81",
		"":                                 ":81",
	} {
		if got := string(AppendCaller(nil, file, 81)); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

func TestAppend_AllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 512)
	at := time.Date(2026, 8, 21, 9, 14, 3, 0, time.UTC)
	if n := testing.AllocsPerRun(100, func() {
		buf = End(AppendInt(AppendString(Append(buf[:0], Info, at, "vpc/add.go:10", "pod wired"), KeyPod, "web-0"), KeyRouteTable, 254))
	}); n != 0 {
		t.Errorf("%v allocations per line", n)
	}
}

func BenchmarkLine(b *testing.B) {
	buf := make([]byte, 0, 512)
	at := time.Date(2026, 8, 21, 9, 14, 3, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		buf = End(AppendInt(AppendString(Append(buf[:0], Info, at, "vpc/add.go:10", "pod wired"), KeyPod, "web-0"), KeyRouteTable, 254))
	}
}

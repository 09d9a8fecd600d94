package logging

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/logfile"
)

var logClock = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)

// entry is line n of a log: one per second, with alternating levels.
func entry(n int, msg string) string {
	level := []logline.Level{logline.Debug, logline.Info, logline.Warn, logline.Error}[n%4]
	return string(logline.End(logline.AppendInt(logline.Append(nil, level, logClock.Add(time.Duration(n)*time.Second), "ipamd/run.go:1", msg), "count", int64(n))))
}

func entries(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(entry(n, "line"))
	}
	return b.String()
}

// numbers returns the numbers of the lines.
func numbers(lines []string) string {
	var out []string
	for _, l := range lines {
		_, n, _ := strings.Cut(strings.TrimSuffix(l, "}"), `"count":`)
		out = append(out, n)
	}
	return strings.Join(out, " ")
}

func TestChoose(t *testing.T) {
	t.Parallel()
	text := entries(0, 8)
	for name, row := range map[string]struct {
		text  string
		whole bool
		q     introspect.LogQuery
		want  string
		all   bool
	}{
		"all":                      {text, true, introspect.LogQuery{Lines: 100}, "0 1 2 3 4 5 6 7", true},
		"exactly all":              {text, true, introspect.LogQuery{Lines: 8}, "0 1 2 3 4 5 6 7", true},
		"newest":                   {text, true, introspect.LogQuery{Lines: 3}, "5 6 7", false},
		"at least one":             {text, true, introspect.LogQuery{}, "7", false},
		"warn and above":           {text, true, introspect.LogQuery{Lines: 9, Level: "warn"}, "2 3 6 7", true},
		"debug is all":             {text, true, introspect.LogQuery{Lines: 9, Level: "debug"}, "0 1 2 3 4 5 6 7", true},
		"since":                    {text, true, introspect.LogQuery{Lines: 9, Since: logClock.Add(6 * time.Second)}, "6 7", true},
		"since, half a file":       {text, false, introspect.LogQuery{Lines: 9, Since: logClock.Add(6 * time.Second)}, "6 7", true},
		"match":                    {text, true, introspect.LogQuery{Lines: 9, Match: `:5}`}, "5", true},
		"match of none":            {text, true, introspect.LogQuery{Lines: 9, Match: "nowhere"}, "", true},
		"half a file":              {text, false, introspect.LogQuery{Lines: 9}, "1 2 3 4 5 6 7", false},
		"a line without its end":   {text + `{"level":"info"`, true, introspect.LogQuery{Lines: 2}, "6 7", false},
		"text of a library":        {"E1121 klog\n" + text, true, introspect.LogQuery{Lines: 9, Level: "error"}, "3 7", true},
		"text of a library, since": {text + "E1121 klog \"count\":x\n", true, introspect.LogQuery{Lines: 9, Since: logClock.Add(7 * time.Second)}, "7 x", true},
		"empty":                    {"", true, introspect.LogQuery{Lines: 9}, "", true},
		"only an end":              {"\n", true, introspect.LogQuery{Lines: 9}, "", true},
	} {
		lines, all := choose(ending{text: []byte(row.text), cut: !row.whole}, row.q)
		if got := numbers(lines); got != row.want || all != row.all {
			t.Errorf("%s: %q %t, want %q %t", name, got, all, row.want, row.all)
		}
	}
}

func TestChoose_Bounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(entry(1, strings.Repeat("é", maxLine)), 40)
	lines, all := choose(ending{text: []byte(long)}, introspect.LogQuery{Lines: 1000})
	size := 0
	for _, l := range lines {
		size += len(l)
		if len(l) > maxLine+len("…") || !strings.HasSuffix(l, "…") {
			t.Errorf("a line of %d bytes", len(l))
		}
	}
	if all || size > introspect.MaxLogBytes || len(lines) != introspect.MaxLogBytes/(maxLine+4) {
		t.Errorf("%d lines of %d bytes, all %t", len(lines), size, all)
	}
	if lines, _ := choose(ending{text: []byte(entries(0, 2000))}, introspect.LogQuery{Lines: 5000}); len(lines) != introspect.MaxLogLines {
		t.Errorf("%d lines", len(lines))
	}
}

// TestChoose_NoOracle: matches inside scrubbed text reveal nothing.
func TestChoose_NoOracle(t *testing.T) {
	t.Parallel()
	text := entry(1, "sandbox "+aSandbox) + entry(2, "token: X-aws-ec2-metadata-token: "+aToken)
	for _, guess := range []string{aSandbox[:8], aToken[:3], aSandbox} {
		if lines, _ := choose(ending{text: []byte(text)}, introspect.LogQuery{Lines: 9, Match: guess}); len(lines) > 0 {
			t.Errorf("%s: %v", guess, lines)
		}
	}
	lines, _ := choose(ending{text: []byte(text)}, introspect.LogQuery{Lines: 9})
	if got := strings.Join(lines, "\n"); strings.Contains(got, aSandbox) || strings.Contains(got, aToken) || len(lines) != 2 {
		t.Errorf("%s", got)
	}
}

func tail(t *testing.T, path string, q introspect.LogQuery) introspect.NodeLogs {
	t.Helper()
	doc, err := Tail(t.Context(), path, q)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestTail_OverRotation rotates the file as on a node.
func TestTail_OverRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipamd.log")
	f, err := openFile(path, 1<<20, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	write := func(from, to int) {
		if _, err := f.Write([]byte(entries(from, to))); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, truncated bool) {
		t.Helper()
		doc := tail(t, path, introspect.LogQuery{Lines: 4})
		if got := numbers(doc.Lines); got != want || doc.Path != path || doc.Truncated != truncated {
			t.Errorf("%q of %s truncated %t, want %q", got, doc.Path, doc.Truncated, want)
		}
	}
	write(0, 3)
	check("0 1 2", false)
	write(3, 6)
	check("2 3 4 5", true)
	if err := f.rotate(); err != nil {
		t.Fatal(err)
	}
	check("2 3 4 5", true)
	write(6, 8)
	check("4 5 6 7", true)
}

func TestTail_CompressedBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ipamd.log")
	put := func(name, text string, packed bool) {
		data := []byte(text)
		if packed {
			var b bytes.Buffer
			zw := gzip.NewWriter(&b)
			if _, err := zw.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := zw.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("ipamd.log", entries(8, 10), false)
	put("ipamd-2026-11-21T10-00-00.000.log.gz", entries(0, 4), true)
	put("ipamd-2026-11-21T12-00-00.000.log.gz", entries(4, 8), true)
	put("ipamd-notes.txt", "no log", false)
	if got := numbers(tail(t, path, introspect.LogQuery{Lines: 5}).Lines); got != "5 6 7 8 9" {
		t.Errorf("%s", got)
	}
	// During compression both exist.
	put("ipamd-2026-11-21T12-00-00.000.log.gz", "half", false)
	put("ipamd-2026-11-21T12-00-00.000.log", entries(4, 8), false)
	doc := tail(t, path, introspect.LogQuery{Lines: 50})
	if got := numbers(doc.Lines); got != "4 5 6 7 8 9" || !doc.Truncated {
		t.Errorf("%s %t", got, doc.Truncated)
	}
	// A broken one is an error, and not ignored.
	if err := os.Remove(filepath.Join(dir, "ipamd-2026-11-21T12-00-00.000.log")); err != nil {
		t.Fatal(err)
	}
	if _, err := Tail(t.Context(), path, introspect.LogQuery{Lines: 5}); err == nil {
		t.Error("no error")
	}
}

func TestTail_LargeBackup(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	const most = 64 << 10
	lines := 5000
	for n := range lines {
		fmt.Fprint(zw, entry(n, "line"))
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "x.log.gz"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := logfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	end, err := readBackup(t.Context(), dir, "x.log.gz", most)
	if err != nil || !end.cut || len(end.text) != most || !strings.HasSuffix(string(end.text), entry(lines-1, "line")) {
		t.Errorf("%d bytes, cut %t, %v", len(end.text), end.cut, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readBackup(gone, dir, "x.log.gz", most); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTail_NoFile(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"stdout", "STDERR", filepath.Join(t.TempDir(), "none.log")} {
		_, err := Tail(t.Context(), setting, introspect.LogQuery{Lines: 1})
		if !errors.Is(err, introspect.ErrNoLogFile) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	if _, err := Tail(t.Context(), t.TempDir(), introspect.LogQuery{Lines: 1}); err == nil || errors.Is(err, introspect.ErrNoLogFile) {
		t.Errorf("a directory: %v", err)
	}
	if File("") != DefaultPath || File("/x") != "/x" {
		t.Error("File")
	}
}

// recordedLogs are the beginnings of upstream's two logs.
func recordedLogs(tb testing.TB) (logs [][]byte) {
	tb.Helper()
	for _, name := range []string{"ipamd.log", "plugin.log"} {
		log, err := os.ReadFile(filepath.Join("testdata", "recorded", name))
		if err != nil {
			tb.Fatal(err)
		}
		logs = append(logs, log)
	}
	return logs
}

// TestChoose_Recorded: every line of upstream's logs can be parsed, and reveals no sandbox
// ID.
func TestChoose_Recorded(t *testing.T) {
	t.Parallel()
	id := regexp.MustCompile(`[0-9a-f]{64}`)
	for _, log := range recordedLogs(t) {
		lines, all := choose(ending{text: log}, introspect.LogQuery{Lines: introspect.MaxLogLines})
		if !all || len(lines) != bytes.Count(log, []byte("\n")) {
			t.Errorf("%d of %d lines, all: %t", len(lines), bytes.Count(log, []byte("\n")), all)
		}
		for _, line := range lines {
			if id.MatchString(line) {
				t.Errorf("a sandbox id in %s", line)
			}
		}
	}
	if !id.Match(recordedLogs(t)[1]) {
		t.Error("no sandbox id was recorded")
	}
}

func FuzzChoose(f *testing.F) {
	f.Add([]byte(entries(0, 3)), true, 2, "info", "line")
	f.Add([]byte("\n\n{\"level\":\"warn\",\"ts\":\"x\n"), false, 0, "", "")
	for _, log := range recordedLogs(f) {
		f.Add(log, true, 20, "debug", "")
		f.Add(log[len(log)/3:], false, 1000, "info", "ENI")
	}
	f.Fuzz(func(t *testing.T, end []byte, whole bool, n int, level, match string) {
		q := introspect.LogQuery{Lines: n, Level: level, Match: match}
		lines, _ := choose(ending{text: end, cut: !whole, more: !whole}, q)
		q.Since = logClock
		if late, _ := choose(ending{text: end, cut: !whole, more: !whole}, q); len(late) > len(lines) {
			t.Fatalf("%d lines since a time, %d without", len(late), len(lines))
		}
		if len(lines) > introspect.MaxLogLines || len(lines) > max(n, 1) {
			t.Fatalf("%d lines for %d", len(lines), n)
		}
		size := 0
		for _, l := range lines {
			if size += len(l); !strings.Contains(l, match) {
				t.Fatalf("%q does not hold %q", l, match)
			}
		}
		if size > introspect.MaxLogBytes {
			t.Fatalf("%d bytes", size)
		}
	})
}

// BenchmarkChoose_RareMatch searches as much as a query may search.
func BenchmarkChoose_RareMatch(b *testing.B) {
	text := []byte(strings.Repeat(entry(1, "address assigned"), maxScan/len(entry(1, "address assigned"))))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		choose(ending{text: text}, introspect.LogQuery{Lines: 1000, Level: "info", Match: "nowhere", Since: logClock})
	}
}

// BenchmarkChoose_Lines scrubs as many lines as an answer may hold.
func BenchmarkChoose_Lines(b *testing.B) {
	text := []byte(entries(0, 5000))
	for b.Loop() {
		choose(ending{text: text}, introspect.LogQuery{Lines: 1000})
	}
}

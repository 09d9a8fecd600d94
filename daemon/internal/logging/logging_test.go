package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
)

func TestHandler_Line(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(NewHandler(&out, slog.LevelDebug)).With("eni_id", "eni-1").WithGroup("ec2").With("attempt", 2)
	log.Warn("ENI not deleted <yet>",
		"error", fmt.Errorf("delete ENI eni-1: %w", errors.New("in use")),
		"duration", 1500*time.Millisecond, "ip", netip.MustParseAddr("10.0.0.1"),
		slog.Group("retry", "again", true, "count", uint(3)),
		"cidrs", []string{"10.0.0.0/16"}, "until", time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC),
		"odd", make(chan int), slog.Attr{}) //nolint:sloglint // an empty attribute must be left out
	line := out.String()
	want := regexp.MustCompile(`^\{"level":"warn","ts":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})","caller":"logging/logging_test\.go:\d+","msg":"ENI not deleted <yet>",` +
		`"eni_id":"eni-1","ec2\.attempt":2,"ec2\.error":"delete ENI eni-1: in use","ec2\.duration":"1\.5s","ec2\.ip":"10\.0\.0\.1",` +
		`"ec2\.retry\.again":true,"ec2\.retry\.count":3,"ec2\.cidrs":\["10\.0\.0\.0/16"\],"ec2\.until":"2026-08-21T09:00:00\.000Z","ec2\.odd":"0x[0-9a-f]+"\}` + "\n$")
	if !want.MatchString(line) {
		t.Errorf("line %s", line)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("not JSON")
	}
}

// TestHandler_Contract runs the standard library's checks. It unfolds groups, which we write
// as dotted names. One rule differs on purpose: "ts" is always there.
func TestHandler_Contract(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	results := func() []map[string]any {
		var all []map[string]any
		for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var flat map[string]any
			if err := json.Unmarshal(line, &flat); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, unfold(flat))
		}
		return all
	}
	err := slogtest.TestHandler(NewHandler(&out, slog.LevelDebug), results)
	if err != nil && !onlyZeroTime(err) {
		t.Error(err)
	}
}

func unfold(flat map[string]any) map[string]any {
	deep := map[string]any{}
	for key, value := range flat {
		at := deep
		names := strings.Split(key, ".")
		for _, group := range names[:len(names)-1] {
			inner, ok := at[group].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[group] = inner
			}
			at = inner
		}
		at[names[len(names)-1]] = value
	}
	if ts, ok := deep["ts"]; ok {
		deep[slog.TimeKey] = ts
	}
	return deep
}

func onlyZeroTime(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return strings.Contains(err.Error(), "zero Record.Time")
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !onlyZeroTime(e) })
}

func TestHandler_Levels(t *testing.T) {
	t.Parallel()
	rows := []struct{ level, want string }{
		{"debug", "debug info warn error fatal"},
		{"INFO", "info warn error fatal"},
		{"warn", "warn error fatal"},
		{"error", "error fatal"},
		{"fatal", "fatal"},
		{"", "debug info warn error fatal"},
		{"verbose", "debug info warn error fatal"},
	}
	for _, row := range rows {
		path := filepath.Join(t.TempDir(), "ipamd.log")
		log, closer, err := Open(Options{Path: path, Level: row.level})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, LevelFatal} {
			log.Log(t.Context(), l, "message")
		}
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			var in struct{ Level string }
			if err := json.Unmarshal([]byte(line), &in); err != nil {
				t.Fatal(err)
			}
			got = append(got, in.Level)
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("level %q: %v, want %s", row.level, got, row.want)
		}
	}
}

func TestHandler_Parallel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := NewHandler(&out, slog.LevelInfo)
	var all sync.WaitGroup
	for i := range 8 {
		log := slog.New(h).With("count", i)
		all.Go(func() {
			for range 100 {
				log.Info("one line at a time", "pod", "web")
			}
		})
	}
	all.Wait()
	lines := 0
	for line := range strings.Lines(out.String()) {
		lines++
		if !json.Valid([]byte(line)) {
			t.Fatalf("torn line %s", line)
		}
	}
	if lines != 800 {
		t.Errorf("%d lines", lines)
	}
}

func TestOpen_CreatesDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log", "aws-routed-eni", "ipamd.log")
	log, closer, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("not created at once: %v", err)
	}
	log.Info("hello")
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	again, closer, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	again.Info("again")
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || strings.Count(string(data), "\n") != 2 {
		t.Errorf("%s, %v", data, err)
	}
}

func TestOpen_Unwritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, "ipamd.log")
	if _, _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
}

func TestOpen_Streams(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]*os.File{"stdout": os.Stdout, "STDERR": os.Stderr} {
		log, closer, err := Open(Options{Path: path, Level: "error"})
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := log.Handler().(*Handler); !ok || h.out.queue.file != want {
			t.Errorf("%s: writes elsewhere", path)
		}
		if log.Enabled(t.Context(), slog.LevelInfo) {
			t.Errorf("%s: info is on at level error", path)
		}
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
		if _, err := want.Stat(); err != nil {
			t.Errorf("%s was closed: %v", path, err)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	log := slog.New(NewHandler(discard{}, slog.LevelInfo))
	b.ReportAllocs()
	for b.Loop() {
		log.Info("address assigned", slog.String("ip", "10.0.0.1"), slog.String("pod", "web-0"), slog.Int("network_card", 0))
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

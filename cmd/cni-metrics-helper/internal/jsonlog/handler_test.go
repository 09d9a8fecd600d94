package jsonlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := New(&b, "DEBUG").With("pod", "a").WithGroup("ignored")
	log.WarnContext(t.Context(), "Some \"text\"", "count", 3, "total", uint64(4), "duration", 1500*time.Millisecond, "ok", true, "until", time.Unix(0, 0), "error", errors.New("it\nbroke"), "value", 1.5)
	var in map[string]any
	if err := json.Unmarshal(b.Bytes(), &in); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, b.String())
	}
	want := map[string]any{"level": "warn", "msg": `Some "text"`, "pod": "a", "count": 3.0, "total": 4.0, "duration": "1.5s", "ok": true, "error": "it\nbroke", "value": "1.5"}
	for k, v := range want {
		if in[k] != v {
			t.Errorf("%s is %v, want %v", k, in[k], v)
		}
	}
	if caller, _ := in["caller"].(string); !strings.HasPrefix(caller, "jsonlog/handler_test.go:") {
		t.Errorf("caller %v", in["caller"])
	}
	if !strings.HasPrefix(b.String(), `{"level":"warn","ts":"`) {
		t.Errorf("the order of members: %s", b.String())
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"debug": 5, "INFO": 4, "warn": 3, "error": 2, "fatal": 1, "nonsense": 5, "": 5} {
		var b bytes.Buffer
		log := New(&b, level)
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, LevelFatal} {
			log.Log(t.Context(), l, "x")
		}
		if got := strings.Count(b.String(), "\n"); got != want {
			t.Errorf("%q: %d lines, want %d", level, got, want)
		}
	}
}

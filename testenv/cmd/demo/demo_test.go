package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReport_CountsFailures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &report{out: &out, begin: time.Now()}
	r.step("add", nil, "pod %d", 1)
	r.step("ping", errors.New("no answer"), "pod %d", 2)
	if steps, failed := r.counts(); steps != 2 || failed != 1 {
		t.Errorf("counts = %d, %d", steps, failed)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[0], "ok    add") || !strings.HasSuffix(lines[0], "pod 1") {
		t.Errorf("line: %q", lines[0])
	}
	if !strings.Contains(lines[1], "FAIL  ping") || !strings.HasSuffix(lines[1], "pod 2: no answer") {
		t.Errorf("line: %q", lines[1])
	}
}

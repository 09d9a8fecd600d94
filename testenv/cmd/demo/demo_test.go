package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for _, name := range []string{"aws-k8s-agent", "aws-cni", "cnictl"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o, err := parse([]string{"--once", "--bin", bin})
	if err != nil || !o.once || o.bin != bin || o.keep {
		t.Errorf("parse = %+v, %v", o, err)
	}
	if _, err := parse([]string{"--bin", t.TempDir()}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("without programs: %v", err)
	}
	if _, err := parse([]string{"--bin", bin, "now"}); err == nil || !strings.Contains(err.Error(), `"now"`) {
		t.Errorf("argument: %v", err)
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
	if o, err := parse([]string{"--fleet", "5000", "--bin", bin}); err != nil || o.fleet != 5000 {
		t.Errorf("fleet: %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--fleet", "5001", "--bin", bin}, {"--fleet", "-1", "--bin", bin}, {"--fleet", "3", "--once", "--bin", bin}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if _, err := parse([]string{"--twice"}); err == nil {
		t.Error("an unknown flag was accepted")
	}
}

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

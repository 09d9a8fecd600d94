package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain acts as the program when go test runs it to measure a test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-measured" {
		os.Exit(measured(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestLaneOrder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ given, want []string }{
		{layerNames(), []string{"binary", "cluster", "race", "adapter", "pure"}},
		{[]string{"pure", "race"}, []string{"race", "pure"}},
	} {
		selected, err := selectLayers(row.given)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range laneOrder(selected) {
			got = append(got, selected[i].name)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%v: began as %v, want %v", row.given, got, row.want)
		}
	}
}

// TestRunLayers runs layers with zero to two lanes, and with a cancelled context.
func TestRunLayers(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := options{root: writeModule(t, ""), count: 1, self: self}
	pkgs, err := listPackages(t.Context(), o.root)
	if err != nil {
		t.Fatal(err)
	}
	selected, err := selectLayers([]string{"pure", "adapter", "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	for o.lanes = range 3 {
		results, err := runLayers(t.Context(), o, selected, pkgs)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			name, note string
			passed     int
		}{{"pure", "", 2}, {"adapter", "", 1}, {"cluster", noPackages, 0}} {
			r := results[i]
			if r.name != want.name || r.passed != want.passed || r.note != want.note || r.failed > 0 {
				t.Errorf("%d lanes, layer %d: %+v, want %+v", o.lanes, i, r, want)
			}
			measured := slices.ContainsFunc(r.times, func(s spent) bool { return s.id.Test == "" && s.cpu > 0 })
			if want.passed > 0 && (!measured || r.cpu == 0) {
				t.Errorf("%d lanes, %s: no CPU time in %+v", o.lanes, r.name, r.times)
			}
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := runLayers(ended, o, selected, pkgs); !errors.Is(err, context.Canceled) {
		t.Errorf("ended from outside: %v, want %v", err, context.Canceled)
	}
}

func TestPrintSlowest(t *testing.T) {
	t.Parallel()
	id := func(test string) testID { return testID{"m/a", test} }
	results := []layerResult{
		{name: "pure", times: []spent{{id("TestShort"), time.Second, 0}, {id("TestLong/x"), 9 * time.Second, 0}, {id("TestLong"), 10 * time.Second, 0},
			{id(""), 12 * time.Second, 3 * time.Second}}},
		{name: "race", times: []spent{{id("TestLong"), 20 * time.Second, 0}, {id(""), 21 * time.Second, 0}}},
	}
	var out bytes.Buffer
	printSlowest(&out, results, 2)
	const want = "slow (race)     21.0s                m/a \n" +
		"slow (pure)     12.0s      3.0s CPU  m/a \n" +
		"slow (race)     20.0s                m/a TestLong\n" +
		"slow (pure)     10.0s                m/a TestLong\n"
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", out.String(), want)
	}
}

func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		command []string
		status  int
		said    string // suffix of stderr; if empty, stdout has the CPU time
	}{
		{[]string{"true"}, 0, ""},
		{[]string{"sh", "-c", "exit 7"}, 7, ""},
		{[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{[]string{"/no/such/program"}, 2, "no such file or directory\n"},
		{nil, 2, "-measured needs a command\n"},
	} {
		var out, said bytes.Buffer
		status := measured(row.command, &out, &said)
		if status != row.status || !strings.HasSuffix(said.String(), row.said) || cpuLine.Match(out.Bytes()) != (row.said == "") {
			t.Errorf("%q: status %d, want %d; printed %q and %q", row.command, status, row.status, out.String(), said.String())
		}
	}
}

// TestMeasured_Quit asks a test binary for its goroutines, as go test does at a
// timeout.
func TestMeasured_Quit(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-measured", "sh", "-c", "trap 'echo asked; exit 3' QUIT; echo ready; while :; do :; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("ready\n"))
	if _, err := out.Read(said); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	_, readErr := rest.ReadFrom(out)
	err = cmd.Wait()
	if readErr != nil || cmd.ProcessState.ExitCode() != 3 || !strings.HasPrefix(rest.String(), "asked\n"+cpuPrefix) {
		t.Errorf("said %q, then %q: %v, %v", said, rest.String(), err, readErr)
	}
}

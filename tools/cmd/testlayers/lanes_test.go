package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRunJobs runs two lanes whose jobs wait for each other: the lanes run side by side, the jobs
// of a lane in order, and what computes two at a time at the end.
func TestRunJobs(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string), make(chan string)
	wait := func(name string, l lane) job {
		return job{name, l, func(ctx context.Context) (layerResult, error) {
			began <- name
			<-ended
			return layerResult{name: name}, nil
		}}
	}
	jobs := []job{wait("a", computes), wait("b", waits), wait("c", computes), wait("d", waits), wait("e", computes), wait("f", computes)}
	done := make(chan []layerResult)
	go func() {
		results, err := runJobs(t.Context(), jobs)
		if err != nil {
			t.Error(err)
		}
		done <- results
	}()
	for _, pair := range [][]string{{"a", "b"}, {"c", "d"}, {"e", "f"}} {
		got := []string{<-began, <-began}
		slices.Sort(got)
		if !slices.Equal(got, pair) {
			t.Errorf("%v run at once, want %v", got, pair)
		}
		ended <- ""
		ended <- ""
	}
	for i, r := range <-done {
		if r.name != jobs[i].name {
			t.Errorf("result %d is of %q, want %q", i, r.name, jobs[i].name)
		}
	}
	bad := errors.New("no disk")
	ran := false
	_, err := runJobs(t.Context(), []job{
		{"a", computes, func(context.Context) (layerResult, error) { return layerResult{}, bad }},
		{"b", computes, func(context.Context) (layerResult, error) { ran = true; return layerResult{}, nil }},
	})
	if !errors.Is(err, bad) || ran {
		t.Errorf("after an error: %v, and the next job ran: %v", err, ran)
	}
}

// TestRunLayer runs layers of a module twice: the second time the go command has the results.
func TestRunLayer(t *testing.T) {
	t.Parallel()
	o := options{root: writeModule(t, "")}
	tr, err := readTree(t.Context(), o.root, false)
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []layerResult{{packages: 1, passed: 2}, {packages: 1, passed: 2, cached: 1}} {
		r, err := runLayer(t.Context(), o, layers[0], layers[0].packages(tr.pkgs))
		if err != nil || r.packages != want.packages || r.passed != want.passed || r.cached != want.cached || r.failed > 0 {
			t.Errorf("round %d: %+v, %v, want %+v", round, r, err, want)
		}
	}
	o.count = 1
	if r, err := runLayer(t.Context(), o, layers[0], layers[0].packages(tr.pkgs)); err != nil || r.cached > 0 || r.passed != 2 {
		t.Errorf("with -count=1: %+v, %v", r, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := runLayer(ended, o, layers[0], layers[0].packages(tr.pkgs)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended from outside: %v, want %v", err, context.Canceled)
	}
}

// TestGroups checks that packages run with as many tests at once as they say.
func TestGroups(t *testing.T) {
	t.Parallel()
	pkgs := []pkg{{Rel: "a"}, {Rel: "b", Parallel: 8}, {Rel: "c", Parallel: 1}, {Rel: "d"}}
	for l, want := range map[lane]string{waits: "8:b 2:a,d 1:c", computes: "8:b 1:c 0:a,d"} {
		var got []string
		for n, some := range (layer{lane: l}).groups(pkgs) {
			var names []string
			for _, p := range some {
				names = append(names, p.Rel)
			}
			got = append(got, string(rune('0'+n))+":"+strings.Join(names, ","))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("lane %d: %q, want %q", l, strings.Join(got, " "), want)
		}
	}
}

// TestRunTarget runs targets of a Makefile, one of which fails and one of which would build again.
func TestRunTarget(t *testing.T) {
	t.Parallel()
	o := options{root: t.TempDir()}
	const rules = ".PHONY: build lint verify\nbuild:\n\t@echo built again; exit 1\nlint: build\n\t@echo fine\nverify:\n\t@echo stale; exit 1\n"
	if err := os.WriteFile(filepath.Join(o.root, "Makefile"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]struct {
		failed int
		log    string
	}{"lint": {0, "fine\n"}, "verify": {1, "stale\n"}} {
		r, err := runTarget(t.Context(), o, target)
		if err != nil || r.failed != want.failed || !r.target {
			t.Errorf("%s: %+v, %v", target, r, err)
		}
		if log, err := os.ReadFile(filepath.Join(o.root, logs, target+".log")); err != nil || !strings.HasPrefix(string(log), want.log) {
			t.Errorf("%s: log %q, %v", target, log, err)
		}
	}
}

func TestPrintSlowest(t *testing.T) {
	t.Parallel()
	id := func(test string) testID { return testID{"m/a", test} }
	results := []layerResult{
		{name: "pure", times: []spent{{id("TestShort"), time.Second}, {id("TestLong/x"), 9 * time.Second}, {id("TestLong"), 10 * time.Second}, {id(""), 12 * time.Second}}},
		{name: "race", times: []spent{{id("TestLong"), 20 * time.Second}, {id(""), 21 * time.Second}}},
	}
	var out bytes.Buffer
	printSlowest(&out, results, 2)
	const want = "slow (race)     21.0s  m/a \n" +
		"slow (pure)     12.0s  m/a \n" +
		"slow (race)     20.0s  m/a TestLong\n" +
		"slow (pure)     10.0s  m/a TestLong\n"
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", out.String(), want)
	}
}

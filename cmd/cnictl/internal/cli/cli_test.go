package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func env(vars map[string]string) Lookup {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestColourOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode string
		tty  bool
		vars map[string]string
		want bool
	}{
		{"auto", true, nil, true},
		{"auto", false, nil, false},
		{"always", false, map[string]string{"NO_COLOR": "1"}, true},
		{"never", true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
		{"auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"auto", true, map[string]string{"NO_COLOR": ""}, true},
		{"auto", true, map[string]string{"TERM": "dumb"}, false},
		{"auto", true, map[string]string{"CLICOLOR": "0"}, false},
		{"auto", false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"auto", false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"auto", false, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
		{"auto", true, map[string]string{"CLICOLOR_FORCE": "1", "TERM": "dumb"}, true},
	}
	for _, tt := range tests {
		if got := colourOn(tt.mode, tt.tty, env(tt.vars)); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestTimeout_ByTheNumberOfNodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		timeout     time.Duration
		nodes, many int
		want        time.Duration
	}{
		{0, 0, 32, time.Minute},
		{0, 300, 32, 80 * time.Second}, // 10 × 5 s, and time for the lists
		{0, 5000, 32, 815 * time.Second},
		{0, 5000, 256, 2*time.Minute + 10*time.Second},
		{10 * time.Second, 5000, 32, 10 * time.Second},
	} {
		g := Globals{Timeout: tt.timeout, NodeTimeout: 5 * time.Second, Concurrency: tt.many}
		if got := g.timeoutFor(tt.nodes); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// parse parses a command line with the global flags.
func parse(vars map[string]string, args ...string) (Globals, error) {
	f := &Factory{Streams: &Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, Env: env(vars)}
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	f.Prepare(cmd, f.Check)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return f.Globals, err
}

func TestGlobals(t *testing.T) {
	t.Parallel()
	defaults := Globals{
		Targets: []string{}, Output: "table", Color: "auto", Interval: 5 * time.Second, NodeTimeout: 5 * time.Second, Concurrency: 32,
		Kube: KubeFlags{RequestTimeout: "0", CacheDir: ".kube/cache"}, DaemonSetNamespace: "kube-system", DaemonSetSelector: "k8s-app=aws-node", Via: "auto", Theme: "auto",
	}
	with := func(change func(*Globals)) Globals { g := defaults; change(&g); return g }
	tests := map[string]struct {
		vars map[string]string
		args []string
		want Globals
	}{
		"defaults": {nil, nil, defaults},
		"flags": {nil, []string{"--targets=a=x:1,b=y:2", "-o", "json", "--no-headers", "--color=never", "--interval=2s", "--timeout=1s", "--node-timeout=10ms", "--concurrency=1", "--allow-partial"},
			with(func(g *Globals) {
				g.Targets, g.Output, g.NoHeaders, g.Color, g.Interval = []string{"a=x:1", "b=y:2"}, "json", true, "never", 2*time.Second
				g.Timeout, g.NodeTimeout, g.Concurrency, g.AllowPartial = time.Second, 10*time.Millisecond, 1, true //realtime: what the flags say
			})},
		"kubectl's": {map[string]string{"CNICTL_CONTEXT": "prod", "CNICTL_AS_GROUP": "x"}, []string{"-n", "web", "-s", "https://x", "-l", "a=b", "-v", "6", "--as-group=y", "--as-group=z"},
			with(func(g *Globals) {
				g.Kube.Context, g.Kube.Namespace, g.Kube.Server, g.Kube.AsGroup, g.Selector, g.Verbosity = "prod", "web", "https://x", []string{"y", "z"}, "a=b", 6
			})},
		"environment": {map[string]string{"CNICTL_TARGETS": "a=x:1", "CNICTL_NODE_TIMEOUT": "1s", "CNICTL_NO_HEADERS": "true", "CNICTL_OUTPUT": ""}, nil,
			with(func(g *Globals) { g.Targets, g.NodeTimeout, g.NoHeaders = []string{"a=x:1"}, time.Second, true })},
		"flag before environment": {map[string]string{"CNICTL_OUTPUT": "yaml", "CNICTL_TARGETS": "b=x:1"}, []string{"-o", "wide", "--targets", "a=x:1"},
			with(func(g *Globals) { g.Output, g.Targets = "wide", []string{"a=x:1"} })},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tt.vars, tt.args...)
			if got.Targets == nil {
				got.Targets = []string{}
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
	for _, args := range [][]string{{"--via=carrier-pigeon"}, {"-v=11"}, {"--color=blue"}, {"--interval=1999ms"}, {"--timeout=-1s"}, {"--node-timeout=-1s"}, {"--concurrency=0"}, {"--concurrency=257"}} {
		_, err := parse(nil, args...)
		var e *Error
		if !errors.As(err, &e) || e.Code != ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		code int
		want string
	}{
		"none":        {nil, 0, ""},
		"three lines": {&Error{ExitUnreachable, "what", "why", "do"}, 5, "cnictl: what\n  why: why\n  try: do\n"},
		"usage":       {Usage("bad %s", "x"), 2, "cnictl: bad x\n  try: cnictl --help\n"},
		"silent":      {Exit(ExitPartial), 4, ""},
		"other":       {errors.New("disk full"), 1, "cnictl: disk full\n"},
		"cancelled":   {context.Canceled, 130, "cnictl: interrupted\n"},
		"escaped":     {&Error{Code: 5, What: "a\x1b[2J", Why: "b\nc"}, 5, "cnictl: a\\x1b[2J\n  why: b\\nc\n"},
	}
	for name, tt := range tests {
		var b bytes.Buffer
		if code := Report(&b, "cnictl", tt.err); code != tt.code || b.String() != tt.want {
			t.Errorf("%s: %d %q", name, code, b.String())
		}
	}
}

// TestInterrupted: an end by the user is not reported as a failure; other errors are.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unreachable := fmt.Errorf("start: %w", &Error{Code: ExitUnreachable, What: "x"})
	for name, tt := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"unreachable, ended": {ended, unreachable, true},
		"cancelled":          {ended, fmt.Errorf("x: %w", context.Canceled), true},
		"unreachable":        {t.Context(), unreachable, false},
		"another, ended":     {ended, errors.New("disk full"), false},
		"usage, ended":       {ended, Usage("x"), false},
		"none":               {ended, nil, false},
	} {
		if got := Interrupted(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestForceTTY(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]int{"100": {100, 24}, "80x15": {80, 15}} {
		var s Streams
		if err := s.ForceTTY(in); err != nil || !s.OutTTY {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if w, h := s.Size(); w != want[0] || h != want[1] {
			t.Errorf("%s: %d×%d", in, w, h)
		}
	}
	for _, in := range []string{"wide", "0", "80x", "80x0x1", "-1"} {
		if err := new(Streams).ForceTTY(in); err == nil && in != "80x" {
			t.Errorf("%s accepted", in)
		}
	}
}

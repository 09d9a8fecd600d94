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

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
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
		{0, 300, 32, 80 * time.Second}, // 10 × 5 s, and room for the lists
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

// parse runs a command line through the global flags.
func parse(vars map[string]string, args ...string) (Globals, error) {
	f := &Factory{Streams: &Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, Env: env(vars)}
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	f.Prepare(cmd)
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
				g.Timeout, g.NodeTimeout, g.Concurrency, g.AllowPartial = time.Second, 10*time.Millisecond, 1, true
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
	for _, args := range [][]string{{"-o", "xml"}, {"-o", "json=x"}, {"-o", "jsonpath"}, {"-o", "go-template="}, {"--via=carrier-pigeon"}, {"-v=11"}, {"--color=blue"}, {"--interval=1999ms"}, {"--timeout=-1s"}, {"--node-timeout=-1s"}, {"--concurrency=0"}, {"--concurrency=257"}} {
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

func TestVerdict(t *testing.T) {
	t.Parallel()
	live := introspect.NodeIPAM{Summary: &introspect.Summary{}}
	partly := introspect.NodeIPAM{Summary: &introspect.Summary{}, Error: &introspect.NodeError{}}
	down := introspect.NodeIPAM{Error: &introspect.NodeError{Reason: introspect.ReasonRefused}}
	tests := map[string]struct {
		items       []introspect.NodeIPAM
		interrupted bool
		allow       bool
		want        int
	}{
		"all":           {[]introspect.NodeIPAM{live, live}, false, false, ExitOK},
		"some":          {[]introspect.NodeIPAM{live, down}, false, false, ExitPartial},
		"some, allowed": {[]introspect.NodeIPAM{live, down}, false, true, ExitOK},
		"in part":       {[]introspect.NodeIPAM{partly}, false, false, ExitPartial},
		"none":          {[]introspect.NodeIPAM{down, down}, false, true, ExitUnreachable},
		"the only one":  {[]introspect.NodeIPAM{down}, false, false, ExitUnreachable},
		"interrupted":   {[]introspect.NodeIPAM{live}, true, false, ExitInterrupted},
		"empty":         {nil, false, false, ExitOK},
	}
	for name, tt := range tests {
		f := &Factory{Streams: &Streams{Err: new(bytes.Buffer)}, Globals: Globals{AllowPartial: tt.allow}}
		if got := Report(new(bytes.Buffer), "x", f.Verdict(introspect.NodeIPAMList{Items: tt.items}, tt.interrupted)); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestVerdict_Names: some nodes that were not read are named with the reasons, whether all
// or some are missing, and so are those that an interrupt left out counted.
func TestVerdict_Names(t *testing.T) {
	t.Parallel()
	node := func(name string, reason introspect.Reason) introspect.NodeIPAM {
		n := introspect.NodeIPAM{State: introspect.StateUnreachable, Error: &introspect.NodeError{Reason: reason, Message: "because " + name}}
		n.Metadata.Name = name
		return n
	}
	live := introspect.NodeIPAM{Summary: &introspect.Summary{}}
	a, b, c, d := node("a\x1b", introspect.ReasonRefused), node("b", introspect.ReasonTimeout), node("c", introspect.ReasonTimeout), node("d", introspect.ReasonTimeout)
	const all = " (all of them: kubectl cni nodes --filter 'reading!=live')\n"
	for name, tt := range map[string]struct {
		items       []introspect.NodeIPAM
		interrupted bool
		want        string
	}{
		"one":  {[]introspect.NodeIPAM{live, b}, false, "warning: 1 of 2 nodes could not be read, or only in part: b: because b" + all},
		"four": {[]introspect.NodeIPAM{live, a, b, c, d}, false, "warning: 4 of 5 nodes could not be read, or only in part: a\\x1b: because a\\x1b; b: because b; c: because c; and 1 more" + all},
		"none": {[]introspect.NodeIPAM{c, d}, false, "warning: none of 2 nodes could be read: c: because c; d: because d" + all},
		"of a recording": {
			[]introspect.NodeIPAM{live, node("e", introspect.ReasonNotServed)}, false, "warning: 1 of 2 nodes could not be read, or only in part: e: because e\n",
		},
		"interrupted": {
			[]introspect.NodeIPAM{live, b, node("e", introspect.ReasonCancelled), node("f", introspect.ReasonCancelled)}, true, "kubectl cni: interrupted: 2 of 4 nodes were not read\n",
		},
		"interrupted later": {[]introspect.NodeIPAM{live}, true, "kubectl cni: interrupted\n"},
	} {
		var said bytes.Buffer
		f := &Factory{Name: "kubectl cni", Streams: &Streams{Err: &said}}
		if Report(&said, f.Name, f.Verdict(introspect.NodeIPAMList{Items: tt.items}, tt.interrupted)); said.String() != tt.want {
			t.Errorf("%s: %q, want %q", name, said.String(), tt.want)
		}
	}
}

// TestVerdict_MetricsOnly: why introspection was not read is said where the row cannot say
// it, with what helps.
func TestVerdict_MetricsOnly(t *testing.T) {
	t.Parallel()
	node := func(name string, reason introspect.Reason, message string) introspect.NodeIPAM {
		n := introspect.NodeIPAM{State: introspect.StateMetricsOnly, Summary: &introspect.Summary{}, Error: &introspect.NodeError{Reason: reason, Message: message}}
		n.Metadata.Name = name
		return n
	}
	refused := node("a", introspect.ReasonRefused, "connection refused")
	for name, tt := range map[string]struct {
		items []introspect.NodeIPAM
		want  string
	}{
		"refused": {
			[]introspect.NodeIPAM{refused},
			"warning: only the metrics of a could be read: connection refused; its introspection is on a unix socket or off: use --via exec, or cnictl local on the node\n" +
				"warning: 1 of 1 nodes could not be read, or only in part\n",
		},
		"several, that the cluster tells of": {
			[]introspect.NodeIPAM{node("b\x1b", introspect.ReasonOff, "it is off"), refused, {State: introspect.StateUnreachable, Error: refused.Error}},
			"warning: only the metrics of b\\x1b and 1 more could be read: it is off\nwarning: 3 of 3 nodes could not be read, or only in part: : connection refused (all of them: cnictl nodes --filter 'reading!=live')\n",
		},
		"none": {
			[]introspect.NodeIPAM{{Summary: &introspect.Summary{}}, {State: introspect.StateUnreachable, Error: refused.Error}},
			"warning: 1 of 2 nodes could not be read, or only in part: : connection refused (all of them: cnictl nodes --filter 'reading!=live')\n",
		},
	} {
		var said bytes.Buffer
		f := &Factory{Name: "cnictl", Streams: &Streams{Err: &said}}
		code := Report(&said, "cnictl", f.Verdict(introspect.NodeIPAMList{Items: tt.items}, false))
		if code != ExitPartial || said.String() != tt.want {
			t.Errorf("%s: exit %d, %q", name, code, said.String())
		}
	}
}

// TestGivenUp: what a user ended is no failure to tell of; what else went wrong is.
func TestGivenUp(t *testing.T) {
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
		if got := GivenUp(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWatch drives the loop by hand: no time passes.
func TestWatch_IsGentleWithTheOriginal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ticks := make(chan time.Time, 1)
	var intervals []time.Duration
	stopped := 0
	var errOut bytes.Buffer
	f := &Factory{
		Streams: &Streams{Err: &errOut},
		Tick: func(d time.Duration) (<-chan time.Time, func()) {
			intervals = append(intervals, d)
			return ticks, func() { stopped++ }
		},
		Globals: Globals{Interval: 5 * time.Second},
	}
	shows := 0
	err := f.Watch(ctx, func(context.Context) (bool, error) {
		shows++
		ticks <- time.Time{}
		if shows == 3 {
			cancel()
		}
		return shows >= 2, nil
	}, nil)
	if err != nil || shows != 3 || stopped != 2 {
		t.Errorf("%v after %d, %d tickers stopped", err, shows, stopped)
	}
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 10 * time.Second}, intervals); diff != "" {
		t.Error(diff)
	}
	if got := errOut.String(); got != "warning: some nodes run the original daemon, which logs every request: reading every 10s\n" {
		t.Errorf("%q", got)
	}
}

func TestWatch_RedrawsOnResizeAndStopsOnError(t *testing.T) {
	t.Parallel()
	resized := make(chan struct{}, 1)
	ticks := make(chan time.Time, 1)
	f := &Factory{
		Streams: &Streams{Err: new(bytes.Buffer), Resized: resized},
		Tick:    func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} },
		Globals: Globals{Interval: 5 * time.Second},
	}
	boom := errors.New("boom")
	redrawn := 0
	shows := 0
	err := f.Watch(t.Context(), func(context.Context) (bool, error) {
		if shows++; shows == 2 {
			return false, boom
		}
		resized <- struct{}{}
		return false, nil
	}, func() error {
		redrawn++
		ticks <- time.Time{}
		return nil
	})
	if !errors.Is(err, boom) || redrawn != 1 {
		t.Errorf("%v, redrawn %d times", err, redrawn)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	now := start
	for _, tt := range []struct {
		tty  bool
		want string
	}{
		{true, "\r\x1b[Knodes 2/9  ok 1  failed 1  1.0s\r\x1b[Knodes 4/9  ok 3  failed 1  11.0s\r\x1b[K"},
		{false, "nodes 4/9  ok 3  failed 1  11.0s\n"},
	} {
		var b bytes.Buffer
		now = start
		p := progress{f: &Factory{Streams: &Streams{Err: &b, ErrTTY: tt.tty}, Now: func() time.Time { return now }}, start: start}
		for _, step := range []struct {
			after time.Duration
			at    fleet.Progress
		}{
			{900 * time.Millisecond, fleet.Progress{Done: 1, OK: 1, Total: 9}},
			{time.Second, fleet.Progress{Done: 2, OK: 1, Failed: 1, Total: 9}},
			{time.Second + 50*time.Millisecond, fleet.Progress{Done: 3, OK: 2, Failed: 1, Total: 9}},
			{11 * time.Second, fleet.Progress{Done: 4, OK: 3, Failed: 1, Total: 9}},
			{12 * time.Second, fleet.Progress{Done: 9, OK: 8, Failed: 1, Total: 9}},
		} {
			now = start.Add(step.after)
			p.update(step.at)
		}
		p.erase()
		if b.String() != tt.want {
			t.Errorf("tty %v: %q", tt.tty, b.String())
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

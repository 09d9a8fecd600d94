package sweep

import (
	"bytes"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	live := document.NodeIPAM{Summary: &introspect.Summary{}}
	partly := document.NodeIPAM{Summary: &introspect.Summary{}, Error: &document.NodeError{}}
	down := document.NodeIPAM{Error: &document.NodeError{Reason: introspect.ReasonRefused}}
	tests := map[string]struct {
		items       []document.NodeIPAM
		interrupted bool
		allow       bool
		want        int
	}{
		"all":           {[]document.NodeIPAM{live, live}, false, false, cli.ExitOK},
		"some":          {[]document.NodeIPAM{live, down}, false, false, cli.ExitPartial},
		"some, allowed": {[]document.NodeIPAM{live, down}, false, true, cli.ExitOK},
		"in part":       {[]document.NodeIPAM{partly}, false, false, cli.ExitPartial},
		"none":          {[]document.NodeIPAM{down, down}, false, true, cli.ExitUnreachable},
		"the only one":  {[]document.NodeIPAM{down}, false, false, cli.ExitUnreachable},
		"interrupted":   {[]document.NodeIPAM{live}, true, false, cli.ExitInterrupted},
		"empty":         {nil, false, false, cli.ExitOK},
	}
	for name, tt := range tests {
		f := &cli.Factory{Streams: &cli.Streams{Err: new(bytes.Buffer)}, Globals: cli.Globals{AllowPartial: tt.allow}}
		if got := cli.Report(new(bytes.Buffer), "x", Verdict(f, document.NodeIPAMList{Items: tt.items}, tt.interrupted)); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestVerdict_Names: the warning names some unread nodes with the reasons, whether all or some are
// missing, and counts the nodes that an interrupt left out.
func TestVerdict_Names(t *testing.T) {
	t.Parallel()
	node := func(name string, reason introspect.Reason) document.NodeIPAM {
		n := document.NodeIPAM{State: document.StateUnreachable, Error: &document.NodeError{Reason: reason, Message: "because " + name}}
		n.Metadata.Name = name
		return n
	}
	live := document.NodeIPAM{Summary: &introspect.Summary{}}
	a, b, c, d := node("a\x1b", introspect.ReasonRefused), node("b", introspect.ReasonTimeout), node("c", introspect.ReasonTimeout), node("d", introspect.ReasonTimeout)
	const all = " (list them: kubectl cni nodes --filter 'reading!=live')\n"
	for name, tt := range map[string]struct {
		items       []document.NodeIPAM
		interrupted bool
		want        string
	}{
		"one":  {[]document.NodeIPAM{live, b}, false, "warning: 1 of 2 nodes could not be fully read: b: because b" + all},
		"four": {[]document.NodeIPAM{live, a, b, c, d}, false, "warning: 4 of 5 nodes could not be fully read: timeout 3 (b, c, 1 more), refused 1 (a\\x1b)" + all},
		"none": {[]document.NodeIPAM{c, d}, false, "warning: none of 2 nodes could be read: timeout 2 (c, d)" + all},
		"of a recording": {
			[]document.NodeIPAM{live, node("e", introspect.ReasonNotServed)}, false, "warning: 1 of 2 nodes could not be fully read: e: because e\n",
		},
		"interrupted": {
			[]document.NodeIPAM{live, b, node("e", introspect.ReasonCancelled), node("f", introspect.ReasonCancelled)}, true, "kubectl cni: interrupted: 2 of 4 nodes were not read\n",
		},
		"interrupted later": {[]document.NodeIPAM{live}, true, "kubectl cni: interrupted\n"},
	} {
		var said bytes.Buffer
		f := &cli.Factory{Name: "kubectl cni", Streams: &cli.Streams{Err: &said}}
		if cli.Report(&said, f.Name, Verdict(f, document.NodeIPAMList{Items: tt.items}, tt.interrupted)); said.String() != tt.want {
			t.Errorf("%s: %q, want %q", name, said.String(), tt.want)
		}
	}
}

// TestVerdict_MetricsOnly: if the row has no place for it, a warning says why introspection
// was not read, and what to do.
func TestVerdict_MetricsOnly(t *testing.T) {
	t.Parallel()
	node := func(name string, reason introspect.Reason, message string) document.NodeIPAM {
		n := document.NodeIPAM{State: document.StateMetricsOnly, Summary: &introspect.Summary{}, Error: &document.NodeError{Reason: reason, Message: message}}
		n.Metadata.Name = name
		return n
	}
	refused := node("a", introspect.ReasonRefused, "connection refused")
	for name, tt := range map[string]struct {
		items []document.NodeIPAM
		want  string
	}{
		"refused": {
			[]document.NodeIPAM{refused},
			"warning: only the metrics of a could be read: connection refused; its introspection server is off or on a Unix socket: use --via exec, or cnictl local on the node\n" +
				"warning: 1 of 1 nodes could not be fully read\n",
		},
		"several, of a cluster": {
			[]document.NodeIPAM{node("b\x1b", introspect.ReasonOff, "it is off"), refused, {State: document.StateUnreachable, Error: refused.Error}},
			"warning: only the metrics of b\\x1b and 1 more could be read: it is off\nwarning: 3 of 3 nodes could not be fully read: : connection refused (list them: cnictl nodes --filter 'reading!=live')\n",
		},
		"none": {
			[]document.NodeIPAM{{Summary: &introspect.Summary{}}, {State: document.StateUnreachable, Error: refused.Error}},
			"warning: 1 of 2 nodes could not be fully read: : connection refused (list them: cnictl nodes --filter 'reading!=live')\n",
		},
	} {
		var said bytes.Buffer
		f := &cli.Factory{Name: "cnictl", Streams: &cli.Streams{Err: &said}}
		code := cli.Report(&said, "cnictl", Verdict(f, document.NodeIPAMList{Items: tt.items}, false))
		if code != cli.ExitPartial || said.String() != tt.want {
			t.Errorf("%s: exit %d, %q", name, code, said.String())
		}
	}
}

package node

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func ptr[T any](v T) *T { return &v }

func TestTargets(t *testing.T) {
	t.Parallel()
	secondary := introspect.CardSummary{Mode: introspect.ModeSecondaryIP, Total: 18, Assigned: 7, Cooling: ptr(2), Free: 9, SlotsPerENI: ptr(9)}
	prefix := introspect.CardSummary{Mode: introspect.ModePrefix, Total: 32, Assigned: 20, Free: 12, Prefixes: ptr(2), FreePrefixes: ptr(0), SlotsPerENI: ptr(9)}
	for name, x := range map[string]struct {
		card introspect.CardSummary
		t    introspect.Targets
		want [4]string // WARM_IP, MINIMUM_IP, WARM_PREFIX, WARM_ENI
	}{
		"addresses":        {secondary, introspect.Targets{WarmENI: ptr(1), WarmIP: ptr(5), MinimumIP: ptr(20), WarmPrefix: ptr(0)}, [4]string{"met", "short 2", "not set", "overridden by addresses"}},
		"ENIs":             {secondary, introspect.Targets{WarmENI: ptr(1), WarmIP: ptr(0), MinimumIP: ptr(0), WarmPrefix: ptr(1)}, [4]string{"not set", "not set", "mode is secondary-ip", "met"}},
		"ENIs, short":      {secondary, introspect.Targets{WarmENI: ptr(2), WarmIP: ptr(0), MinimumIP: ptr(0), WarmPrefix: ptr(0)}, [4]string{"not set", "not set", "not set", "short 9"}},
		"prefixes":         {prefix, introspect.Targets{WarmENI: ptr(1), WarmIP: ptr(0), MinimumIP: ptr(0), WarmPrefix: ptr(1)}, [4]string{"not set", "not set", "short 1", "mode is prefix"}},
		"prefix, by IP":    {prefix, introspect.Targets{WarmENI: ptr(1), WarmIP: ptr(5), MinimumIP: ptr(0), WarmPrefix: ptr(1)}, [4]string{"met", "not set", "overridden by addresses", "overridden by addresses"}},
		"upstream":         {introspect.CardSummary{Free: 2}, introspect.Targets{WarmENI: ptr(1), WarmIP: ptr(0)}, [4]string{"not set", "not reported", "not reported", ""}},
		"nothing is known": {introspect.CardSummary{}, introspect.Targets{}, [4]string{"not reported", "not reported", "not reported", "not reported"}},
	} {
		got := targetsOf(introspect.Summary{Cards: []introspect.CardSummary{x.card}, Targets: x.t})
		for i, g := range got {
			if g.Word != x.want[i] {
				t.Errorf("%s: %s is %q, want %q", name, g.Name, g.Word, x.want[i])
			}
		}
	}
}

// TestNothingIsPlanned: the text for a plan without changes agrees with the targets above it.
func TestNothingIsPlanned(t *testing.T) {
	t.Parallel()
	met := introspect.Summary{
		Cards:   []introspect.CardSummary{{Mode: introspect.ModePrefix, Total: 32, Free: 17, FreePrefixes: ptr(1)}},
		Targets: introspect.Targets{WarmPrefix: ptr(1)},
	}
	if got := targetsOf(met)[2]; got.Have != "1 unused prefix" || got.Word != "met" {
		t.Errorf("%+v", got)
	}
	short := met
	short.Targets = introspect.Targets{WarmPrefix: ptr(3)}
	busy := short
	busy.Operations = []introspect.Operation{{Kind: "assign"}}
	for want, s := range map[string]introspect.Summary{
		"Nothing: all targets are met.":                                  met,
		"Nothing now: WARM_PREFIX_TARGET is short 2; no change planned.": short,
		"Nothing more: operations in progress must finish first.":        busy,
	} {
		if _, word, why := nothing(s); word+": "+why != want {
			t.Errorf("%s: %s, want %s", word, why, want)
		}
	}
}

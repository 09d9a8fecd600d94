package node

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	secondary := introspect.CardSummary{Mode: introspect.ModeSecondaryIP, Total: 18, Assigned: 7, Cooling: new(2), Free: 9, SlotsPerENI: new(9)}
	prefix := introspect.CardSummary{Mode: introspect.ModePrefix, Total: 32, Assigned: 20, Free: 12, Prefixes: new(2), FreePrefixes: new(0), SlotsPerENI: new(9)}
	for name, x := range map[string]struct {
		card introspect.CardSummary
		t    introspect.Targets
		want [4]string // WARM_IP, MINIMUM_IP, WARM_PREFIX, WARM_ENI
	}{
		"addresses":        {secondary, introspect.Targets{WarmENI: new(1), WarmIP: new(5), MinimumIP: new(20), WarmPrefix: new(0)}, [4]string{"met", "short 2", "not set", "overridden by addresses"}},
		"ENIs":             {secondary, introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(1)}, [4]string{"not set", "not set", "mode is secondary-ip", "met"}},
		"ENIs, short":      {secondary, introspect.Targets{WarmENI: new(2), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(0)}, [4]string{"not set", "not set", "not set", "short 9"}},
		"prefixes":         {prefix, introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(1)}, [4]string{"not set", "not set", "short 1", "mode is prefix"}},
		"prefix, by IP":    {prefix, introspect.Targets{WarmENI: new(1), WarmIP: new(5), MinimumIP: new(0), WarmPrefix: new(1)}, [4]string{"met", "not set", "overridden by addresses", "overridden by addresses"}},
		"upstream":         {introspect.CardSummary{Free: 2}, introspect.Targets{WarmENI: new(1), WarmIP: new(0)}, [4]string{"not set", "not reported", "not reported", ""}},
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
		Cards:   []introspect.CardSummary{{Mode: introspect.ModePrefix, Total: 32, Free: 17, FreePrefixes: new(1)}},
		Targets: introspect.Targets{WarmPrefix: new(1)},
	}
	if got := targetsOf(met)[2]; got.Have != "1 free prefix" || got.Word != "met" {
		t.Errorf("%+v", got)
	}
	short := met
	short.Targets = introspect.Targets{WarmPrefix: new(3)}
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

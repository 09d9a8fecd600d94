package causes

import (
	"slices"
	"strings"
	"testing"

	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation/corpus"
)

// supplyCodes differ only in how many addresses the subnet has left, which logs do not show.
var supplyCodes = []string{"ip/subnet-exhausted", "ip/prefix-fragmented", "ip/alloc-backoff"}

// unionStride is 1 at night: a situation meets one in so many of the others.
var unionStride = 10

// TestUnion: adding the log lines of another situation hides no cause of the first, and adds no
// cause that neither shows. Contradictory pairs are excluded: a log that says that the pool
// grows again, and a cause that requires that no EC2 call fails.
func TestUnion(t *testing.T) {
	t.Parallel()
	var all []fixture
	for _, f := range sampled(t) {
		if len(f.ev.Nodes) == 1 && f.ev.Mode == evidence.ModeNode && len(f.expect) > 0 && !strings.Contains(f.name, "@") && !strings.HasSuffix(f.name, ".near") {
			all = append(all, f)
		}
	}
	for i, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for j, b := range all {
				if (i+j)%unionStride != 0 {
					continue
				}
				if a.name == b.name || b.name == "ip/warm-pool-lag" || slices.Contains(a.expect, "config/min-ip-only") {
					continue
				}
				short := slices.ContainsFunc(b.expect, func(code string) bool { return slices.Contains(supplyCodes, code) })
				got := corpus.Reported(Diagnose(joined(a.ev, b.ev), Options{}), slices.Concat(a.expect, b.expect))
				for _, code := range got {
					// How bad an error of a log or an empty pool is depends on whether pods fail to start.
					if code != "obs/log-error" && code != "obs/pool-dry" && !slices.Contains(a.expect, code) && !slices.Contains(b.expect, code) && !(short && slices.Contains(supplyCodes, code)) {
						t.Errorf("with the logs of %s: %s, which neither shows", b.name, code)
					}
				}
				for _, code := range a.expect {
					if !slices.Contains(got, code) && !explained(code, got) && !(short && slices.Contains(supplyCodes, code)) {
						t.Errorf("with the logs of %s: %s is not found any more", b.name, code)
					}
				}
			}
		})
	}
}

// explained reports whether a cause is a consequence of one that was found, or an observation that
// one explains.
func explained(code string, found []string) bool {
	return slices.ContainsFunc(found, func(root string) bool {
		entry, ok := catalogue.Lookup(root)
		return ok && (consequences(root)[code] || slices.Contains(entry.Observes(), code))
	})
}

// joined adds the second situation's log lines to the first's logs, keeping their age.
func joined(a, b *evidence.Evidence) *evidence.Evidence {
	out := *a
	out.Nodes = slices.Clone(a.Nodes)
	node, from := &out.Nodes[0], &b.Nodes[0]
	add := func(into, from *evidence.Reading) *evidence.Reading {
		if into == nil {
			return nil
		}
		r := *into
		for _, log := range []struct {
			into, from *evidence.Source[evidence.Log]
		}{
			{&r.LogIPAMD, &from.LogIPAMD}, {&r.LogPlugin, &from.LogPlugin}, {&r.LogAgent, &from.LogAgent}, {&r.LogKubelet, &from.LogKubelet},
		} {
			if !log.into.OK() || !log.from.OK() {
				continue
			}
			log.into.Content.Lines = slices.Clone(log.into.Content.Lines)
			for _, l := range log.from.Content.Lines {
				l.At = l.At.Add(into.At.Sub(from.At))
				log.into.Content.Lines = append(log.into.Content.Lines, l)
			}
		}
		return &r
	}
	node.First, node.Second = add(node.First, from.First), add(node.Second, from.Last())
	return &out
}

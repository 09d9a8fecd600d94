package config

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// targets are the settings that labels override, in table order.
type targets struct{ WarmENI, WarmIP, MinIP, WarmPrefix, MaxENI int }

func targetsOf(c Config) targets {
	return targets{c.WarmENI, c.WarmIP, c.MinIP, c.WarmPrefix, c.MaxENI}
}

// TestWithLabels: each step gives the Node other labels; the value in use, its source and the
// problems follow.
func TestWithLabels(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	type step struct {
		labels   labels
		want     targets
		sources  string // of the five: d = default, e = environment, l = label, o = the instance type
		problems []string
	}
	facts := Facts{InstanceType: "m5.large", PrefixDelegation: true, MaxENIs: 3}
	for name, tc := range map[string]struct {
		env   []string
		steps []step
	}{
		"come and go": {[]string{"WARM_IP_TARGET", "5", "MAX_ENI", "2"}, []step{
			{nil, targets{WarmENI: 1, WarmIP: 5, MaxENI: 2}, "dedde", nil},
			{labels{"cnictl.dev/warm-ip-target": "8", "cnictl.dev/minimum-ip-target": "20", "cnictl.dev/max-eni": "1", "other/warm-ip-target": "9"},
				targets{WarmENI: 1, WarmIP: 8, MinIP: 20, MaxENI: 1}, "dlldl", nil},
			{labels{"cnictl.dev/warm-ip-target": "8"}, targets{WarmENI: 1, WarmIP: 8, MaxENI: 2}, "dldde", nil},
			{labels{}, targets{WarmENI: 1, WarmIP: 5, MaxENI: 2}, "dedde", nil},
		}},
		"all five": {nil, []step{
			{labels{"cnictl.dev/warm-eni-target": "2", "cnictl.dev/warm-ip-target": "3", "cnictl.dev/minimum-ip-target": "4",
				"cnictl.dev/warm-prefix-target": "5", "cnictl.dev/max-eni": "2"}, targets{2, 3, 4, 5, 2}, "lllll", nil},
		}},
		"0 sets no target": {[]string{"WARM_IP_TARGET", "5", "WARM_ENI_TARGET", "2", "MAX_ENI", "2"}, []step{
			{labels{"cnictl.dev/warm-ip-target": "0", "cnictl.dev/warm-eni-target": "0", "cnictl.dev/max-eni": "0"}, targets{}, "llddl", nil},
		}},
		"a bad value keeps the old one": {[]string{"WARM_IP_TARGET", "5"}, []step{
			{labels{"cnictl.dev/warm-ip-target": "many"}, targets{WarmENI: 1, WarmIP: 5}, "deddd",
				[]string{`label cnictl.dev/warm-ip-target="many" of the Node cannot be used, it must be an integer ≥ 0; WARM_IP_TARGET stays 5`}},
			{labels{"cnictl.dev/warm-ip-target": "7"}, targets{WarmENI: 1, WarmIP: 7}, "dlddd", nil},
			{labels{"cnictl.dev/warm-ip-target": ""}, targets{WarmENI: 1, WarmIP: 7}, "dlddd",
				[]string{`label cnictl.dev/warm-ip-target="" of the Node cannot be used, it must be an integer ≥ 0; WARM_IP_TARGET stays 7`}},
			{labels{"cnictl.dev/warm-ip-target": "1.5"}, targets{WarmENI: 1, WarmIP: 7}, "dlddd",
				[]string{`label cnictl.dev/warm-ip-target="1.5" of the Node cannot be used, it must be an integer ≥ 0; WARM_IP_TARGET stays 7`}},
			{labels{}, targets{WarmENI: 1, WarmIP: 5}, "deddd", nil},
		}},
		"a bad limit": {nil, []step{
			{labels{"cnictl.dev/max-eni": "-1"}, targets{WarmENI: 1}, "ddddd",
				[]string{`label cnictl.dev/max-eni="-1" of the Node cannot be used, it must be an integer ≥ 0; MAX_ENI stays unset`}},
			{labels{"cnictl.dev/max-eni": "9"}, targets{WarmENI: 1, MaxENI: 3}, "ddddo",
				[]string{`label cnictl.dev/max-eni="9" of the Node exceeds what a network card of m5.large supports; the limit of the instance type, 3, applies`}},
		}},
		"no target left in prefix mode": {[]string{"ENABLE_PREFIX_DELEGATION", "true", "WARM_PREFIX_TARGET", "1"}, []step{
			{labels{"cnictl.dev/warm-prefix-target": "0"}, targets{WarmENI: 1}, "dddld",
				[]string{textWarmPrefixZero + `: label cnictl.dev/warm-prefix-target="0" of the Node cannot be used, it must be an integer ≥ 1, or WARM_IP_TARGET or MINIMUM_IP_TARGET ≥ 1; no free prefix is kept, so pods wait for EC2`}},
		}},
		"off": {[]string{"CNI_TARGETS_FROM_LABELS", "false", "WARM_IP_TARGET", "5"}, []step{
			{labels{"cnictl.dev/warm-ip-target": "8", "cnictl.dev/max-eni": "x"}, targets{WarmENI: 1, WarmIP: 5}, "deddd", nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, _ := Load(env(append([]string{"ENABLE_IPv4", "true"}, tc.env...)...))
			before := base
			for i, s := range tc.steps {
				c, problems := base.WithLabels(s.labels, before)
				problems = append(problems, Validate(c, facts)...)
				before = c
				c = c.For(facts)
				if diff := cmp.Diff(s.want, targetsOf(c)); diff != "" {
					t.Errorf("step %d: targets (-want +got):\n%s", i, diff)
				}
				sources, texts := "", []string(nil)
				for _, row := range c.Describe(problems) {
					r, _ := lookup(row.Name)
					if r.Label == "" {
						continue
					}
					sources += map[Source]string{FromEnvironment: "e", FromDefault: "d", FromLabel: "l", FromOther: "o"}[row.Source]
					texts = append(texts, row.Problems...)
					want, there := s.labels[r.Label]
					if off := !base.TargetsFromLabels; (row.Label != nil) != (there && !off) || row.Label != nil && *row.Label != want {
						t.Errorf("step %d: %s: label %v, want %q", i, row.Name, row.Label, want)
					}
				}
				if sources != s.sources {
					t.Errorf("step %d: sources %s, want %s", i, sources, s.sources)
				}
				if diff := cmp.Diff(s.problems, texts); diff != "" {
					t.Errorf("step %d: problems (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestWithLabels_Properties: a label that can be used decides alone, another one changes nothing, and
// what came before does not matter once no label is bad.
func TestWithLabels_Properties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 1))
	values := []string{"", "0", "1", "7", "-1", "x", "1e3", "99999999999999999999"}
	good := map[string]int{"0": 0, "1": 1, "7": 7}
	pick := func() map[string]string {
		out := map[string]string{}
		for _, row := range table() {
			if row.Label != "" && r.IntN(2) == 0 {
				out[row.Label] = values[r.IntN(len(values))]
			}
		}
		return out
	}
	for range 2000 {
		base, _ := Load(env("WARM_ENI_TARGET", fmt.Sprint(r.IntN(4)), "WARM_IP_TARGET", fmt.Sprint(r.IntN(4)), "MAX_ENI", fmt.Sprint(1+r.IntN(4))))
		first, second := pick(), pick()
		before, _ := base.WithLabels(first, base)
		c, problems := base.WithLabels(second, before)
		bad := 0
		for _, row := range table() {
			if row.Label == "" {
				continue
			}
			got, want := *row.bind.number(&c), *row.bind.number(&base)
			if text, there := second[row.Label]; there {
				n, ok := good[text]
				if want = n; !ok {
					bad++
					want = *row.bind.number(&before)
				}
			}
			if got != want {
				t.Fatalf("%s is %d, want %d: labels %v, then %v", row.Name, got, want, first, second)
			}
		}
		if len(problems) != bad {
			t.Fatalf("%d problems of %v, want %d", len(problems), second, bad)
		}
		if none, problems := base.WithLabels(nil, c); targetsOf(none) != targetsOf(base) || len(problems) > 0 {
			t.Fatalf("without labels: %+v, want %+v; %v", targetsOf(none), targetsOf(base), problems)
		}
	}
}

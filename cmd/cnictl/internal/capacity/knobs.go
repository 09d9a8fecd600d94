package capacity

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
)

// assign applies the NAME=VALUE words of a flag to the settings.
func assign(f *cli.Factory, flag string, words []string, s *whatif.Settings) error {
	knobs := whatif.Knobs()
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		i := slices.IndexFunc(knobs, func(k whatif.Knob) bool { return k.Name == name })
		if !ok || i < 0 {
			var names []string
			for _, k := range knobs {
				names = append(names, k.Name)
			}
			e := &cli.Error{Code: cli.ExitUsage, What: fmt.Sprintf("--%s %s: want NAME=VALUE", flag, word),
				Do: "one of " + strings.Join(names, ", ")}
			if near := query.Near(name, names); ok && len(near) > 0 {
				e.What, e.Do = fmt.Sprintf("--%s: unknown setting %s", flag, name), "did you mean "+near[0]+"?"
			}
			return e
		}
		if err := knobs[i].Set(s, value); err != nil {
			return cli.Usage("--%s: %s", flag, err)
		}
	}
	return nil
}

// changed returns the settings that differ, in the form of environment variables.
func changed(from, to whatif.Settings) []document.CapacitySetting {
	out := []document.CapacitySetting{}
	for _, s := range whatif.Changed(from, to) {
		out = append(out, document.CapacitySetting(s))
	}
	return out
}

// effective warns about settings that the instance type does not support. It switches off
// only those that the pool would not ignore itself.
func effective(f *cli.Factory, s *whatif.Settings) {
	if s.Trunk && s.Instance.TrunkingCompatible == limits.No {
		s.Trunk = false
		f.Warn("%s has no trunk: --pod-eni has no effect", s.Instance.Type)
	}
	if s.PrefixDelegation && !s.Instance.PrefixDelegation() {
		f.Warn("%s has no prefix delegation: the daemon falls back to secondary addresses", s.Instance.Type)
	}
}

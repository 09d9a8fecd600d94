package capacity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
)

// knob is a setting of the pool: its flag, the variable of the daemon's environment ("" for
// kubelet's), and where it is.
type knob struct {
	flag, env string
	of        func(*whatif.Settings) any // *int, *bool or *time.Duration
}

var knobs = []knob{
	{"max-pods", "", func(s *whatif.Settings) any { return &s.MaxPods }},
	{"max-eni", "MAX_ENI", func(s *whatif.Settings) any { return &s.MaxENI }},
	{"prefix-delegation", "ENABLE_PREFIX_DELEGATION", func(s *whatif.Settings) any { return &s.PrefixDelegation }},
	{"custom-networking", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", func(s *whatif.Settings) any { return &s.CustomNetworking }},
	{"pod-eni", "ENABLE_POD_ENI", func(s *whatif.Settings) any { return &s.Trunk }},
	{"warm-eni-target", "WARM_ENI_TARGET", func(s *whatif.Settings) any { return &s.WarmENI }},
	{"warm-ip-target", "WARM_IP_TARGET", func(s *whatif.Settings) any { return &s.WarmIP }},
	{"minimum-ip-target", "MINIMUM_IP_TARGET", func(s *whatif.Settings) any { return &s.MinimumIP }},
	{"warm-prefix-target", "WARM_PREFIX_TARGET", func(s *whatif.Settings) any { return &s.WarmPrefix }},
	{"", "IP_COOLDOWN_PERIOD", func(s *whatif.Settings) any { return &s.Cooldown }},
}

// name is the variable, or kubelet's setting.
func (k knob) name() string {
	if k.env == "" {
		return "maxPods"
	}
	return k.env
}

// text is the value as the daemon reads it.
func (k knob) text(s whatif.Settings) string {
	switch v := k.of(&s).(type) {
	case *int:
		return strconv.Itoa(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *time.Duration:
		return strconv.Itoa(int(v.Seconds()))
	}
	return ""
}

// set reads a value.
func (k knob) set(s *whatif.Settings, text string) error {
	switch v := k.of(s).(type) {
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s is %q: want true or false", k.name(), show.Safe(text))
		}
		*v = b
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > introspect.MaxTarget {
			return fmt.Errorf("%s is %q: want 0 to %d", k.name(), show.Safe(text), introspect.MaxTarget)
		}
		if d, ok := v.(*time.Duration); ok {
			*d = time.Duration(n) * time.Second
		} else {
			*v.(*int) = n
		}
	}
	return nil
}

// assign reads NAME=VALUE for the given flag.
func assign(f *cli.Factory, flag string, words []string, s *whatif.Settings) error {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		i := slices.IndexFunc(knobs, func(k knob) bool { return k.name() == name })
		if !ok || i < 0 {
			var names []string
			for _, k := range knobs {
				names = append(names, k.name())
			}
			e := &cli.Error{Code: cli.ExitUsage, What: fmt.Sprintf("--%s %s: want NAME=VALUE", flag, show.Safe(word)), Do: "one of " + strings.Join(names, ", ")}
			if near := query.Near(name, names); ok && len(near) > 0 {
				e.What, e.Do = fmt.Sprintf("--%s: unknown setting %s", flag, show.Safe(name)), "did you mean "+near[0]+"?"
			}
			return e
		}
		if err := knobs[i].set(s, value); err != nil {
			return cli.Usage("--%s: %s", flag, err)
		}
	}
	return nil
}

// changed are the settings that differ, as the environment has them.
func changed(from, to whatif.Settings) []introspect.CapacitySetting {
	out := []introspect.CapacitySetting{}
	for _, k := range knobs {
		if text := k.text(to); text != k.text(from) {
			out = append(out, introspect.CapacitySetting{Name: k.name(), Value: text})
		}
	}
	return out
}

// effective warns of settings that the type does not know, and switches them off where the
// pool would have them.
func effective(f *cli.Factory, s *whatif.Settings) {
	if s.Trunk && s.Instance.TrunkingCompatible == limits.No {
		s.Trunk = false
		f.Warn("%s has no trunk: --pod-eni has no effect", s.Instance.Type)
	}
	if s.PrefixDelegation && !s.Instance.PrefixDelegation() {
		f.Warn("%s has no prefix delegation: the daemon falls back to secondary addresses", s.Instance.Type)
	}
}

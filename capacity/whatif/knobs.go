package whatif

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Knob is a setting of the pool.
type Knob struct {
	Name string // the variable in the daemon's environment; maxPods is kubelet's
	Flag string // of cnictl capacity; "" if none
	of   func(*Settings) any
}

var knobs = []Knob{
	{"maxPods", "max-pods", func(s *Settings) any { return &s.MaxPods }},
	{"MAX_ENI", "max-eni", func(s *Settings) any { return &s.MaxENI }},
	{"ENABLE_PREFIX_DELEGATION", "prefix-delegation", func(s *Settings) any { return &s.PrefixDelegation }},
	{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "custom-networking", func(s *Settings) any { return &s.CustomNetworking }},
	{"ENABLE_POD_ENI", "pod-eni", func(s *Settings) any { return &s.Trunk }},
	{"WARM_ENI_TARGET", "warm-eni-target", func(s *Settings) any { return &s.WarmENI }},
	{"WARM_IP_TARGET", "warm-ip-target", func(s *Settings) any { return &s.WarmIP }},
	{"MINIMUM_IP_TARGET", "minimum-ip-target", func(s *Settings) any { return &s.MinimumIP }},
	{"WARM_PREFIX_TARGET", "warm-prefix-target", func(s *Settings) any { return &s.WarmPrefix }},
	{"IP_COOLDOWN_PERIOD", "", func(s *Settings) any { return &s.Cooldown }},
}

// maxKnob limits each number.
const maxKnob = math.MaxInt32

// Knobs returns all settings except the instance, in the order in which they are shown.
func Knobs() []Knob { return slices.Clone(knobs) }

// Text formats the value as the daemon reads it.
func (k Knob) Text(s Settings) string {
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

// Set parses a value and sets it.
func (k Knob) Set(s *Settings, text string) error {
	switch v := k.of(s).(type) {
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s is %q: want true or false", k.Name, text)
		}
		*v = b
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxKnob {
			return fmt.Errorf("%s is %q: want 0 to %d", k.Name, text, maxKnob)
		}
		if d, ok := v.(*time.Duration); ok {
			*d = time.Duration(n) * time.Second
		} else {
			*v.(*int) = n
		}
	}
	return nil
}

// Step adds by to a number, which does not drop below 0; it toggles a switch.
func (k Knob) Step(s *Settings, by int) {
	switch v := k.of(s).(type) {
	case *int:
		*v = max(0, min(*v+by, maxKnob))
	case *bool:
		*v = !*v
	case *time.Duration:
		*v = max(0, *v+time.Duration(by)*time.Second)
	}
}

// Setting is a variable of the daemon's environment.
type Setting struct{ Name, Value string }

// Changed returns the settings that differ, as in the environment.
func Changed(from, to Settings) []Setting {
	var out []Setting
	for _, k := range knobs {
		if text := k.Text(to); text != k.Text(from) {
			out = append(out, Setting{k.Name, text})
		}
	}
	return out
}

// DaemonSetPatch returns a strategic merge patch with these settings; "" if there are
// none.
func DaemonSetPatch(env []Setting) string {
	if len(env) == 0 {
		return ""
	}
	text := "spec:\n  template:\n    spec:\n      containers:\n      - name: aws-node\n        env:\n"
	for _, s := range env {
		text += fmt.Sprintf("        - name: %s\n          value: %q\n", s.Name, s.Value)
	}
	return text
}

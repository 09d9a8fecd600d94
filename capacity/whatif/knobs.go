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
	Name string // of the variable in the daemon's environment; maxPods is kubelet's
	Flag string // of cnictl capacity; "": it has none
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

// maxKnob bounds each number.
const maxKnob = math.MaxInt32

// Knobs are all settings but the instance, in the order in which they are shown.
func Knobs() []Knob { return slices.Clone(knobs) }

// Text is the value as the daemon reads it.
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

// Set reads a value.
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

// Step raises a number by so much, or lowers it to 0 at least; a switch changes over.
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

// Setting is one of the daemon's environment.
type Setting struct{ Name, Value string }

// Changed are the settings that differ, as the environment has them.
func Changed(from, to Settings) []Setting {
	var out []Setting
	for _, k := range knobs {
		if text := k.Text(to); text != k.Text(from) {
			out = append(out, Setting{k.Name, text})
		}
	}
	return out
}

// DaemonSetPatch is a strategic merge patch with these settings; "" for none.
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

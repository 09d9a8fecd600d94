package ipamd

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"cnictl/daemon/config"
	"cnictl/daemon/keeper"
)

// targets are the settings with what the Node's labels change: the pool's targets.
type targets struct {
	base     config.Config // of the environment
	about    config.Facts
	declared []config.Problem // of loading base

	// Only used by the goroutine that receives the changes of the Node.
	labels   map[string]string // those that matter
	config   config.Config     // with them
	reported []config.Problem

	settings atomic.Pointer[[]config.Setting]
}

func newTargets(base config.Config, about config.Facts, problems []config.Problem) *targets {
	t := &targets{base: base, about: about, declared: problems, config: base, reported: config.Validate(base, about)}
	t.describe(t.reported)
	return t
}

// label takes the Node's labels. It returns the targets and the problems that are new with them.
func (t *targets) label(labels map[string]string) (keeper.Targets, []config.Problem) {
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !strings.HasPrefix(name, config.LabelDomain+"/") })
	if maps.Equal(labels, t.labels) { // the kubelet writes the Node every few minutes
		return t.targets(), nil
	}
	c, problems := t.base.WithLabels(labels, t.config)
	problems = append(problems, config.Validate(c, t.about)...)
	t.labels, t.config = labels, c
	t.describe(problems)
	news := beyond(problems, t.reported)
	t.reported = problems
	return t.targets(), news
}

func (t *targets) targets() keeper.Targets {
	return keeper.TargetsOf(policyOf(t.config.For(t.about), false, 0))
}

func (t *targets) describe(problems []config.Problem) {
	t.settings.Store(new(t.config.For(t.about).Describe(slices.Concat(t.declared, problems))))
}

// beyond returns the problems that are not known.
func beyond(problems, known []config.Problem) []config.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p config.Problem) bool { return slices.Contains(known, p) })
}

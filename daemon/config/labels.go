package config

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
)

// LabelDomain is the domain of the labels that set a node's targets.
const LabelDomain = "cnictl.dev"

const acceptsLabel = "an integer ≥ 0"

// LabelOf returns the label that overrides a variable on its node; "" if none does.
func LabelOf(variable string) string {
	r, _ := lookup(variable)
	return r.Label
}

// FromLabels names the settings that labels of the Node override.
func FromLabels(settings []Setting) (names []string) {
	for _, s := range settings {
		if s.Source == FromLabel {
			names = append(names, s.Name)
		}
	}
	return names
}

// WithLabels returns the config of a Node with these labels: where a variable has a label and the
// Node carries it, the label counts; 0 sets no target. c is the config without labels, before the
// one in effect until now, whose value stays where a label's cannot be used.
func (c Config) WithLabels(labels map[string]string, before Config) (Config, []Problem) {
	if !c.TargetsFromLabels {
		return c, nil
	}
	c.origins = maps.Clone(c.origins)
	var problems []Problem
	for _, r := range table() {
		text, there := labels[r.Label]
		if r.Label == "" || !there {
			continue
		}
		o := c.origins[r.Name]
		o.label = &text
		into := r.bind.number(&c)
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			*into, o.inUse = n, text
		} else {
			if o.inUse = before.origins[r.Name].inUse; o.inUse != "" {
				*into = *r.bind.number(&before)
			}
			problems = append(problems, Problem{
				Variable: r.Name, Label: r.Label, Value: text, Accepted: acceptsLabel,
				Effect: fmt.Sprintf("%s stays %s", r.Name, cmp.Or(r.effective(&c), "unset")),
			})
		}
		o.shown = r.effective(&c)
		c.origins[r.Name] = o
	}
	return c, problems
}

// at starts a problem with the value of a variable, as its label or the environment has it.
func (c Config) at(variable string) Problem {
	o := c.origins[variable]
	if o.inUse == "" {
		return Problem{Variable: variable, Value: o.declared}
	}
	r, _ := lookup(variable)
	return Problem{Variable: variable, Value: o.inUse, Label: r.Label}
}

package config

import (
	"slices"
	"strings"
)

// Setting is one variable as configured on this node.
type Setting struct {
	Name      string
	Kind      Kind
	Meaning   string
	Set       bool
	Declared  string   // as written; "" if not set; see Hidden
	Effective string   // what is in use; "" = nothing; see Hidden
	Default   string   // in code
	Source    Source   // where Effective comes from
	Label     *string  // as the Node's label has it; nil = no label
	Problems  []string // what is wrong with it
	Support   Support
}

// Source says where an effective value comes from.
type Source string

const (
	FromEnvironment Source = "environment"
	FromLabel       Source = "label" // of the Node
	FromDefault     Source = "default"
	FromOther       Source = "derived" // another variable or the instance type decides
)

// Hidden replaces what is not shown: a secret, or the user and password of a URL.
const Hidden = "(hidden)"

// public returns a value as it may be shown. In a URL everything before the last @ counts
// as user and password, because a password that should have been escaped may contain any
// character; paths of the URLs here have no @.
func (r Row) public(value string) string {
	if value == "" {
		return ""
	}
	if r.Secret {
		return Hidden
	}
	at := strings.LastIndexByte(value, '@')
	if r.bind.kind != URL || at < 0 {
		return value
	}
	scheme := strings.Index(value[:at], "://")
	if scheme < 0 {
		return Hidden + value[at:]
	}
	return value[:scheme+len("://")] + Hidden + value[at:]
}

// WithProblems counts the settings that have a problem.
func WithProblems(settings []Setting) int {
	n := 0
	for _, s := range settings {
		if len(s.Problems) > 0 {
			n++
		}
	}
	return n
}

// Describe lists all settings in table order, each with its problems from Load and
// Validate.
func (c Config) Describe(problems []Problem) []Setting {
	out := make([]Setting, 0, len(table()))
	for _, row := range table() {
		o := c.origins[row.Name]
		s := Setting{
			Name: row.Name, Kind: row.bind.kind, Meaning: row.Meaning, Set: o.set, Declared: o.declared,
			Default: row.Default, Support: row.Support, Label: o.label,
			Effective: row.effective(&c),
		}
		s.Source = row.source(&c, s.Effective)
		for _, p := range problems {
			if slices.Contains(p.variables(), row.Name) {
				s.Problems = append(s.Problems, p.String())
			}
		}
		s.Declared, s.Effective = row.public(s.Declared), row.public(s.Effective)
		out = append(out, s)
	}
	return out
}

func (r Row) effective(c *Config) string {
	switch {
	case r.bind.show != nil:
		return r.bind.show(c)
	case r.Support == Passed:
		return c.declared(r.Name)
	}
	return ""
}

func (r Row) source(c *Config, effective string) Source {
	o := c.origins[r.Name]
	switch {
	case o.shown != effective:
		return FromOther
	case o.inUse != "":
		return FromLabel
	case o.taken:
		return FromEnvironment
	}
	return FromDefault
}

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one setting that is not used as written, may not be, or does harm. It reads as
// one sentence: "NAME=value is at fault; what is used instead".
type Problem struct {
	Variable string // the one to change; several are joined by ", "
	Label    string // the label of the Node that holds the value; "" = the environment does
	Value    string // as written; "" when not set or secret
	Accepted string // what would be accepted, phrased to follow "it must be"
	Fault    string // what is wrong, phrased to follow the variable; "" = it follows from Accepted
	Effect   string // what happens instead, or what to do
	Fatal    bool   // the daemon must not start
	Text     string // the message that guides and issues search for, before the sentence; "" = none
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Text != "" {
		b.WriteString(strings.TrimSuffix(p.Text, ".") + ": ")
	}
	if p.Label != "" {
		fmt.Fprintf(&b, "label %s=%q of the Node", p.Label, p.Value)
	} else if b.WriteString(strings.ReplaceAll(p.Variable, ", ", " and ")); p.Value != "" {
		fmt.Fprintf(&b, "=%q", p.Value)
	}
	b.WriteString(" " + p.fault() + "; " + cmp.Or(p.Effect, "the value is not used"))
	return b.String()
}

func (p Problem) fault() string {
	switch {
	case p.Fault != "":
		return p.Fault
	case p.Accepted == "":
		return "cannot be used"
	case p.Value == "" && p.Label == "":
		return "must be " + p.Accepted
	}
	return "cannot be used, it must be " + p.Accepted
}

// Fatal returns the problems that forbid a start.
func Fatal(problems []Problem) []Problem {
	var out []Problem
	for _, p := range problems {
		if p.Fatal {
			out = append(out, p)
		}
	}
	return out
}

// ReadBy reports whether a binary reads one of the variables.
func (p Problem) ReadBy(who Reader) bool {
	return slices.ContainsFunc(p.variables(), func(name string) bool {
		r, ok := lookup(name)
		return ok && r.ReadBy(who)
	})
}

func (p Problem) variables() []string { return strings.Split(p.Variable, ", ") }

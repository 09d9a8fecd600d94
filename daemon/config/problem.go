package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Problem is one setting that is not used as written, or may not be.
type Problem struct {
	Variable string // the one to change; several are joined by ", "
	Value    string // as written; "" when not set or secret
	Accepted string // what would be accepted
	Effect   string // what happens instead
	Fatal    bool   // the daemon must not start
	Text     string // the message that guides and issues search for; "" = none
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Text != "" {
		b.WriteString(strings.TrimSuffix(p.Text, ".") + ": ")
	}
	b.WriteString(p.Variable)
	if p.Value != "" {
		fmt.Fprintf(&b, "=%q", p.Value)
	}
	if p.Accepted != "" {
		b.WriteString(": accepted: " + p.Accepted)
	}
	b.WriteString(": " + cmp.Or(p.Effect, "the value is not used"))
	return b.String()
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

func (p Problem) variables() []string { return strings.Split(p.Variable, ", ") }

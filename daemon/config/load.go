package config

import (
	"cmp"
	"fmt"
)

// Load reads every variable of the table through getenv, which reports whether a variable
// is set. Unusable values leave the default in place and yield problems, in table order.
// Fatal ones mean that the daemon must not start; the same holds for Validate, the second
// half of the check.
func Load(getenv func(string) (string, bool)) (Config, []Problem) {
	c := Config{origins: make(map[string]origin, len(table()))}
	var problems []Problem
	for _, row := range table() {
		if row.bind.load != nil && row.Default != "" {
			row.bind.load(&c, row.Default)
		}
		before := row.effective(&c)
		var o origin
		if o.declared, o.set = getenv(row.Name); o.set {
			found := row.apply(&c, o.declared)
			problems = append(problems, found...)
			used := row.Support != NoOp && !(o.declared == "" && row.emptyUnset)
			o.taken = used && (len(found) == 0 || row.effective(&c) != before)
		}
		o.shown = row.effective(&c)
		if row.Support == Passed {
			o.shown = o.declared
		}
		c.origins[row.Name] = o
	}
	if !c.origins["POD_MTU"].taken {
		c.PodMTU = c.ENIMTU
	}
	return c, problems
}

func (r Row) apply(c *Config, value string) []Problem {
	if r.Support == NoOp {
		return []Problem{{Variable: r.Name, Value: value, Fault: "is not read", Effect: r.Deprecated}}
	}
	if r.bind.load == nil || value == "" && r.emptyUnset {
		return nil
	}
	problems := r.bind.load(c, value)
	for i := range problems {
		p := &problems[i]
		p.Variable = r.Name
		p.Value = cmp.Or(p.Value, value)
		p.Value = r.public(p.Value)
		p.Accepted = cmp.Or(p.Accepted, r.bind.accepts)
		p.Effect = cmp.Or(p.Effect, r.fallback())
	}
	return problems
}

func (r Row) fallback() string {
	if r.Default == "" {
		return "it counts as not set"
	}
	return fmt.Sprintf("the default %s is used", r.Default)
}

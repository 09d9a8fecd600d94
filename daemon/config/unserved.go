package config

// unserved lists the modes that this version refuses, in one place: serving one
// means removing its line here and changing its row's Support. A mode that is
// refused stops the start; running without it would do something else than asked.
var unserved = []struct {
	variable string
	on       func(Config) bool
	mode     string
}{
	{"ENABLE_V6_EGRESS", func(c Config) bool { return c.V6Egress }, "IPv6 egress from IPv4 clusters"},
	{"NETWORK_POLICY_ENFORCING_MODE", func(c Config) bool { return c.NetworkPolicyMode != "" }, "calls of the network policy agent"},
}

func checkServed(c Config) []Problem {
	var out []Problem
	for _, u := range unserved {
		if !u.on(c) {
			continue
		}
		p := Problem{
			Variable: u.variable, Value: c.declared(u.variable), Accepted: "unset",
			Fault: "is refused: this version does not serve " + u.mode, Effect: "unset it", Fatal: true,
		}
		if r, _ := lookup(u.variable); r.Kind() == Bool {
			p.Accepted, p.Effect = "unset or false", "unset it or set it to false"
		}
		out = append(out, p)
	}
	return out
}

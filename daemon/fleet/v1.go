package fleet

import (
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
)

// summaryOfV1 makes a summary from upstream's documents. Everything else stays null: see
// complete.
func summaryOfV1(p *introspect.Pool, env *client.IPAMEnv) introspect.Summary {
	s := introspect.Summary{APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Cards: p.Cards}
	for _, e := range p.ENIs {
		if e.Trunk {
			s.Trunk = &introspect.Trunk{Enabled: true, ENIID: e.ID}
		}
		for _, c := range e.CIDRs {
			if c.CIDR.Addr().Is6() {
				s.IPFamily = "ipv6"
			} else if s.IPFamily == "" {
				s.IPFamily = "ipv4"
			}
		}
	}
	if env != nil {
		s.CustomNetworking = env.CustomNetworking
		s.Targets.WarmENI = env.WarmENITarget
		s.Targets.WarmIP = env.WarmIPTarget
	}
	return s
}

package config

import (
	"net/netip"

	"cnictl/daemon/api/introspect"
)

// NetworkEnv is the document /v1/networkutils-env-settings of a daemon with these settings.
func (c Config) NetworkEnv() introspect.NetworkEnv {
	ports := map[SNATPorts]int{SNATPortsNone: 0, SNATPortsHash: 1, SNATPortsPRNG: 2} // upstream's numbers
	return introspect.NetworkEnv{
		ExternalServiceCIDRs: texts(c.ExternalServiceCIDRs), NodePortSupport: c.NodePortSupport, MTU: c.ENIMTU,
		Connmark: c.Connmark, ExcludeSNATCIDRs: texts(c.ExcludeSNATCIDRs), ExternalSNAT: c.ExternalSNAT,
		RandomizeSNAT: ports[c.RandomizeSNAT], VethPrefix: c.VethPrefix,
	}
}

// IPAMEnv is the document /v1/ipamd-env-settings of a daemon with these settings.
func (c Config) IPAMEnv() introspect.IPAMEnv {
	return introspect.IPAMEnv{
		ManageUnschedulable: c.ManageUnschedulable, SubnetDiscovery: c.SubnetDiscovery,
		CustomNetworking: c.CustomNetworking, WarmENITarget: c.WarmENI, WarmIPTarget: c.WarmIP,
	}
}

// texts are the texts of ranges, nil if there are none: upstream prints an unset list as null.
func texts(ranges []netip.Prefix) (out []string) {
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return out
}

//go:build nightly

package hostnet

func init() {
	interrupted = append(interrupted,
		"ip rule del priority 32765; ip -6 rule del priority 32765",
		"ip rule add priority 0 lookup local; ip rule del priority 20",
		"iptables-legacy -t mangle -D PREROUTING 2",
	)
}

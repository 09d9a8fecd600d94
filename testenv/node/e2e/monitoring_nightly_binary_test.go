//go:build nightly

package e2e_test

import "maps"

func init() {
	maps.Copy(soundNodes, map[string]soundNode{
		"secondary IPs": {env: releasing},
		"IPv6 egress":   {env: merged(releasing, env{"ENABLE_V6_EGRESS": "true"}), ipv6: true, expected: egressGuard},
	})
}

package egress

import (
	"encoding/json"

	"cnictl/daemon/hostnet/egress"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// Results returns what ADD prints with egress off and on.
func Results(prevResult []byte, version string, pair egress.Pair, netns string) (off, on []byte, err error) {
	prev, err := netconf.ParseResult(prevResult, version)
	if err != nil {
		return nil, nil, err
	}
	now, err := readResult(prevResult, version)
	if err != nil {
		return nil, nil, err
	}
	r, err := withInterfaces(now, pair, netns).GetAsVersion(version)
	if err != nil {
		return nil, nil, err
	}
	on, err = json.MarshalIndent(r, "", "    ")
	return skel.PrintResult(prev, version), on, err
}

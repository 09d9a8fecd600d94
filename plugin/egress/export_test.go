package egress

import (
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// Results are what ADD prints: off, and on with two interfaces.
func Results(prevResult []byte, version string, more ...netconf.ResultInterface) (off, on []byte, err error) {
	prev, err := netconf.ParseResult(prevResult, version)
	if err != nil {
		return nil, nil, err
	}
	on, err = withInterfaces(prev, version, more...)
	return skel.PrintResult(prev, version), on, err
}

package names

import (
	"strings"

	"cnictl/daemon/api/introspect"
)

// ENIFlags lists what is special about an ENI, "" for an ordinary one.
func ENIFlags(e introspect.NodeENI) string {
	var out []string
	for _, f := range []struct {
		on   bool
		name string
	}{
		{e.Primary, introspect.ENIFlagPrimary}, {e.Trunk, introspect.ENIFlagTrunk},
		{e.EFA, introspect.ENIFlagEFA}, {e.Excluded, introspect.ENIFlagExcluded},
	} {
		if f.on {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, ",")
}

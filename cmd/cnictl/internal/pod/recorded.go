package pod

import (
	"context"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
)

// recorded is what a recording has of the pod: its addresses. It holds those of the nodes
// that were open while it was made, and nothing of the kernel or of Kubernetes.
func (in Evidence) recorded(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet) (Evidence, error) {
	list := nodes.Sweep(ctx, fleet.Query{ENIs: true})
	in.At = f.Now().UTC()
	missing := 0
	for _, n := range list.Items {
		if n.ENIs == nil {
			missing++
			continue
		}
		if found := interfacesOf(n.ENIs, in.Pod); len(found) > 0 {
			for i := range found {
				found[i].Problem = "what the kernel had is not recorded"
			}
			in.Node, in.ENIs, in.Interfaces, in.Asked = n.Metadata.Name, n.ENIs, found, true
			return in, nil
		}
	}
	name, of := in.Pod.Namespace+"/"+in.Pod.Name, show.Plural(len(list.Items), "node", "nodes")
	e := &cli.Error{
		Code: cli.ExitNotFound, What: "pod " + name + " not found", Why: "no pool of " + of + " had an address for it at " + in.At.Format(time.RFC3339),
		Do: f.Name + " replay " + f.Globals.Replay + " --info tells the times of the recording, which --at chooses from",
	}
	if missing > 0 {
		e.Code = cli.ExitPartial
		e.Why = "no pool in the recording had an address for it at " + in.At.Format(time.RFC3339) + ", which has the addresses only of nodes that were open while it was made: those of " + strconv.Itoa(missing) + " of " + of + " are missing"
	}
	return in, e
}

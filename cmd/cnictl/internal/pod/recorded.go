package pod

import (
	"context"
	"slices"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
)

// recorded reads what a recording has about the pod: its address and, for nodes with recorded
// documents, the state in the daemon, the kernel and Kubernetes.
func (in Evidence) recorded(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet) (Evidence, error) {
	list := nodes.Sweep(ctx, fleet.Query{ENIs: true})
	in.At = f.Now().UTC()
	missing, known := 0, podsOf(list.Items)
	for _, n := range list.Items {
		var d watch.Detail
		if f.Recording != nil {
			d = f.Recording.Detail(ctx, n.Metadata.Name, recordedWants, watch.Query{Pod: in.Pod})
		}
		if in.on(n, d) {
			return in, nil
		}
		for _, p := range d.Pods {
			known = append(known, p.PodRef)
		}
		if n.ENIs == nil {
			missing++
		}
	}
	name, of := in.Pod.Namespace+"/"+in.Pod.Name, human.Plural(len(list.Items), "node", "nodes")
	e := &cli.Error{
		Code: cli.ExitNotFound, What: "pod " + name + " not found",
		Why: "none of " + of + " held an address for it at " + in.At.Format(time.RFC3339),
		Do:  f.Name + " replay " + f.Globals.Replay + " --info shows the times that --at accepts",
	}
	if missing > 0 {
		e.Code = cli.ExitPartial
		e.Why = "no recorded node held an address for it at " + in.At.Format(time.RFC3339) + "; the addresses of " + strconv.Itoa(missing) +
			" of " + of + " are not included in this recording"
	}
	return in, suggest(f, e, in.Pod, known)
}

// recordedWants are the documents that mention a pod.
const recordedWants = watch.WantPod | watch.WantPods | watch.WantFailures | watch.WantPlan | watch.WantEvents | watch.WantKubeEvents

// on takes the evidence of a node if the pod is on it, or failed to get an address there.
func (in *Evidence) on(n document.NodeIPAM, d watch.Detail) bool {
	var kube *watch.Pod
	for i := range d.Pods {
		if d.Pods[i].PodRef == in.Pod {
			kube = &d.Pods[i]
		}
	}
	found := interfacesOf(n.ENIs, in.Pod, kube)
	for i := range found {
		found[i].Problem = "kernel state: " + record.NotIncluded
	}
	if d.Pod != nil && len(found) > 0 { // the address may have been removed after the kernel was read
		found = d.Pod.Interfaces
	}
	failed := d.Failures != nil && slices.ContainsFunc(d.Failures.Items, func(f introspect.Failure) bool { return f.Pod == in.Pod })
	if len(found) == 0 && kube == nil && !failed {
		return false
	}
	in.Node, in.ENIs, in.Interfaces, in.Kube, in.Asked = n.Metadata.Name, n.ENIs, found, kube, n.ENIs != nil
	if d.Failures != nil {
		in.Failures = d.Failures.Items
	}
	if d.Plan != nil {
		in.Blocked, in.Plan = d.Plan.Blocked, d.Plan
	}
	if d.Events != nil {
		in.Daemon = d.Events.Items
	}
	for _, e := range d.KubeEvents {
		if e.Kind == "Pod" && e.Object == in.Pod.Namespace+"/"+in.Pod.Name {
			in.Events = append(in.Events, e)
		}
	}
	if n.Summary != nil {
		in.Waiting, in.Summary = n.Summary.WaitingADDs, n.Summary
	}
	return true
}

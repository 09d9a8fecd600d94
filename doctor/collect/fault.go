package collect

import (
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/doctor/evidence"
)

// fault is how faulty a node looks from outside.
type fault int

const (
	sound    fault = iota
	suspect        // something looks wrong
	faulty         // pods fail, or the daemon does not serve
	waitSoon = 15 * time.Second
	recently = time.Hour
)

// settled are problems that the sweep shows completely: reading more of the node adds nothing.
var settled = []string{fleet.CodeMaxPodsOver, fleet.CodeMaxPodsUnder, fleet.CodeMaxPodsAtRisk, fleet.CodeCordoned, fleet.CodeTerminating,
	fleet.CodeNoDaemon}

// faultOf rates a node by the sweep and by its objects in Kubernetes: problems of its pool,
// failures that its daemon reports, pods that wait for their network, a daemon that is not ready
// or was restarted, and warnings about the CNI.
func faultOf(n document.NodeIPAM, r *evidence.Reading) fault {
	worst := sound
	for _, p := range fleet.Problems(n) {
		switch {
		case slices.Contains(settled, p.Code):
		case p.Severity == document.SeverityError:
			worst = faulty
		case p.Severity == document.SeverityWarning:
			worst = max(worst, suspect)
		}
	}
	if s := n.Summary; s != nil && (len(s.Backoffs) > 0 || n.SampledAt != nil &&
		slices.ContainsFunc(s.LastErrors, func(e introspect.LastError) bool { return n.SampledAt.Sub(e.At) < recently })) {
		worst = max(worst, suspect)
	}
	return max(worst, kubernetesFault(r))
}

func kubernetesFault(r *evidence.Reading) fault {
	worst := sound
	for _, p := range r.Pods.Content {
		if p.Node != nil && !p.HostNetwork && p.Phase == "Pending" && len(p.IPs) == 0 && (p.Reason == "ContainerCreating" || p.Reason == "") &&
			r.At.Sub(p.CreatedAt) > waitSoon {
			worst = faulty
		}
	}
	for _, p := range r.DaemonPods.Content {
		for _, c := range p.Containers {
			switch {
			case !c.Init && (c.Ready == nil || !*c.Ready), c.State == "waiting":
				worst = faulty
			case c.RestartsLastHour != nil && *c.RestartsLastHour > 0:
				worst = max(worst, suspect)
			}
		}
	}
	for _, e := range r.Events.Content {
		if e.Type == "Warning" && r.At.Sub(e.At) < recently &&
			(kube.OfCNI(kube.DefaultNamespace, e.Source, e.Kind, e.Name) || e.Reason == "FailedCreatePodSandBox" && e.Kind == "Pod") {
			worst = max(worst, suspect)
		}
	}
	return worst
}

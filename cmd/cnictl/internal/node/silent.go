package node

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/show"
)

// showSilent shows what Kubernetes knows about a node whose daemon does not respond, and
// returns the error that says why.
func showSilent(ctx context.Context, f *cli.Factory, n document.NodeIPAM, why error) error {
	var e *cli.Error
	if n.Summary != nil || n.Object == nil || !errors.As(why, &e) || e.Code != cli.ExitUnreachable {
		return why
	}
	c, err := access.Kubernetes(ctx, f)
	if err != nil || c == nil {
		return why // with a recording there is no Kubernetes to ask
	}
	defer c.Close()
	ctx, cancel := f.Deadline(ctx)
	defer cancel()
	u, err := c.NodeUse(ctx, n.Metadata.Name)
	n.Use = useOf(u, err)
	if output.Structured(f) {
		err = output.PrintDocument(f, store.NewNode(n).Document(), false)
	} else {
		err = output.PrintLines(f, silentLines(n, output.Page{Opts: output.TableOptions(f)}))
	}
	return cmp.Or(err, why)
}

// useOf returns a node's use; on an error, the reason only.
func useOf(u watch.NodeUse, err error) *document.NodeUse {
	if err != nil {
		return &document.NodeUse{Reason: fleet.ErrorOf(err).Message}
	}
	out := &document.NodeUse{Pods: &u.Pods, PodENIRequests: &u.Branch, Waiting: &u.Waiting, CNINode: u.CNINode}
	if u.CNINodeError != nil {
		out.Reason = u.CNINodeError.Message
	}
	return out
}

// silentLines formats what Kubernetes knows about a node, with its use.
func silentLines(n document.NodeIPAM, p output.Page) []string {
	o, u := *n.Object, *n.Use
	p.Line(heading(n.Metadata.Name, o.InstanceType, o.InstanceID, o.Zone)...)
	daemon := "no aws-node pod on this node"
	if d := o.Daemon; d != nil {
		daemon = join(d.Name, d.Phase, human.Plural(d.Restarts, "restart", "restarts"), "image "+d.Image)
	}
	p.Field("daemon", daemon)
	p.Field("max-pods", show.Int(o.MaxPods))
	pods := show.Int(u.Pods)
	if u.Waiting != nil && *u.Waiting > 0 {
		pods = join(pods, strconv.Itoa(*u.Waiting)+" waiting for an address")
	}
	p.Field("pods", pods)
	p.Field("branch", join(show.Int(u.PodENIRequests)+" requested", "limit "+show.Int(o.BranchENIs)))
	p.Field("CNINode", cniNode(u))
	if u.Reason != "" {
		p.Field("unknown", u.Reason)
	}
	return p.Lines
}

func cniNode(u document.NodeUse) string {
	switch {
	case u.CNINode == nil && u.Reason != "":
		return show.Unknown
	case u.CNINode == nil:
		return "none"
	}
	features := []string{u.CNINode.Name}
	for _, f := range u.CNINode.Features {
		features = append(features, strings.TrimSuffix(f.Name+"="+f.Value, "="))
	}
	return join(features...)
}

package node

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// kubernetes writes what the API server knows about a node that cannot be read.
func (m *Model) kubernetes(sheet *draw.Sheet, n *store.Node) {
	if n == nil || n.Object == nil {
		return
	}
	o := n.Object
	sheet.Head("FROM KUBERNETES", "")
	sheet.Field("type", draw.T(draw.Text, show.OrUnknown(o.InstanceType)))
	sheet.Field("max-pods", draw.T(draw.Text, show.Int(o.MaxPods)))
	m.use(sheet)
	sheet.Field("branch ENIs", draw.T(draw.Text, show.Int(o.BranchENIs)))
	if d := o.Daemon; d != nil {
		sheet.Field("aws-node", draw.T(draw.Text, d.Name+"  "+d.Phase+"  "+human.Plural(d.Restarts, "restart", "restarts")+"  "+d.Image))
	} else {
		sheet.Field("aws-node", draw.T(draw.Warn, "no such pod on the node"))
	}
}

// use writes the pods of the node and its CNINode, if they were requested.
func (m *Model) use(sheet *draw.Sheet) {
	e, failed := m.docs.Error[watch.WantNodeUse]
	u := m.docs.Last.Use
	switch {
	case u == nil && failed && e.Reason != introspect.ReasonNotServed:
		sheet.Field("pods", draw.T(draw.Faint, "not known: "+pages.Reason(e)))
		return
	case u == nil:
		return
	}
	pods := []draw.Span{draw.T(draw.Text, strconv.Itoa(u.Pods)), draw.T(draw.Faint, ", "+strconv.Itoa(u.Network)+" with a pod network")}
	if u.Waiting > 0 {
		pods = append(pods, draw.T(draw.Faint, ", "), draw.T(draw.Warn, strconv.Itoa(u.Waiting)+" without an address yet"))
	}
	if u.Branch > 0 {
		pods = append(pods, draw.T(draw.Faint, ", "+strconv.Itoa(u.Branch)+" with branch ENIs"))
	}
	sheet.Field("pods", pods...)
	switch {
	case u.CNINodeError != nil:
		sheet.Field("CNINode", draw.T(draw.Faint, "not known: "+pages.Reason(*u.CNINodeError)))
	case u.CNINode == nil:
		sheet.Field("CNINode", draw.T(draw.Faint, "none"))
	default:
		sheet.Field("CNINode", draw.T(draw.Text, features(*u.CNINode)))
	}
}

// features describes the features of a CNINode.
func features(c watch.CNINode) string {
	var out []string
	for _, f := range c.Features {
		text := f.Name
		if f.Value != "" {
			text += "=" + f.Value
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "without features"
	}
	return strings.Join(out, "  ")
}

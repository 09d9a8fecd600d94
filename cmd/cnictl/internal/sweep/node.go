package sweep

import (
	"context"
	"errors"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// NodeFailed is the error for a node that could not be read.
func NodeFailed(f *cli.Factory, n document.NodeIPAM) *cli.Error {
	e := &cli.Error{Code: cli.ExitUnreachable, What: "node " + n.Metadata.Name + " could not be read"}
	if n.Error != nil {
		e.Why, e.Do = n.Error.Message, hint(f, n)
	}
	return e
}

// hint suggests how to make a node readable. That differs between a node known from
// Kubernetes, reached through the API server, and a host.
func hint(f *cli.Factory, n document.NodeIPAM) string {
	if n.Object == nil {
		return client.Hint(n.Error.Reason)
	}
	pods := "kubectl -n " + f.Globals.DaemonSetNamespace + " get pods -o wide -l " + f.Globals.DaemonSetSelector
	switch n.Error.Reason {
	case introspect.ReasonForbidden:
		return "kubectl auth can-i create pods --subresource=portforward -n " + f.Globals.DaemonSetNamespace +
			"; the roles are in deploy/rbac/cnictl.yaml"
	case introspect.ReasonNoPod, introspect.ReasonPodNotRunning:
		return pods + " --field-selector spec.nodeName=" + n.Metadata.Name
	case introspect.ReasonRefused, introspect.ReasonOff:
		return "check whether the daemon sets DISABLE_INTROSPECTION=true, or INTROSPECTION_BIND_ADDRESS to a Unix socket (then use --via exec, or " + f.Name + " local on the node)"
	}
	return client.Hint(n.Error.Reason)
}

// One reads one node by name; with name "" the only one. A node that could not be read at all
// is an error; a node that was read in part is returned with a warning.
func One(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, name string, q fleet.Query) (document.NodeIPAM, error) {
	if name == "" {
		name = nodes.Names()[0]
	}
	n, ok := nodes.Node(ctx, name, q)
	switch {
	case !ok:
		return n, access.NotFound(f, name, nodes.Names())
	case n.Error != nil && n.Error.Reason == introspect.ReasonCancelled:
		return n, cli.Exit(cli.ExitInterrupted)
	case n.Summary == nil, q.ENIs && n.ENIs == nil:
		return n, NodeFailed(f, n)
	}
	return n, nil
}

// Config reads the settings of one node.
func Config(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, name string) (introspect.NodeConfig, string, error) {
	if name == "" {
		name = nodes.Names()[0]
	}
	doc, ok, err := nodes.Config(ctx, name)
	if !ok {
		return doc, name, access.NotFound(f, name, nodes.Names())
	}
	return doc, name, DocumentFailed(name, "its settings", "kubectl -n kube-system get daemonset aws-node -o yaml", err)
}

// DocumentFailed is the error for a document of a node that could not be read; nil if err is. what
// names the document, and instead says what to do if the node does not have it.
func DocumentFailed(name, what, instead string, err error) error {
	var e *client.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Reason == introspect.ReasonCancelled:
		return cli.Exit(cli.ExitInterrupted)
	case e.Reason == introspect.ReasonNoEndpoint:
		return &cli.Error{Code: cli.ExitUnreachable, What: "node " + name + " does not report " + what,
			Why: "it runs upstream or an older daemon", Do: instead}
	}
	return &cli.Error{Code: cli.ExitUnreachable, What: "node " + name + " could not be read", Why: e.Err.Error(), Do: e.Hint()}
}

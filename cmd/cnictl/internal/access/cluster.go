package access

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/kube"
)

// connect builds the clients for the named nodes; nil names mean all nodes.
func connect(f *cli.Factory, nodes []string) (*kube.Cluster, kubeconfig.API, error) {
	g := &f.Globals
	api, err := kubeconfig.Find(f)
	if err != nil {
		return nil, kubeconfig.API{}, err
	}
	if err := quietClients(f); err != nil {
		return nil, kubeconfig.API{}, err
	}
	c, err := kube.Connect(kube.Config{
		Rest: api.Rest, Namespace: g.DaemonSetNamespace, Selector: g.DaemonSetSelector, NodeSelector: g.Selector, Nodes: nodes,
		Via: g.Via, UserAgent: f.UserAgent(), Now: f.Now,
	})
	if err != nil {
		return nil, kubeconfig.API{}, ClusterError(f, "set up the connection to "+api.Title, err)
	}
	return c, api, nil
}

// ClusterError describes a failure of the API server to the user: what was wanted, why it
// failed, and what to do.
func ClusterError(f *cli.Factory, what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var known *cli.Error
	if errors.As(err, &known) {
		return known
	}
	e := &cli.Error{Code: cli.ExitUnreachable, What: "could not " + what, Why: err.Error()}
	var failure *kube.Error
	if !errors.As(err, &failure) {
		return e
	}
	e.Do = remedy(f, failure)
	if failure.Reason == introspect.ReasonForbidden && failure.Verb != "" {
		e.Why = "missing permission: " + ruleText(failure.Verb, failure.Resource, failure.Namespace)
	}
	return e
}

// ruleText formats a permission as RBAC has it.
func ruleText(verb, resource, namespace string) string {
	text := verb + " " + resource
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}

// remedy suggests what to do about a failure, with the command.
func remedy(f *cli.Factory, failure *kube.Error) string {
	var missing *exec.Error
	var network net.Error
	switch {
	case failure.Reason == introspect.ReasonForbidden && failure.Verb != "":
		return kube.CanI(failure) + "; the roles are in deploy/rbac/cnictl.yaml"
	case failure.Reason == introspect.ReasonCredential &&
		(errors.As(failure.Err, &missing) || strings.Contains(failure.Err.Error(), "executable")):
		return "install the credential program that the kubeconfig names (aws: https://docs.aws.amazon.com/cli) and make sure it is on the PATH"
	case failure.Reason == introspect.ReasonCredential:
		return "log in again (aws sso login, aws eks update-kubeconfig --name CLUSTER), then: kubectl auth whoami"
	case failure.Reason == introspect.ReasonRefused, failure.Reason == introspect.ReasonTimeout, failure.Reason == introspect.ReasonUnresolved,
		errors.As(failure.Err, &network):
		return "kubectl cluster-info; a private endpoint may need a VPN; --context NAME selects another cluster"
	}
	return "kubectl cluster-info"
}

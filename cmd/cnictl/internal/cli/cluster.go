package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/cluster"
)

// Ways of --via.
const (
	viaAuto  = "auto"
	viaLocal = "local"
)

func viaWays() []string {
	return []string{viaAuto, introspect.ViaPortForward, introspect.ViaExec, introspect.ViaProxy, viaLocal}
}

// Cluster is the way to the nodes through the API server. It does not connect.
func (f *Factory) Cluster(context.Context) (*cluster.Cluster, error) {
	c, _, err := f.connect(f.Globals.Nodes)
	return c, err
}

// connect builds the clients for the nodes of these names; nil: for all.
func (f *Factory) connect(nodes []string) (*cluster.Cluster, API, error) {
	g := &f.Globals
	api, err := f.API()
	if err != nil {
		return nil, API{}, err
	}
	if err := f.quietClients(); err != nil {
		return nil, API{}, err
	}
	c, err := cluster.Connect(cluster.Config{
		Rest: api.Rest, Namespace: g.DaemonSetNamespace, Selector: g.DaemonSetSelector, NodeSelector: g.Selector, Nodes: nodes,
		Via: g.Via, UserAgent: f.UserAgent(), Now: f.Now,
	})
	if err != nil {
		return nil, API{}, f.ClusterError("set up the connection to "+api.Title, err)
	}
	return c, api, nil
}

// ClusterError is a failure of the API server as people see it: what was wanted, why it
// failed, and what to do.
func (f *Factory) ClusterError(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Code: ExitUnreachable, What: "could not " + what, Why: err.Error()}
	var failure *cluster.Error
	if !errors.As(err, &failure) {
		return e
	}
	e.Do = f.remedy(failure)
	if failure.Reason == introspect.ReasonForbidden && failure.Verb != "" {
		e.Why = "forbidden: the rule that is missing is " + ruleText(failure.Verb, failure.Resource, failure.Namespace)
	}
	return e
}

// ruleText is a right as RBAC has it.
func ruleText(verb, resource, namespace string) string {
	text := verb + " " + resource
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}

// remedy is what helps against a failure, with the command.
func (f *Factory) remedy(failure *cluster.Error) string {
	var missing *exec.Error
	var network net.Error
	switch {
	case failure.Reason == introspect.ReasonForbidden && failure.Verb != "":
		where := ""
		if failure.Namespace != "" {
			where = " -n " + failure.Namespace
		}
		resource, sub, _ := strings.Cut(failure.Resource, "/")
		if sub != "" {
			sub = " --subresource=" + sub
		}
		return fmt.Sprintf("kubectl auth can-i %s %s%s%s; the roles are in deploy/rbac/cnictl.yaml", failure.Verb, resource, sub, where)
	case failure.Reason == introspect.ReasonCredential && (errors.As(failure.Err, &missing) || strings.Contains(failure.Err.Error(), "executable")):
		return "install the program that the kubeconfig names for credentials (aws: https://docs.aws.amazon.com/cli), and see that PATH has it"
	case failure.Reason == introspect.ReasonCredential:
		return "log in anew (aws sso login, aws eks update-kubeconfig --name CLUSTER), then: kubectl auth whoami"
	case failure.Reason == introspect.ReasonRefused, failure.Reason == introspect.ReasonTimeout, failure.Reason == introspect.ReasonUnresolved, errors.As(failure.Err, &network):
		return "kubectl cluster-info; a private endpoint needs its VPN, another cluster --context NAME"
	}
	return "kubectl cluster-info"
}

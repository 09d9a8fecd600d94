package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
)

// Rule is a permission in Kubernetes RBAC.
type Rule struct {
	Verb        string // get
	Group       string // "" = core
	Resource    string // pods
	Subresource string // portforward
	URL         string // /apis/networking.k8s.aws, instead of a resource
	Namespace   string // "" = all
	For         string // what needs it
	Optional    bool   // there is an alternative, or only part of the output needs it
	Allowed     bool
}

func (r Rule) String() string {
	if r.URL != "" {
		return r.Verb + " " + r.URL
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace != "" {
		return fmt.Sprintf("%s %s in namespace %s", r.Verb, resource, r.Namespace)
	}
	return r.Verb + " " + resource
}

// Access holds the permissions that the user has or lacks.
type Access struct{ Rules []Rule }

// Missing returns the required rules that the user lacks.
func (a Access) Missing() (out []Rule) {
	for _, r := range a.Rules {
		if !r.Allowed && !r.Optional {
			out = append(out, r)
		}
	}
	return out
}

// Rules returns the permissions needed to read a cluster whose daemon runs in the given
// namespace: those of deploy/rbac/cnictl.yaml, and as optional ones those of the roles beside
// it. A permission used in one namespace is checked there, so having it only there is enough.
func Rules(namespace string) []Rule {
	rules := []Rule{
		{Verb: "list", Resource: "nodes", For: "listing nodes"},
		{Verb: "watch", Resource: "nodes", For: "watching nodes"},
		{Verb: "list", Resource: "pods", Namespace: namespace, For: "listing the daemon's pods"},
		{Verb: "watch", Resource: "pods", Namespace: namespace, For: "watching the daemon's pods"},
		{Verb: "list", Resource: "pods", For: "listing the pods of a node", Optional: true},
		{Verb: "get", Resource: "pods", For: "reading a pod", Optional: true},
		{Verb: "list", Resource: "events", For: "listing events"},
		{Verb: "watch", Resource: "events", For: "watching events"},
		{Verb: "get", Group: "vpcresources.k8s.aws", Resource: "cninodes", For: "reading a node's CNINode"},
		{Verb: "create", Resource: "pods", Subresource: "portforward", Namespace: namespace, For: "reading a node's daemon"},
		{Verb: "get", Resource: "pods", Subresource: "portforward", Namespace: namespace, For: "reading a node's daemon over WebSocket",
			Optional: true},
		{Verb: "get", Resource: "pods", Subresource: "log", Namespace: namespace, For: "reading the daemon's log"},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: namespace, For: "reading a daemon that listens on a Unix socket",
			Optional: true},
		{Verb: "get", Resource: "pods", Subresource: "proxy", Namespace: namespace, For: "--via proxy", Optional: true},
	}
	return rules
}

// Check asks the API server which permissions the user has. Every user may ask that.
func (c *Cluster) Check(ctx context.Context) (Access, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rules := Rules(c.cfg.Namespace)
	errs := make([]error, len(rules))
	var wait sync.WaitGroup
	for i := range rules {
		wait.Go(func() { rules[i].Allowed, errs[i] = c.may(ctx, rules[i]) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return Access{}, err
		}
	}
	return Access{Rules: rules}, nil
}

// may checks one permission of the user.
func (c *Cluster) may(ctx context.Context, rule Rule) (bool, error) {
	return c.review(ctx, "selfsubjectaccessreviews", "SelfSubjectAccessReview", rule, map[string]any{})
}

// Allows checks whether a ServiceAccount has a permission.
func (c *Cluster) Allows(ctx context.Context, namespace, account string, rule Rule) (bool, error) {
	return c.review(ctx, "subjectaccessreviews", "SubjectAccessReview", rule, map[string]any{
		"user":   "system:serviceaccount:" + namespace + ":" + account,
		"groups": []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	})
}

func (c *Cluster) review(ctx context.Context, plural, kind string, rule Rule, spec map[string]any) (bool, error) {
	if rule.URL != "" {
		spec["nonResourceAttributes"] = map[string]string{"verb": rule.Verb, "path": rule.URL}
	} else {
		spec["resourceAttributes"] = map[string]string{
			"verb": rule.Verb, "group": rule.Group, "resource": rule.Resource, "subresource": rule.Subresource, "namespace": rule.Namespace,
		}
	}
	review, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
	if err != nil {
		return false, err
	}
	r := tunnel.Request{Verb: "create", Group: "authorization.k8s.io", Resource: plural}
	body, err := c.api.open(ctx, http.MethodPost, r, "/apis/authorization.k8s.io/v1/"+plural, nil, review)
	if err != nil {
		return false, err
	}
	defer body.Close()
	var answer struct {
		Status *struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	if err := decode(ctx, r, body, &answer); err != nil {
		return false, err
	}
	if answer.Status == nil {
		return false, &Error{Reason: introspect.ReasonMalformed, Err: fmt.Errorf("the API server's response to an access review has no status")}
	}
	return answer.Status.Allowed, nil
}

// CanI returns the command that shows whether a denied request is allowed now.
func CanI(e *Error) string {
	resource, sub, _ := strings.Cut(e.Resource, "/")
	command := "kubectl auth can-i " + e.Verb + " " + resource
	if sub != "" {
		command += " --subresource=" + sub
	}
	if e.Namespace != "" {
		command += " -n " + e.Namespace
	}
	return command
}

// Advice suggests, in one clause, what to do about an API server failure.
func Advice(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return "check with: kubectl cluster-info"
	}
	switch e.Reason {
	case introspect.ReasonForbidden:
		if e.Verb == "" {
			return "the required roles are in deploy/rbac/cnictl.yaml"
		}
		return "check with: " + CanI(e) + "; the required roles are in deploy/rbac/cnictl.yaml"
	case introspect.ReasonCredential:
		return "log in again (aws sso login, aws eks update-kubeconfig --name CLUSTER), then check with: kubectl auth whoami"
	case introspect.ReasonBusy:
		return "retrying"
	case introspect.ReasonTooLarge:
		return "choose fewer: --nodes NAME,NAME or --selector LABEL=VALUE"
	}
	return "retrying; check with: kubectl cluster-info"
}

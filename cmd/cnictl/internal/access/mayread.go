package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
)

// startWithin bounds the requests before a screen opens: long enough for a login program,
// short enough not to look stuck.
const startWithin = 20 * time.Second

// MayRead fails if nothing could be shown: the API server does not respond or rejects the
// credentials, or the user lacks the permissions to list or reach nodes. It is called before
// a screen opens, since the screen would stay empty.
func (s NodeSource) MayRead(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	rights, err := s.Cluster.Check(asking)
	var refused *kube.Error
	switch {
	case errors.As(err, &refused) && refused.Reason == introspect.ReasonForbidden:
		return nil // permissions are unknown: the requests themselves will show
	case err != nil:
		return ClusterError(s.f, "reach "+s.title, err)
	}
	what, missing := lacking(rights.Rules, s.f.Globals.Via)
	if len(missing) == 0 {
		return nil
	}
	first := missing[0]
	return &cli.Error{
		Code: cli.ExitUnreachable, What: "could not " + what + " the nodes of " + s.title, Why: forbiddenText(missing),
		Do: remedy(s.f, &kube.Error{Reason: introspect.ReasonForbidden, Verb: first.Verb, Resource: resourceOf(first),
			Namespace: first.Namespace}),
	}
}

// lacking returns the missing rules without which nodes cannot be listed, daemons cannot be
// found, or nodes cannot be reached as --via says.
func lacking(rules []kube.Rule, via string) (what string, missing []kube.Rule) {
	denied := func(is func(kube.Rule) bool) (out []kube.Rule) {
		for _, r := range rules {
			if !r.Allowed && is(r) {
				out = append(out, r)
			}
		}
		return out
	}
	if missing = denied(func(r kube.Rule) bool { return r.Resource == "nodes" }); len(missing) > 0 {
		return "list", missing
	}
	missing = denied(func(r kube.Rule) bool { return r.Resource == "pods" && r.Subresource == "" && !r.Optional })
	if len(missing) > 0 {
		return "find the daemons on", missing
	}
	ways := map[string]string{document.ViaPortForward: "portforward", document.ViaExec: "exec", document.ViaProxy: "proxy"}
	if sub, ok := ways[via]; ok {
		return "read", denied(func(r kube.Rule) bool { return r.Subresource == sub && !(sub == "portforward" && r.Optional) })
	}
	// A daemon is read by port-forward, or by exec if it listens on a Unix socket.
	missing = denied(func(r kube.Rule) bool { return r.Subresource == "portforward" && !r.Optional })
	if !slices.ContainsFunc(rules, func(r kube.Rule) bool { return r.Subresource == "exec" && r.Allowed }) {
		return "read", missing
	}
	return "read", nil
}

func forbiddenText(missing []kube.Rule) string {
	texts := make([]string, len(missing))
	for i, r := range missing {
		texts[i] = r.String()
	}
	if len(texts) == 1 {
		return "missing permission: " + texts[0]
	}
	return "missing permissions: " + strings.Join(texts, ", ")
}

func resourceOf(r kube.Rule) string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

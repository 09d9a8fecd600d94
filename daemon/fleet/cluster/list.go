package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/kubeclient"
)

// within bounds a request that is no watch where its caller does not.
const within = 60 * time.Second

// limits of a list: what a cluster of pods may have.
var limits = kubeclient.Limits{Objects: 200_000, Within: within}

// Kind is a resource of the API.
type Kind = kubeclient.Kind

// Selection narrows a list.
type Selection = kubeclient.Selection

// Kinds that are read here.
var (
	KindNodes    = kubeclient.Nodes
	KindPods     = kubeclient.Pods
	KindEvents   = Kind{Version: "v1", Plural: "events"}
	KindCNINodes = kubeclient.CNINodes
)

// request is what was asked of the API server, for the error of it.
func request(verb string, k Kind, namespace, name string) tunnel.Request {
	return tunnel.Request{Verb: verb, Group: k.Group, Resource: k.Plural, Namespace: namespace, Name: name}
}

// openList asks for a list or a watch.
func (a *api) openList(ctx context.Context, verb string, r kubeclient.Request, q url.Values) (io.ReadCloser, error) {
	return a.open(ctx, http.MethodGet, request(verb, r.Kind, r.Namespace, ""), r.Kind.Path(r.Namespace), q, nil)
}

// list reads all objects of a kind and hands each on as soon as it is decoded.
func list[T any](ctx context.Context, a *api, k Kind, namespace string, s Selection, each func(T)) error {
	return listUpTo(ctx, a, k, namespace, s, limits, each)
}

// listUpTo is list with other limits, and the bare [kubeclient.TooManyError].
func listUpTo[T any](ctx context.Context, a *api, k Kind, namespace string, s Selection, l kubeclient.Limits, each func(T)) error {
	r := kubeclient.Request{Kind: k, Namespace: namespace, Selection: s}
	err := kubeclient.List(ctx, a.openList, r, l, func(item T) error { each(item); return nil })
	if err == nil {
		return nil
	}
	return unreadable(ctx, request(kubeclient.VerbList, k, namespace, ""), err)
}

// unreadable is the error of an answer that cannot be read to its end.
func unreadable(ctx context.Context, r tunnel.Request, err error) error {
	var (
		known   *Error
		syntax  *json.SyntaxError
		kind    *json.UnmarshalTypeError
		many    *kubeclient.TooManyError
		refused *apierrors.StatusError
	)
	reason := introspect.ReasonMalformed
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return fmt.Errorf("the watch of %s ended: %.200s", r.Resource, refused.Error())
	case errors.As(err, &many):
		reason, err = introspect.ReasonTooLarge, fmt.Errorf("%w: choose fewer with --nodes, --selector or --namespace", err)
	case errors.Is(err, kubeclient.ErrTooLarge):
		reason = introspect.ReasonTooLarge
	case !errors.As(err, &syntax) && !errors.As(err, &kind) && !errors.Is(err, kubeclient.ErrFormat):
		return tunnel.Failed(ctx, err)
	}
	return &Error{Reason: reason, Err: fmt.Errorf("%s %s: %w", r.Verb, r.Resource, err)}
}

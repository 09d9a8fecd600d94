package kube

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

// within limits any request except a watch, if its caller sets no limit.
const within = 60 * time.Second

// limits of a list, sized for the pods of a whole cluster.
var limits = kubeclient.Limits{Objects: 200_000, Within: within}

// Kind is a resource of the API.
type Kind = kubeclient.Kind

// Selection narrows a list.
type Selection = kubeclient.Selection

// Kinds read by this package.
var (
	KindNodes    = kubeclient.Nodes
	KindPods     = kubeclient.Pods
	KindEvents   = Kind{Version: "v1", Plural: "events"}
	KindCNINodes = kubeclient.CNINodes
)

// request describes a request to the API server, for its error.
func request(verb string, k Kind, namespace, name string) tunnel.Request {
	return tunnel.Request{Verb: verb, Group: k.Group, Resource: k.Plural, Namespace: namespace, Name: name}
}

// openList requests a list or a watch.
func (a *api) openList(ctx context.Context, verb string, r kubeclient.Request, q url.Values) (io.ReadCloser, error) {
	return a.open(ctx, http.MethodGet, request(verb, r.Kind, r.Namespace, ""), r.Kind.Path(r.Namespace), q, nil)
}

// list reads all objects of a kind and passes each on as soon as it is decoded.
func list[T any](ctx context.Context, a *api, k Kind, namespace string, s Selection, each func(T)) error {
	return listUpTo(ctx, a, k, namespace, s, limits, each)
}

// listUpTo is list with custom limits. Its error wraps [kubeclient.TooManyError].
func listUpTo[T any](ctx context.Context, a *api, k Kind, namespace string, s Selection, l kubeclient.Limits, each func(T)) error {
	r := kubeclient.Request{Kind: k, Namespace: namespace, Selection: s}
	err := kubeclient.List(ctx, a.openList, r, l, func(item T) error { each(item); return nil })
	if err == nil {
		return nil
	}
	return unreadable(ctx, request(kubeclient.VerbList, k, namespace, ""), err)
}

// unreadable returns the error for a response that could not be read completely.
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

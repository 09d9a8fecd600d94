package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
)

const (
	pageSize   = 500      // objects of a list at once
	maxItems   = 200_000  // of a list: what a cluster of pods may have
	maxPages   = 10_000   // of a list: they may be short where a selector passes over most
	maxObject  = 4 << 20  // bytes of one object; etcd keeps at most 1.5 MiB, in a denser form
	maxRefusal = 16 << 10 // bytes of an answer that is an error
)

// Kind is a resource of the API.
type Kind struct{ Group, Version, Plural string }

var (
	KindNodes    = Kind{"", "v1", "nodes"}
	KindPods     = Kind{"", "v1", "pods"}
	KindEvents   = Kind{"", "v1", "events"}
	KindCNINodes = Kind{"vpcresources.k8s.aws", "v1alpha1", "cninodes"}
)

func (k Kind) path(namespace string, more ...string) string {
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + k.Plural
	for _, m := range more {
		path += "/" + url.PathEscape(m)
	}
	return path
}

func (k Kind) request(verb, namespace, name string) tunnel.Request {
	return tunnel.Request{Verb: verb, Group: k.Group, Resource: k.Plural, Namespace: namespace, Name: name}
}

type query map[string]string

// api makes ordinary requests.
type api struct {
	base     *url.URL
	client   *http.Client
	rate     flowcontrol.RateLimiter
	requests atomic.Uint64
}

func newAPI(cfg *rest.Config) (*api, error) {
	bad := func(err error) error {
		return &Error{Reason: introspect.ReasonCredential, Err: fmt.Errorf("connect to cluster: %w", err)}
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, bad(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, bad(err)
	}
	return &api{base: base, client: client, rate: flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsAtOnce)}, nil
}

func (a *api) close() { a.client.CloseIdleConnections() }

// open asks, and hands over the body of an answer that is one.
func (a *api) open(ctx context.Context, method string, r tunnel.Request, path string, q query, body []byte) (io.ReadCloser, error) {
	if err := a.rate.Wait(ctx); err != nil {
		return nil, tunnel.Failed(ctx, context.DeadlineExceeded)
	}
	a.requests.Add(1)
	u := a.base.JoinPath(path)
	values := url.Values{}
	for k, v := range q {
		values.Set(k, v)
	}
	u.RawQuery = values.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, tunnel.Failed(ctx, err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, tunnel.Failed(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came is all there is to say
		return nil, tunnel.Refused(r, resp.StatusCode, said)
	}
	return resp.Body, nil
}

// get reads one object.
func (a *api) get(ctx context.Context, k Kind, namespace, name string, out any) error {
	r := k.request("get", namespace, name)
	body, err := a.open(ctx, http.MethodGet, r, k.path(namespace, name), nil, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return decode(ctx, r, body, out)
}

func decode(ctx context.Context, r tunnel.Request, body io.Reader, out any) error {
	data, err := io.ReadAll(io.LimitReader(body, maxObject+1))
	if err != nil {
		return tunnel.Failed(ctx, err)
	}
	if len(data) > maxObject {
		return &Error{Reason: introspect.ReasonTooLarge, Err: fmt.Errorf("%s %s: the response is larger than %d MiB", r.Verb, r.Resource, maxObject>>20)}
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Error{Reason: introspect.ReasonMalformed, Err: fmt.Errorf("%s %s: the API server's response: %w", r.Verb, r.Resource, err)}
	}
	return nil
}

// within bounds a request that is no watch where its caller does not.
const within = 60 * time.Second

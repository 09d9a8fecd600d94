package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/kubeclient"
)

const maxRefusal = 16 << 10 // bytes of an error response

// api makes ordinary requests.
type api struct {
	client   *kubeclient.Client
	rate     flowcontrol.RateLimiter
	requests atomic.Uint64
}

func newAPI(cfg *rest.Config) (*api, error) {
	client, err := kubeclient.NewClient(cfg)
	if err != nil {
		return nil, &Error{Reason: introspect.ReasonCredential, Err: fmt.Errorf("connect to cluster: %w", err)}
	}
	return &api{client: client, rate: flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestsAtOnce)}, nil
}

func (a *api) close() { utilnet.CloseIdleConnectionsFor(a.client.HTTP.Transport) }

// open sends a request and returns the body of a successful response.
func (a *api) open(ctx context.Context, method string, r tunnel.Request, path string, q url.Values, body []byte) (io.ReadCloser, error) {
	if err := a.rate.Wait(ctx); err != nil {
		return nil, tunnel.Failed(ctx, context.DeadlineExceeded)
	}
	a.requests.Add(1)
	resp, err := a.client.Do(ctx, method, path, q, "application/json", body)
	if err != nil {
		return nil, tunnel.Failed(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // use whatever arrived
		return nil, tunnel.Refused(r, resp.StatusCode, said)
	}
	return resp.Body, nil
}

// get reads one object.
func (a *api) get(ctx context.Context, k Kind, namespace, name string, out any) error {
	r := request("get", k, namespace, name)
	body, err := a.open(ctx, http.MethodGet, r, k.Path(namespace, name), nil, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	return decode(ctx, r, body, out)
}

func decode(ctx context.Context, r tunnel.Request, body io.Reader, out any) error {
	data, err := io.ReadAll(io.LimitReader(body, kubeclient.MaxObject+1))
	if err != nil {
		return tunnel.Failed(ctx, err)
	}
	if len(data) > kubeclient.MaxObject {
		return unreadable(ctx, r, kubeclient.ErrTooLarge)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Error{Reason: introspect.ReasonMalformed, Err: fmt.Errorf("%s %s: read response: %w", r.Verb, r.Resource, err)}
	}
	return nil
}

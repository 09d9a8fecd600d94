package kubeclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNotConfigured means that there is neither a kubeconfig nor a service account.
var ErrNotConfigured = errors.New("no kubeconfig is set and this is not a pod with a service account")

// Config reads a kubeconfig, or the pod's service account if path is "". A non-empty
// endpoint overrides the server's address.
func Config(path, endpoint string) (*rest.Config, error) {
	config, err := read(path)
	if err == nil && endpoint != "" {
		config.Host = endpoint
	}
	return config, err
}

func read(path string) (*rest.Config, error) {
	if path != "" {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, ErrNotConfigured
	}
	if err != nil {
		return nil, fmt.Errorf("read service account: %w", err)
	}
	return config, nil
}

// Client sends single requests to one API server.
type Client struct {
	HTTP *http.Client
	base *url.URL
}

// NewClient builds a client; it does not connect.
func NewClient(config *rest.Config) (*Client, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address %q: %w", config.Host, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build Kubernetes client: %w", err)
	}
	return &Client{HTTP: client, base: base}, nil
}

// Do sends a request, with a JSON body unless body is nil. The caller closes the response's
// body.
func (c *Client) Do(ctx context.Context, method, path string, q url.Values, accept string, body []byte) (*http.Response, error) {
	at := c.base.JoinPath(path)
	at.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.HTTP.Do(req)
}

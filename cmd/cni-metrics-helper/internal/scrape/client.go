package scrape

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"cnictl/daemon/kubeclient"
)

const (
	namespace = "kube-system"
	selector  = "k8s-app=aws-node"
	port      = "61678"
)

// Limits of one poll.
const (
	listTimeout   = 20 * time.Second // of one page
	scrapeTimeout = 5 * time.Second  // of one pod; same as ipamd's own server
	parallel      = 16               // concurrent scrapes; each may hold a few MiB
)

// Options configure New.
type Options struct {
	Kubeconfig string // path; "" for the pod's service account
	Endpoint   string // if set, replaces the server's address (CLUSTER_ENDPOINT)
	UserAgent  string

	Timeout time.Duration // of one scrape; default 5 s
}

// Client reads pods and their metrics.
type Client struct {
	api     *kubeclient.Client
	timeout time.Duration
}

// New builds a client; it does not connect.
func New(opts Options) (*Client, error) {
	config, err := kubeclient.Config(opts.Kubeconfig, opts.Endpoint)
	if errors.Is(err, kubeclient.ErrNotConfigured) {
		return nil, errNotConfigured
	}
	if err != nil {
		return nil, err
	}
	config.UserAgent = opts.UserAgent
	api, err := kubeclient.NewClient(config)
	if err != nil {
		return nil, err
	}
	// A redirect is treated as a response and not followed: the next request would carry the
	// token to wherever a node says.
	api.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{api: api, timeout: opts.Timeout}
	if c.timeout <= 0 {
		c.timeout = scrapeTimeout
	}
	return c, nil
}

var errNotConfigured = errors.New("this is not a pod with a service account: run it as the Deployment does, or set KUBECONFIG")

// get sends a request to the API server. The caller closes the body.
func (c *Client) get(ctx context.Context, accept string, q url.Values, path string) (*http.Response, error) {
	return c.api.Do(ctx, http.MethodGet, path, q, accept, nil)
}

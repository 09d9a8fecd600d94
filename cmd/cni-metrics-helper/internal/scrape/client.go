package scrape

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "kube-system"
	selector  = "k8s-app=aws-node"
	port      = "61678"
)

// Limits of one poll.
const (
	listTimeout   = 20 * time.Second // of one page
	scrapeTimeout = 5 * time.Second  // of one pod, as ipamd's own server has it
	parallel      = 16               // scrapes at once; each may hold a few MiB
)

// Options configure New.
type Options struct {
	Kubeconfig string // path; "" = the pod's service account
	Endpoint   string // replaces the server's address when set (CLUSTER_ENDPOINT)
	UserAgent  string

	Timeout time.Duration // of one scrape; default 5 s
}

// Client reads pods and their metrics.
type Client struct {
	http    *http.Client
	base    *url.URL // of the API server
	timeout time.Duration
}

// New builds a client; it does not connect.
func New(opts Options) (*Client, error) {
	config, err := restConfig(opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if opts.Endpoint != "" {
		config.Host = opts.Endpoint
	}
	config.UserAgent = opts.UserAgent
	secure := config.CAFile != "" || len(config.CAData) > 0 || config.Insecure
	base, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, secure)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address %q: %w", config.Host, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build Kubernetes client: %w", err)
	}
	// A redirect is an answer, not a way to go on: the next request would carry the
	// token to wherever a node says.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{http: client, base: base, timeout: opts.Timeout}
	if c.timeout <= 0 {
		c.timeout = scrapeTimeout
	}
	return c, nil
}

var errNotConfigured = errors.New("this is not a pod with a service account: run it as the Deployment does, or set KUBECONFIG")

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errNotConfigured
	}
	if err != nil {
		return nil, fmt.Errorf("read service account: %w", err)
	}
	return config, nil
}

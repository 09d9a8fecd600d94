package kube

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"cnictl/daemon/cluster"
	"cnictl/daemon/kubeclient"
	"cnictl/daemon/notice"
)

// limits are time limits of single calls. Those for the version and the Node are upstream's,
// which limits no others.
type limits struct {
	version, get, write time.Duration
	list                time.Duration // for a page of a list, and for the answer to a watch
}

var defaultLimits = limits{
	version: 5 * time.Second, get: 3 * time.Second, write: 5 * time.Second,
	list: 30 * time.Second,
}

// ErrNotConfigured means that there is neither a kubeconfig nor a service account.
var ErrNotConfigured = kubeclient.ErrNotConfigured

// Options configures New.
type Options struct {
	NodeName   string // MY_NODE_NAME: name of the Node and the CNINode
	PodName    string // MY_POD_NAME: the daemon's own pod, which events name
	Kubeconfig string // path; "" = the pod's service account
	Endpoint   string // replaces the server's address when set (CLUSTER_ENDPOINT)
	UserAgent  string

	// Watched by Run, besides the Node.
	Pods, CNINode, ENIConfigs bool

	Log *slog.Logger // nil disables logging
}

// Node is the part of the Node object that the daemon uses.
type Node = cluster.Node

// Client reads, watches and writes the objects that the daemon needs of the Kubernetes
// API. It is safe for concurrent use.
type Client struct {
	rest     *rest.RESTClient
	opts     Options
	log      *slog.Logger
	limits   limits
	pauses   pauses
	changes  *changes
	reach    *reach
	events   *outbox
	instance string // reporting instance of events: "aws-node-" and the host's name

	nodes      *store[cluster.Node]
	pods       *store[cluster.Pod]
	cniNodes   *store[cniNode]
	eniConfigs *store[eniConfig]
}

// New builds a client. It does not connect.
func New(opts Options) (*Client, error) {
	config, err := kubeclient.Config(opts.Kubeconfig, opts.Endpoint)
	if err != nil {
		return nil, err
	}
	api, err := restClient(config, opts.UserAgent)
	if err != nil {
		return nil, err
	}
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host's name: %w", err)
	}
	changed := newChanges()
	return &Client{
		rest: api, opts: opts, log: log, limits: defaultLimits, pauses: defaultPauses(),
		changes: changed, reach: newReach(), events: newOutbox(notice.DefaultPolicy()), instance: reportingController + "-" + host,
		nodes: newStore[cluster.Node](), pods: newStore[cluster.Pod](),
		cniNodes: newStore[cniNode](), eniConfigs: newStore[eniConfig](),
	}, nil
}

// restClient returns a client whose scheme knows only the API's own types, such as the
// Status of an error.
func restClient(config *rest.Config, userAgent string) (*rest.RESTClient, error) {
	version := schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, version)
	config.APIPath = "/api"
	config.GroupVersion = &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // no limit
	config.UserAgent = userAgent
	config.WarningHandler = rest.NoWarnings{} // the default one writes to stderr
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundErrors{next} })
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build Kubernetes client: %w", err)
	}
	return client, nil
}

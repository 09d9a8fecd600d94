package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Time limits of single calls, those of the original (spec/ipamd.md §1.2, §1.4).
const (
	versionTimeout = 5 * time.Second
	nodeTimeout    = 3 * time.Second
)

// unschedulableTaint marks a cordoned node.
const unschedulableTaint = corev1.TaintNodeUnschedulable

// ErrNotConfigured means that there is neither a kubeconfig nor a service account.
var ErrNotConfigured = errors.New("no kubeconfig is set and this is not a pod with a service account")

// Options configures New.
type Options struct {
	NodeName   string // name of the Node that Node reads
	Kubeconfig string // path; "" = the pod's service account
	Endpoint   string // replaces the server's address when set (CLUSTER_ENDPOINT)
	UserAgent  string
}

// Client reads from the Kubernetes API.
type Client struct {
	rest           *rest.RESTClient
	nodeName       string
	versionTimeout time.Duration
	nodeTimeout    time.Duration
}

// New builds a client; it does not connect.
func New(opts Options) (*Client, error) {
	config, err := restConfig(opts)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core/v1: %w", err)
	}
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // no limit
	config.UserAgent = opts.UserAgent
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build Kubernetes client: %w", err)
	}
	return &Client{rest: client, nodeName: opts.NodeName, versionTimeout: versionTimeout, nodeTimeout: nodeTimeout}, nil
}

func restConfig(opts Options) (*rest.Config, error) {
	config, err := baseConfig(opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if opts.Endpoint != "" {
		config.Host = opts.Endpoint
	}
	return config, nil
}

func baseConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
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

// ServerVersion asks the API server for its version, such as "v1.35.4".
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.versionTimeout)
	defer cancel()
	body, err := c.rest.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("get /version: %w", err)
	}
	return parseVersion(body)
}

// Node is what the daemon uses of its Node object.
type Node struct {
	MaxPods       int  // status.capacity.pods; 0 = not reported yet
	Unschedulable bool // cordoned
	Labels        map[string]string
	Annotations   map[string]string
}

// Node reads the Node object.
func (c *Client) Node(ctx context.Context) (Node, error) {
	if c.nodeName == "" {
		return Node{}, errors.New("get node: MY_NODE_NAME is not set")
	}
	ctx, cancel := context.WithTimeout(ctx, c.nodeTimeout)
	defer cancel()
	var obj corev1.Node
	if err := c.rest.Get().Resource("nodes").Name(c.nodeName).Do(ctx).Into(&obj); err != nil {
		return Node{}, fmt.Errorf("get node %s: %w", c.nodeName, err)
	}
	if obj.Name != c.nodeName {
		return Node{}, fmt.Errorf("get node %s: the answer is about %q", c.nodeName, obj.Name)
	}
	return nodeOf(&obj)
}

func nodeOf(obj *corev1.Node) (Node, error) {
	n := Node{Labels: obj.Labels, Annotations: obj.Annotations, Unschedulable: obj.Spec.Unschedulable}
	for _, t := range obj.Spec.Taints {
		if t.Key == unschedulableTaint && t.Effect == corev1.TaintEffectNoSchedule {
			n.Unschedulable = true
		}
	}
	if pods, ok := obj.Status.Capacity[corev1.ResourcePods]; ok {
		count := pods.Value()
		if count < 0 || count > math.MaxInt32 {
			return Node{}, fmt.Errorf("read node %s: status.capacity.pods is %q, want a count", obj.Name, pods.String())
		}
		n.MaxPods = int(count)
	}
	return n, nil
}

func parseVersion(body []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read /version: %w", err)
	}
	if info.GitVersion == "" {
		return "", errors.New("read /version: the answer has no gitVersion")
	}
	return info.GitVersion, nil
}

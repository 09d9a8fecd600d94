package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Kinds of objects, in addition to those that the fleet reads.
var (
	KindENIConfigs      = Kind{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Plural: "eniconfigs"}
	KindGroupPolicies   = Kind{Group: "vpcresources.k8s.aws", Version: "v1beta1", Plural: "securitygrouppolicies"}
	KindPolicyEndpoints = Kind{Group: "networking.k8s.aws", Version: "v1alpha1", Plural: "policyendpoints"}
	KindDaemonSets      = Kind{Group: "apps", Version: "v1", Plural: "daemonsets"}
	KindConfigMaps      = Kind{Version: "v1", Plural: "configmaps"}
	KindAccounts        = Kind{Version: "v1", Plural: "serviceaccounts"}
	KindRoles           = Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "roles"}
	KindBindings        = Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "rolebindings"}
	KindMutating        = Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "mutatingwebhookconfigurations"}
	KindValidating      = Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: "validatingwebhookconfigurations"}
)

// Names of objects.
const (
	daemonName     = "aws-node" // the DaemonSet, its container and its ServiceAccount
	daemonConfig   = "amazon-vpc-cni"
	proxyName      = "kube-proxy"
	proxyConfig    = "kube-proxy-config" // of EKS; elsewhere it is under proxyName
	controllerRole = "eks-vpc-resource-controller-role"
	systemSpace    = "kube-system"
)

// Limits of what one node's reading has of objects that belong to no node, or are too many.
const (
	maxUnbound    = 200 // unbound pods
	maxEvents     = 500 // of one node, and of no node
	listWithin    = 30 * time.Second
	podsNodeByOne = 32 // up to so many nodes, pods are listed node by node
)

// Sources is what the API server has, by node for objects of nodes. "" is no node.
type Sources struct {
	at      time.Time
	Shared  evidence.Reading // sources that all nodes have in common
	own     evidence.Source[map[string]*evidence.CNINode]
	proxies evidence.Source[map[string][]evidence.ProxyPod]
	mode    string // of kube-proxy
	Changing
}

// Changing holds the objects that a second reading reads again.
type Changing struct {
	Nodes   evidence.Source[map[string]evidence.KubeNode] // by name
	pods    evidence.Source[map[string][]evidence.KubePod]
	daemons evidence.Source[map[string][]daemon]
	events  evidence.Source[map[string][]evidence.KubeEvent]
}

// daemon is a pod of the DaemonSet.
type daemon struct {
	evidence.DaemonPod
	env map[string]map[string]string // of its containers
}

type event struct {
	evidence.KubeEvent
	node string // its source
}

// Reader reads what the API server has as evidence.
type Reader struct {
	Cluster *Cluster
	Timeout time.Duration // of one object
	Now     func() time.Time
}

// Read reads all objects once. nodes limits the pods to those of some nodes, nil means all.
func (k Reader) Read(ctx context.Context, nodes []string, installation bool) *Sources {
	o := &Sources{at: k.Now().UTC(), Shared: *evidence.Unread(k.Now().UTC(), evidence.MissingMode)}
	r := &o.Shared
	var wait sync.WaitGroup
	for _, do := range []func(){
		func() { o.Changing = k.Change(ctx, nodes) },
		func() { o.own = k.cniNodes(ctx) },
		func() {
			r.DaemonSet = readOptional(ctx, k, KindDaemonSets, k.Cluster.cfg.Namespace, daemonName, readDaemonSet)
		},
		func() { r.ENIConfigs = readList(ctx, k, KindENIConfigs, "", "", readENIConfig) },
		func() {
			r.GroupPolicies = readList(ctx, k, KindGroupPolicies, "", "", readSecurityGroupPolicy)
		},
		func() { r.Webhooks = k.webhooks(ctx) },
		func() { r.ConfigMap = readOptional(ctx, k, KindConfigMaps, systemSpace, daemonConfig, readConfigMap) },
		func() { k.proxy(ctx, o) },
		func() { r.RBAC = k.rbac(ctx) },
		func() {
			r.ServiceAccount = readOne(ctx, k, KindAccounts, k.Cluster.cfg.Namespace, daemonName, readServiceAccount)
		},
		func() { r.NetworkPolicies = k.policies(ctx) },
	} {
		wait.Go(do)
	}
	if installation {
		wait.Go(func() { r.Installation = k.installation(ctx) })
	} else {
		r.Installation = evidence.Unread(o.at, evidence.MissingNotAsked).Installation
	}
	wait.Wait()
	return o
}

// Change reads nodes, pods and events.
func (k Reader) Change(ctx context.Context, nodes []string) Changing {
	var out Changing
	var events evidence.Source[[]event]
	var wait sync.WaitGroup
	wait.Go(func() { out.pods = k.pods(ctx, nodes) })
	wait.Go(func() { out.daemons = k.daemonPods(ctx) })
	wait.Go(func() { events = k.events(ctx) })
	wait.Wait()
	// After the pods, so that a node that left meanwhile is missing here.
	out.Nodes = readIndex(ctx, k, KindNodes, "", "", readNode, func(n evidence.KubeNode) string { return n.Name })
	out.events = evidence.Then(events, out.byNode)
	return out
}

// readOne reads an object.
func readOne[T any](ctx context.Context, k Reader, kind Kind, namespace, name string, read func([]byte) (T, error)) evidence.Source[T] {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	raw, err := k.Cluster.object(ctx, kind, namespace, name)
	if err != nil {
		return evidence.Lacking[T](Missing(err))
	}
	return reading.Source(read(raw))
}

// readOptional reads an object whose absence is evidence too.
func readOptional[T any](ctx context.Context, k Reader, kind Kind, namespace, name string,
	read func([]byte) (T, error)) evidence.Source[T] {
	s := readOne(ctx, k, kind, namespace, name, read)
	if s.Missing == evidence.MissingAbsent {
		return evidence.Source[T]{}
	}
	return s
}

// readEach passes on the objects of a list. It skips objects that cannot be read.
func readEach[T any](ctx context.Context, k Reader, kind Kind, namespace string, s Selection, read func([]byte) (T, error),
	add func(T)) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	return k.Cluster.objects(ctx, kind, namespace, s, func(raw json.RawMessage) {
		if item, err := read(raw); err == nil {
			add(item)
		}
	})
}

func readList[T any](ctx context.Context, k Reader, kind Kind, namespace, labels string,
	read func([]byte) (T, error)) evidence.Source[[]T] {
	out := []T{}
	err := readEach(ctx, k, kind, namespace, Selection{Labels: labels}, read, func(item T) { out = append(out, item) })
	return source(out, err)
}

// readIndex lists objects by name.
func readIndex[T any](ctx context.Context, k Reader, kind Kind, namespace, labels string, read func([]byte) (T, error),
	name func(T) string) evidence.Source[map[string]T] {
	out := map[string]T{}
	err := readEach(ctx, k, kind, namespace, Selection{Labels: labels}, read, func(item T) { out[name(item)] = item })
	return source(out, err)
}

func (k Reader) cniNodes(ctx context.Context) evidence.Source[map[string]*evidence.CNINode] {
	out := map[string]*evidence.CNINode{}
	type named struct {
		*evidence.CNINode
		node string
	}
	err := readEach(ctx, k, KindCNINodes, "", Selection{}, func(raw []byte) (n named, err error) {
		n.CNINode, n.node, err = readCNINode(raw)
		return n, err
	}, func(n named) { out[n.node] = n.CNINode })
	if fleet.ErrorOf(orNil(err)).Reason == introspect.ReasonNotFound {
		err = nil // the cluster has no such kind, so no node has one
	}
	return source(out, err)
}

// orNil replaces nil by an error without a reason.
func orNil(err error) error { return cmp.Or(err, errNone) }

var errNone = errors.New("")

// pods lists the pods of these nodes, node by node if they are few, and the unbound pods.
func (k Reader) pods(ctx context.Context, nodes []string) evidence.Source[map[string][]evidence.KubePod] {
	out := map[string][]evidence.KubePod{}
	var mu sync.Mutex // guards out and failed
	var failed error
	ask := func(fields string) {
		err := readEach(ctx, k, KindPods, "", Selection{Fields: fields}, readPod, func(p evidence.KubePod) {
			node := ""
			if p.Node != nil {
				node = *p.Node
			}
			mu.Lock()
			defer mu.Unlock()
			if node != "" || len(out[""]) < maxUnbound {
				out[node] = append(out[node], p)
			}
		})
		mu.Lock()
		defer mu.Unlock()
		failed = cmp.Or(failed, err)
	}
	if nodes == nil || len(nodes) > podsNodeByOne {
		ask("")
	} else {
		var wait sync.WaitGroup
		for _, node := range append(slices.Clone(nodes), "") {
			wait.Go(func() { ask("spec.nodeName=" + node) })
		}
		wait.Wait()
	}
	return source(out, failed)
}

func (k Reader) daemonPods(ctx context.Context) evidence.Source[map[string][]daemon] {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	out := map[string][]daemon{}
	err := k.Cluster.DaemonPods(ctx, func(raw json.RawMessage) {
		p, err := readDaemonPod(raw, k.Now())
		env, envErr := readPodEnv(raw)
		if err == nil && envErr == nil {
			out[p.Node] = append(out[p.Node], daemon{p, env})
		}
	})
	return source(out, err)
}

// events lists the events that may concern the CNI: what went wrong with pods and nodes, and
// everything from the daemon and the VPC resource controller.
func (k Reader) events(ctx context.Context) evidence.Source[[]event] {
	out := []event{}
	err := readEach(ctx, k, KindEvents, "", Selection{}, func(raw []byte) (e event, err error) {
		e.KubeEvent, e.node, err = readEvent(raw)
		return e, err
	}, func(e event) {
		if e.Type == "Warning" || OfCNI(systemSpace, e.Source, e.Kind, e.Name) || e.Kind == "Node" {
			out = append(out, e)
		}
	})
	slices.SortStableFunc(out, func(a, b event) int { return a.At.Compare(b.At) })
	return source(out, err)
}

func (k Reader) webhooks(ctx context.Context) evidence.Source[[]evidence.Webhook] {
	out := []evidence.Webhook{}
	for kind, name := range map[Kind]string{KindMutating: "vpc-resource-mutating-webhook", KindValidating: "vpc-resource-validating-webhook"} {
		switch w := readOne(ctx, k, kind, "", name, readWebhook); {
		case w.OK():
			out = append(out, w.Content)
		case w.Missing != evidence.MissingAbsent:
			return evidence.Lacking[[]evidence.Webhook](w.Missing)
		}
	}
	slices.SortFunc(out, func(a, b evidence.Webhook) int { return cmp.Compare(a.Name, b.Name) })
	return evidence.Read(out)
}

// proxy reads kube-proxy's pods and what can be read about its mode.
func (k Reader) proxy(ctx context.Context, o *Sources) {
	by := map[string][]evidence.ProxyPod{}
	err := readEach(ctx, k, KindPods, systemSpace, Selection{Labels: "k8s-app=" + proxyName}, readProxyPod, func(p evidence.ProxyPod) {
		by[p.Node] = append(by[p.Node], p)
	})
	o.proxies = source(by, err)
	set := readOne(ctx, k, KindDaemonSets, systemSpace, proxyName, func(raw []byte) ([]byte, error) { return raw, nil })
	config := readOne(ctx, k, KindConfigMaps, systemSpace, proxyConfig, readConfigMap)
	if !config.OK() {
		config = readOne(ctx, k, KindConfigMaps, systemSpace, proxyName, readConfigMap)
	}
	o.mode = readProxyMode(set.Content, config.Content)
}

func (k Reader) rbac(ctx context.Context) evidence.Source[evidence.RBAC] {
	out := evidence.RBAC{Roles: []string{}, Bindings: []string{}}
	for _, want := range []struct {
		kind Kind
		name string
		into *[]string
	}{{KindRoles, controllerRole, &out.Roles}, {KindBindings, controllerRole + "binding", &out.Bindings}} {
		switch s := readOne(ctx, k, want.kind, systemSpace, want.name, func([]byte) (struct{}, error) { return struct{}{}, nil }); {
		case s.OK():
			*want.into = append(*want.into, systemSpace+"/"+want.name)
		case s.Missing != evidence.MissingAbsent:
			return evidence.Lacking[evidence.RBAC](s.Missing)
		}
	}
	allowed, errs := make([]bool, len(evidence.ReviewedRights)), make([]error, len(evidence.ReviewedRights))
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	var wait sync.WaitGroup
	for i, right := range evidence.ReviewedRights {
		wait.Go(func() {
			allowed[i], errs[i] = k.Cluster.Allows(ctx, k.Cluster.cfg.Namespace, daemonName, ruleOf(right))
		})
	}
	wait.Wait()
	if errors.Join(errs...) != nil {
		return evidence.Read(out) // what the daemon may do is unknown: null
	}
	out.Denied, out.Reviewed = []string{}, evidence.ReviewedRights
	for i, right := range evidence.ReviewedRights {
		if !allowed[i] {
			out.Denied = append(out.Denied, right)
		}
	}
	return evidence.Read(out)
}

// ruleOf returns what to ask the API server about a right of evidence.ReviewedRights.
func ruleOf(right string) Rule {
	verb, resource, group := evidence.SplitRight(right)
	if strings.HasPrefix(resource, "/") {
		return Rule{Verb: verb, URL: resource}
	}
	resource, sub, _ := strings.Cut(resource, "/")
	return Rule{Verb: verb, Group: group, Resource: resource, Subresource: sub}
}

func (k Reader) policies(ctx context.Context) evidence.Source[evidence.NetworkPolicies] {
	s := readList(ctx, k, KindPolicyEndpoints, "", "", readPolicyEndpoint)
	if s.Missing == evidence.MissingAbsent {
		return evidence.Read(evidence.NetworkPolicies{CRDs: new(false), Endpoints: []evidence.PolicyEndpoint{}})
	}
	return evidence.Then(s, func(list []evidence.PolicyEndpoint) evidence.NetworkPolicies {
		return evidence.NetworkPolicies{CRDs: new(true), Endpoints: list}
	})
}

// Reading returns what the API server has about a node.
func (o *Sources) Reading(node string) *evidence.Reading {
	r := o.Shared
	r.At = o.at
	r.CNINode = evidence.Then(o.own, func(by map[string]*evidence.CNINode) *evidence.CNINode { return by[node] })
	r.KubeProxy = evidence.Then(o.proxies, func(by map[string][]evidence.ProxyPod) evidence.KubeProxy {
		return evidence.KubeProxy{Mode: o.mode, Pods: append([]evidence.ProxyPod{}, by[node]...)}
	})
	o.Changing.Put(&r, node)
	return &r
}

// Put sets the sources that change.
func (c *Changing) Put(r *evidence.Reading, node string) {
	r.Node = evidence.Lacking[evidence.KubeNode](cmp.Or(c.Nodes.Missing, evidence.MissingAbsent))
	if n, ok := c.Nodes.Content[node]; ok {
		r.Node = evidence.Read(n)
		r.InstanceType = evidence.Read(reading.InstanceType(n.InstanceType))
	}
	r.Pods = evidence.Then(c.pods, func(by map[string][]evidence.KubePod) []evidence.KubePod {
		return slices.Concat([]evidence.KubePod{}, by[node], by[""])
	})
	r.DaemonPods = evidence.Then(c.daemons, func(by map[string][]daemon) []evidence.DaemonPod {
		out := []evidence.DaemonPod{}
		for _, p := range by[node] {
			out = append(out, p.DaemonPod)
		}
		return out
	})
	// The pod on the node may be older than the DaemonSet.
	if pods := c.daemons.Content[node]; len(pods) == 1 {
		r.ContainerEnv = evidence.Read(pods[0].env)
	}
	r.Events = evidence.Then(c.events, func(by map[string][]evidence.KubeEvent) []evidence.KubeEvent {
		all := slices.Concat([]evidence.KubeEvent{}, by[node], by[""])
		slices.SortStableFunc(all, func(a, b evidence.KubeEvent) int { return a.At.Compare(b.At) })
		return all
	})
}

// byNode gives each node its events: those that name it, and those of its pods. Events of unbound
// pods, and of objects on no node, go to every node.
func (c *Changing) byNode(events []event) map[string][]evidence.KubeEvent {
	by, on := map[string][]evidence.KubeEvent{}, map[evidence.Pod]string{}
	for node, pods := range c.daemons.Content {
		for _, p := range pods {
			on[p.Pod] = node
		}
	}
	for node, pods := range c.pods.Content {
		for _, p := range pods {
			on[p.Pod] = node
		}
	}
	for _, e := range events {
		node := e.node
		if node == "" && e.Kind == "Pod" {
			var known bool
			if node, known = on[evidence.Pod(e.Name)]; !known && c.pods.OK() {
				continue // the pod is gone, or on a node that was not asked about
			}
		}
		by[node] = append(by[node], e.KubeEvent)
	}
	for node, events := range by {
		by[node] = events[max(0, len(events)-maxEvents):]
	}
	return by
}

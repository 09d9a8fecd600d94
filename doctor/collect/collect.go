package collect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/lazy"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Defaults of Options.
const (
	DefaultInterval    = 15 * time.Second
	DefaultTimeout     = 3 * time.Second
	DefaultConcurrency = 64

	// maxDeep bounds how many nodes that look faulty are read in full, worst first, if none were
	// named.
	maxDeep = 256
)

// Options say what to read, and how. Now is required, and so is Cluster or Targets.
type Options struct {
	Cluster *kube.Cluster  // if nil, the nodes are Targets and Kubernetes is not read
	Targets []fleet.Target // nodes to look at; all of the cluster if nil
	Named   bool           // read all of them in full, whatever they look like
	Pod     evidence.Pod   // read its node in full, and what the daemon knows of the pod

	Once     bool          // one reading
	Interval time.Duration // between the two; 0 = DefaultInterval
	Exec     bool          // read in the daemon's containers what only the node itself can see

	Installation bool // read how aws-node was installed, for a migration to the other daemon
	Full         bool // read sound-looking nodes in full, too

	AWS    AWS    // nil to leave out EC2
	Access Access // for an installation, with AWS; nil to leave out EKS and IAM
	Region string // of the AWS settings; "" if they have none

	Timeout     time.Duration // of one source; 0 = DefaultTimeout
	NodeTimeout time.Duration // of the sweep, for each node; 0 = fleet.DefaultNodeTimeout
	Concurrency int           // nodes read at once; 0 = DefaultConcurrency
	UserAgent   string
	Now         func() time.Time
	Progress    func(done, total int, what string) // called by one goroutine at a time; total is 0 while it waits; may be nil
	SoFar       func(*evidence.Evidence)           // what has been read, until the first reading is over; likewise
	Warn        func(text string)                  // may be nil
}

// AWS reads the EC2 sources about a cluster's instances, which all nodes share, and the limits of
// their types: ec2.Reader.Read.
type AWS func(ctx context.Context, region string, instances []string) (*evidence.Reading, map[string]evidence.InstanceType)

// Access reads the EKS and IAM sources about an installation, by instance id. role is the one
// that the service account names: ec2.Reader.Installation.
type Access func(ctx context.Context, region string, instances []evidence.Instance, role string) map[string]*evidence.Reading

// Collect reads all nodes once in a sweep, and in full those that were named or look faulty. It
// reads the latter a second time after the interval. An error means that there is nothing to
// diagnose. The Cluster counts the requests.
func Collect(ctx context.Context, o Options) (*evidence.Evidence, error) {
	o.Interval, o.Timeout = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Timeout, DefaultTimeout)
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	c := collection{Options: o}
	if err := c.first(ctx); err != nil {
		return nil, err
	}
	if !o.Once {
		c.soFar(c.evidence()) // a second reading takes a while
		if err := c.second(ctx); err != nil {
			return nil, err
		}
	}
	return c.evidence(), ctx.Err()
}

// collection is a run of Collect.
type collection struct {
	Options
	at      time.Time // of the first reading
	later   time.Time // of the second
	objects *kube.Sources
	list    []document.NodeIPAM // as swept
	aws     *evidence.Reading   // its EC2 sources
	limits  map[string]evidence.InstanceType
	access  map[string]*evidence.Reading // by instance
	nodes   []evidence.Node              // in the order of the targets
	deep    []fleet.Target               // read in full
	index   map[string]int               // of nodes, by name
	region  string                       // to read AWS in
	mu      sync.Mutex                   // guards Progress
	showing sync.Mutex                   // guards SoFar and shown
	shown   time.Time                    // when SoFar was last told
}

// soFarEvery is the least time between two states of the evidence that are shown while nodes are read.
const soFarEvery = 2 * time.Second

// soFar shows what has been read. It must not change any more.
func (c *collection) soFar(ev *evidence.Evidence) {
	if c.SoFar == nil {
		return
	}
	c.showing.Lock()
	defer c.showing.Unlock()
	c.SoFar(ev)
	c.shown = c.Now()
}

// soFarIfDue is soFar if that was long ago and no other goroutine is at it. made makes the evidence.
func (c *collection) soFarIfDue(made func() *evidence.Evidence) {
	if c.SoFar == nil || !c.showing.TryLock() {
		return
	}
	defer c.showing.Unlock()
	if c.Now().Sub(c.shown) < soFarEvery {
		return
	}
	c.SoFar(made())
	c.shown = c.Now()
}

func (c *collection) progress(done, total int, what string) {
	if c.Progress != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Progress(done, total, what)
	}
}

// first sweeps the nodes, and reads in full those that need it.
func (c *collection) first(ctx context.Context) error {
	if err := c.find(ctx); err != nil {
		return err
	}
	c.at = c.Now().UTC()
	var wait sync.WaitGroup
	if c.Cluster != nil {
		wait.Go(func() {
			c.objects = kube.Reader{Cluster: c.Cluster, Timeout: c.Timeout, Now: c.Now}.Read(ctx, c.scope(), c.Installation)
			c.progress(1, 1, "objects of Kubernetes")
		})
	}
	c.aws = evidence.UnreadAWS(evidence.MissingNotAsked)
	if c.AWS != nil {
		c.place(ctx)
		wait.Go(func() { c.readAWS(ctx) })
	}
	err := c.sweep(ctx)
	wait.Wait()
	if err != nil {
		return err
	}
	if c.Installation && c.AWS != nil && c.Access != nil {
		role := ""
		if c.objects != nil {
			role = c.objects.Shared.ServiceAccount.Content.Annotations["eks.amazonaws.com/role-arn"]
		}
		c.access = c.Access(ctx, c.region, c.aws.Instances.Content, role)
		c.progress(1, 1, "EKS and IAM")
	}
	c.assemble()
	c.choose()
	c.soFar(c.evidence())
	return c.readDeep(ctx, func(n *evidence.Node) **evidence.Reading { return &n.First }, c.soFarIfDue)
}

// find lists the nodes or, for a pod, its node. Nodes that need no daemon have nothing to
// diagnose unless they are named.
func (c *collection) find(ctx context.Context) error {
	if c.Targets == nil && c.Cluster != nil {
		targets, err := c.Cluster.Targets(ctx)
		if err != nil && kube.Missing(err) != evidence.MissingForbidden {
			return fmt.Errorf("list nodes: %w", err)
		}
		c.Targets = targets // without the right to list nodes, read what else can be read
	}
	if c.Pod != "" && c.Cluster != nil {
		namespace, name, _ := strings.Cut(string(c.Pod), "/")
		_, node, err := c.Cluster.Pod(ctx, namespace, name)
		if err != nil {
			return fmt.Errorf("read pod %s: %w", c.Pod, err)
		}
		c.Targets = slices.DeleteFunc(slices.Clone(c.Targets), func(t fleet.Target) bool { return t.Name != node })
		c.Named = true
	}
	return nil
}

// place chooses the region to read AWS in. Named nodes are some of the cluster's, so all are asked.
func (c *collection) place(ctx context.Context) {
	voters := c.Targets
	if c.Cluster != nil && c.Named {
		if all, err := c.Cluster.Targets(ctx); err == nil { // without the right to list nodes, those that are known
			voters = all
		}
	}
	var why string
	if c.region, why = RegionOf(voters, c.Region); why != "" && c.Warn != nil {
		c.Warn(why)
	}
}

// regionForm is that of a region's name, which becomes part of a host name.
var regionForm = lazy.Regexp(`^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$`)

// RegionOf returns the region that most nodes have, else that of the AWS settings. A kubelet may set
// the label on its own node, so one node never decides. why is what the user should know.
func RegionOf(nodes []fleet.Target, settings string) (region, why string) {
	count, all := map[string]int{}, 0
	for _, t := range nodes {
		if t.Object == nil || t.Object.InstanceID == "" {
			continue
		}
		if label := t.Object.Labels["topology.kubernetes.io/region"]; regionForm().MatchString(label) {
			count[label]++
			all++
		}
	}
	if all == 0 {
		return settings, ""
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	most := names[0]
	said := fmt.Sprintf("%s in %s by label", human.Plural(all, "node is", "nodes are"), strings.Join(names[:min(len(names), 4)], ", "))
	switch n := count[most]; {
	case n > 1 && 2*n > all && n < all:
		others := strings.Join(names[1:min(len(names), 4)], ", ")
		return most, fmt.Sprintf("AWS is read in %s: %d of %d nodes are there, others claim to be in %s", most, n, all, others)
	case n > 1 && n == all && settings != "" && settings != most:
		return most, fmt.Sprintf("AWS is read in %s, where the nodes are; the AWS settings have %s", most, settings)
	case n > 1 && n == all, settings == most && all == 1:
		return most, ""
	case settings != "":
		return settings, fmt.Sprintf("AWS is read in %s, the region of the AWS settings: %s", settings, said)
	}
	return "", fmt.Sprintf("AWS is not read: %s, and one node does not decide: set AWS_REGION", said)
}

// scope returns the nodes whose pods are wanted, nil for all.
func (c *collection) scope() []string {
	if !c.Named {
		return nil
	}
	names := []string{}
	for _, t := range c.Targets {
		names = append(names, t.Name)
	}
	return names
}

// readAWS reads EC2 about the nodes' instances, in their region.
func (c *collection) readAWS(ctx context.Context) {
	instances := []string{}
	for _, t := range c.Targets {
		if o := t.Object; o != nil && o.InstanceID != "" {
			instances = append(instances, o.InstanceID)
		}
	}
	c.aws, c.limits = c.AWS(ctx, c.region, instances)
	c.progress(1, 1, "EC2")
}

// putAWS sets the EC2 sources of a reading. The built-in table knows more about a type than EC2.
func (c *collection) putAWS(r *evidence.Reading) {
	r.TakeAWS(c.aws)
	if t, ok := c.limits[r.InstanceType.Content.InstanceType]; ok && !r.InstanceType.Content.Known {
		r.InstanceType = evidence.Read(t)
	}
	if c.access == nil {
		return
	}
	if of := c.access[r.Node.Content.Instance]; of != nil {
		r.AddOn, r.Role, r.IAM = of.AddOn, of.Role, of.IAM
		return
	}
	why := cmp.Or(c.aws.Instances.Missing, "EC2 does not have the instance of the node")
	r.AddOn, r.Role, r.IAM = evidence.Lacking[*evidence.AddOn](why), evidence.Lacking[evidence.Role](why), evidence.Lacking[evidence.IAM](why)
}

func (c *collection) fleet(targets []fleet.Target, within time.Duration) (*fleet.Fleet, error) {
	return fleet.New(fleet.Options{
		Targets: targets, Concurrency: min(c.Concurrency, fleet.MaxConcurrency), NodeTimeout: within, UserAgent: c.UserAgent, Now: c.Now,
	})
}

func (c *collection) sweep(ctx context.Context) error {
	nodes, err := c.fleet(c.Targets, c.NodeTimeout)
	if err != nil {
		return err
	}
	defer nodes.Close()
	c.list = nodes.Sweep(ctx, fleet.Query{ENIs: true, Progress: func(p fleet.Progress) { c.progress(p.Done, p.Total, "nodes") }}).Items
	return nil
}

// assemble makes the first reading of each node from the sweep and Kubernetes.
func (c *collection) assemble() {
	var targets []fleet.Target
	var list []document.NodeIPAM
	for i, n := range c.list {
		if c.Named || !fleet.Excused(n) {
			targets, list = append(targets, c.Targets[i]), append(list, n)
		}
	}
	c.Targets, c.list = targets, list
	if c.objects != nil {
		c.objects.Shared.Nodes = c.others()
	}
	c.index = map[string]int{}
	for i, n := range c.list {
		r := c.blank(n.Metadata.Name)
		swept(r, n)
		if n.SampledAt != nil {
			r.At = n.SampledAt.UTC()
		}
		c.index[n.Metadata.Name] = i
		c.nodes = append(c.nodes, evidence.Node{Name: n.Metadata.Name, First: r})
	}
	if len(c.nodes) == 0 { // an unbound pod, or no right to list nodes
		c.nodes = []evidence.Node{{First: c.blank("")}}
	}
}

// blank returns the reading of a node that was not asked.
func (c *collection) blank(node string) *evidence.Reading {
	r := evidence.Unread(c.at, evidence.MissingMode)
	if c.objects != nil {
		r = c.objects.Reading(node)
	}
	c.putAWS(r)
	return r
}

// others returns the nodes of the cluster that are not looked at.
func (c *collection) others() evidence.Source[[]evidence.KubeNode] {
	here := map[string]bool{}
	for _, t := range c.Targets {
		here[t.Name] = true
	}
	return evidence.Then(c.objects.Nodes, func(all map[string]evidence.KubeNode) []evidence.KubeNode {
		out := []evidence.KubeNode{}
		for name, n := range all {
			if !here[name] {
				out = append(out, n)
			}
		}
		slices.SortFunc(out, func(a, b evidence.KubeNode) int { return cmp.Compare(a.Name, b.Name) })
		return out
	})
}

// choose decides which nodes are read in full.
func (c *collection) choose() {
	var looks []look
	for i, t := range c.Targets {
		if f := faultOf(c.list[i], c.nodes[i].First); c.Named || c.Full || f > sound {
			looks = append(looks, look{target: t, fault: f, order: i})
		}
	}
	slices.SortFunc(looks, func(a, b look) int { return cmp.Or(cmp.Compare(b.fault, a.fault), cmp.Compare(a.order, b.order)) })
	for i, l := range looks {
		if c.Named || i < maxDeep {
			c.deep = append(c.deep, l.target)
		}
	}
}

type look struct {
	target fleet.Target
	fault  fault
	order  int
}

// readDeep reads the chosen nodes in full, each in place of one of its readings. A node on which this
// program fails stays as it was swept. shown is told of each node that was read.
func (c *collection) readDeep(
	ctx context.Context, into func(*evidence.Node) **evidence.Reading, shown func(made func() *evidence.Evidence),
) error {
	d := &deep{cluster: c.Cluster, timeout: c.Timeout, exec: c.Exec, now: c.Now}
	d.pod.Namespace, d.pod.Name, _ = strings.Cut(string(c.Pod), "/")
	var mu sync.Mutex // guards done, and which reading a node has
	done := 0
	ended := func(to **evidence.Reading, r *evidence.Reading) {
		mu.Lock()
		defer mu.Unlock()
		*to = r
		done++
		c.progress(done, len(c.deep), "nodes in full")
	}
	read := func(ctx context.Context, t fleet.Target, cl *client.Client) {
		to := into(&c.nodes[c.index[t.Name]])
		r := **to // the swept one may be shown meanwhile
		d.read(ctx, &r, t, cl)
		ended(to, &r)
		shown(func() *evidence.Evidence {
			mu.Lock()
			defer mu.Unlock()
			return c.evidence()
		})
	}
	nodes, err := c.fleet(c.deep, onNodeWithin+10*c.Timeout)
	if err != nil {
		return err
	}
	defer nodes.Close()
	var wait sync.WaitGroup
	defer wait.Wait()
	absent := make(chan fleet.Target)
	defer close(absent)
	for range min(c.Concurrency, len(c.deep)) {
		wait.Go(func() {
			for t := range absent { // Kubernetes has its logs nevertheless
				read(ctx, t, nil)
			}
		})
	}
	for _, t := range c.deep {
		if t.Absent != nil {
			absent <- t
		}
	}
	nodes.Ask(ctx, nil, func(ctx context.Context, _ int, t fleet.Target, cl *client.Client) error {
		defer cl.Close() // keeps no more tunnels open than nodes are being read
		read(ctx, t, cl)
		return nil
	})
	return ctx.Err()
}

// second reads the same nodes in full again, and what changes in Kubernetes. Everything else
// stays as at the first reading. If there is nothing to read, it does not wait.
func (c *collection) second(ctx context.Context) error {
	if len(c.deep) == 0 && c.AWS == nil {
		for i := range c.nodes {
			c.lasts(&c.nodes[i])
		}
		return nil
	}
	for left := c.Interval; left > 0; left -= time.Second {
		c.progress(0, 0, SecondIn(left))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, time.Second)):
		}
	}
	c.later = c.Now().UTC()
	names := map[string]bool{}
	for _, t := range c.deep {
		names[t.Name] = true
	}
	var changed kube.Changing
	var wait sync.WaitGroup
	if c.Cluster != nil && len(names) > 0 {
		wait.Go(func() {
			changed = kube.Reader{Cluster: c.Cluster, Timeout: c.Timeout, Now: c.Now}.Change(ctx, slices.Sorted(maps.Keys(names)))
		})
	}
	if c.AWS != nil {
		c.place(ctx)
		wait.Go(func() { c.readAWS(ctx) })
	}
	wait.Wait()
	for i := range c.nodes {
		n := &c.nodes[i]
		if names[n.Name] {
			if n.Second = c.blank(n.Name); c.Cluster != nil {
				changed.Put(n.Second, n.Name)
			}
			continue
		}
		c.lasts(n)
	}
	err := c.readDeep(ctx, func(n *evidence.Node) **evidence.Reading { return &n.Second }, func(func() *evidence.Evidence) {})
	for name := range names {
		n := c.nodes[c.index[name]]
		reading.ContinueLogs(n.First, n.Second)
	}
	return err
}

// SecondIn says how long it takes until the second reading.
func SecondIn(left time.Duration) string { return "second reading in " + human.Age(left) }

// lasts copies the first reading of a node that looked sound into its second, as in an evidence
// file.
func (c *collection) lasts(n *evidence.Node) {
	same := *n.First
	c.putAWS(&same)
	n.Second = &same
}

// evidence returns all that was read, without the nodes that left the cluster in the meantime:
// what their daemons said earlier contradicts that their pods are gone.
func (c *collection) evidence() *evidence.Evidence {
	stayed := slices.DeleteFunc(slices.Clone(c.nodes), func(n evidence.Node) bool {
		return n.Name != "" && !c.Named && n.Last().Node.Missing == evidence.MissingAbsent
	})
	ev := &evidence.Evidence{At: c.at, Mode: evidence.ModeCluster, Nodes: stayed, Scope: evidence.Scope{Pod: c.Pod}}
	if !c.later.IsZero() {
		ev.Interval = c.later.Sub(c.at)
	}
	if c.AWS != nil || slices.ContainsFunc(c.nodes, func(n evidence.Node) bool { return n.Last().ENIs.OK() || n.Last().Metrics.OK() }) {
		ev.Mode = evidence.ModeLaptop
	}
	switch {
	case c.Pod != "":
	case c.Named && len(c.nodes) == 1:
		ev.Scope.Node = c.nodes[0].Name
	default:
		ev.Scope.Cluster = true
	}
	return ev
}

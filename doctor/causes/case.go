package causes

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/config"
	"cnictl/daemon/lazy"
	"cnictl/daemon/resync"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// Case is one node at one reading: what was read, and what every rule derives from it.
type Case struct {
	Name    string
	Mode    evidence.Mode
	Now     time.Time // of the reading
	R       *evidence.Reading
	Earlier *Case // the reading before, nil if there is only one

	Ours              bool              // the daemon is ours: rules about upstream's releases do not apply
	Release           evidence.Version  // of upstream's daemon; zero if ours or unknown
	oursAt, releaseAt string            // the sources that show Ours and Release
	Agent             *evidence.Version // of the policy agent; nil if unknown or there is none

	// Settings are the effective settings, from the best source that was read.
	Settings   config.Config
	settingsAt string            // source; empty if none was read
	env        map[string]string // as declared; nil if unknown
	problems   []config.Problem  // of the settings
	byLabel    map[string]string // values in effect of the settings that labels of the Node override
	partly     map[string]string // the known settings, with their effective values; nil if all are known

	Pools []*pool // by network card; empty if unknown

	heldUp func() (fails, late bool) // any node's new pod of aws-node, see newPod; nil for an earlier reading

	own      string                  // the node's name in its reading, which alike nodes of a file share
	nics     []evidence.Interface    // see attached
	derived  []evidence.ENI          // see enis
	podNode  map[evidence.Pod]string // node of each pod that was read; "" if unbound
	ready    map[evidence.Pod]bool
	logs     map[string]*logSource
	observed map[string][]observation      // by kind; see seen
	warnings map[string]evidence.KubeEvent // last ones, by pod; see lastWarning
	missing  map[string]string             // see evidence.Reading.Missing
}

// newCase prepares one reading of the node that is called name.
func newCase(name string, mode evidence.Mode, r *evidence.Reading, earlier *Case) *Case {
	c := &Case{Name: name, own: name, Mode: mode, Now: r.At, R: r, Earlier: earlier, logs: map[string]*logSource{},
		observed: map[string][]observation{}, missing: r.Missing(),
		podNode: map[evidence.Pod]string{}, ready: map[evidence.Pod]bool{}}
	c.Ours = r.Summary.OK() || r.DaemonSet.Content != nil &&
		evidence.ImageName(r.DaemonSet.Content.Images[containerNode]) == evidence.ImageOurs
	if c.oursAt = "k8s.ds"; r.Summary.OK() || r.Summary.Missing == evidence.MissingAbsent {
		c.oursAt = "intro.summary"
	}
	if own := r.Node.Content.Name; own != "" && strings.HasPrefix(name, own+"-") {
		c.own = own
	}
	for _, p := range r.DaemonPods.Content {
		c.podNode[p.Pod] = p.Node
	}
	for p := range c.pods() {
		c.ready[p.Pod] = p.Phase == "Running" && p.Ready != nil && *p.Ready
		c.podNode[p.Pod] = p.On()
	}
	c.readSettings()
	c.readVersions()
	c.Pools = c.pools()
	return c
}

// caseOf returns the last reading of a node, with the first as its Earlier.
func caseOf(ev *evidence.Evidence, n *evidence.Node) *Case {
	var earlier *Case
	if n.Second != nil {
		earlier = newCase(n.Name, ev.Mode, n.First, nil)
	}
	return newCase(n.Name, ev.Mode, n.Last(), earlier)
}

// Cases returns the last reading of each node, with what follows from it.
func Cases(ev *evidence.Evidence) (cs []*Case) {
	for i := range ev.Nodes {
		cs = append(cs, caseOf(ev, &ev.Nodes[i]))
	}
	heldUp := sync.OnceValues(func() (fails, late bool) {
		for _, c := range cs {
			f, l := c.newPod()
			fails, late = fails || f, late || l
		}
		return fails, late
	})
	for _, c := range cs {
		c.heldUp = heldUp
	}
	return cs
}

// Is reports whether Kubernetes calls the node by this name.
func (c *Case) Is(name string) bool { return name == c.own }

// Containers of the DaemonSet.
const (
	containerNode  = evidence.ContainerNode
	containerInit  = evidence.ContainerInit
	containerAgent = evidence.ContainerAgent
)

func (c *Case) readVersions() {
	if ds := c.R.DaemonSet.Content; ds != nil {
		if v, ok := evidence.ParseVersion(ds.Images[containerAgent]); ok {
			c.Agent = &v
		}
	}
	if c.Ours {
		return
	}
	report := func(source, text string) bool {
		v, ok := evidence.ParseVersion(text)
		if ok {
			c.Release, c.releaseAt = v, source
		}
		return ok
	}
	for _, series := range slices.Sorted(maps.Keys(c.R.Metrics.Content.Samples)) {
		if version, ok := labelOf(series, "awscni_build_info", "version"); ok && report("metrics", version) {
			return
		}
	}
	for _, b := range c.R.CNI.Content.Bin {
		if b.Name == "aws-cni" && b.Version != nil {
			report("host.cni", *b.Version)
		}
	}
	for _, l := range slices.Backward(c.logSource("log.ipamd").lines) {
		if _, rest, ok := strings.Cut(l.text, logline.TextStarting+" "); ok {
			text, _, _ := strings.Cut(rest, " ")
			report("log.ipamd", text)
			break
		}
	}
	// The DaemonSet's image is what runs, or will once its pods are replaced.
	if ds := c.R.DaemonSet.Content; ds != nil {
		report("k8s.ds", ds.Images[containerNode])
	}
}

// Before states that upstream's daemon is older than release v. Ours never is.
func (c *Case) Before(v evidence.Version) Fact {
	expected := v.String() + " or later"
	switch {
	case c.Ours:
		return c.Known(c.oursAt, "version", expected, "not upstream's daemon", false)
	case c.Release == evidence.Version{}:
		return c.Unread("k8s.ds", "images.aws-node", expected, "the release of the daemon is unknown")
	}
	return c.Known(c.releaseAt, "release of the daemon", expected, c.Release, c.Release.Before(v))
}

// older reports whether the daemon is upstream's, of a release before v.
func (c *Case) older(v evidence.Version) bool {
	return !c.Ours && c.Release != (evidence.Version{}) && c.Release.Before(v)
}

// upstream states that the daemon is upstream's.
func (c *Case) upstream() Fact {
	whose := "upstream's"
	if c.Ours {
		whose = "cnictl's"
	}
	return c.Known(c.oursAt, "daemon", "cnictl's", whose, !c.Ours)
}

// maxPods returns kubelet's max-pods and its source.
func (c *Case) maxPods() (n int, source string) {
	switch {
	case c.R.Node.OK() && c.R.Node.Content.Capacity.Pods != nil:
		return *c.R.Node.Content.Capacity.Pods, "k8s.node"
	case c.R.Kubelet.OK() && c.R.Kubelet.Content.MaxPods != nil:
		return *c.R.Kubelet.Content.MaxPods, "host.kubelet"
	case c.R.Summary.OK() && c.R.Summary.Content.MaxPods != nil && c.R.Summary.Content.MaxPods.Value != nil:
		return *c.R.Summary.Content.MaxPods.Value, "intro.summary"
	}
	return 0, ""
}

// pods yields the pods that were read.
func (c *Case) pods() iter.Seq[*evidence.KubePod] {
	return func(yield func(*evidence.KubePod) bool) {
		for i := range c.R.Pods.Content {
			if !yield(&c.R.Pods.Content[i]) {
				return
			}
		}
	}
}

// Here returns the pods of this node that have not ended.
func (c *Case) Here() []*evidence.KubePod {
	var out []*evidence.KubePod
	for p := range c.pods() {
		if p.Node != nil && *p.Node == c.own && !ended(p) {
			out = append(out, p)
		}
	}
	return out
}

// hostPods returns how many pods of the node use its own address: two, by convention, if pods
// could not be listed.
func (c *Case) hostPods() int {
	if !c.R.Pods.OK() {
		return limits.HostPods
	}
	n := 0
	for _, p := range c.Here() {
		if p.HostNetwork {
			n += max(1, p.Count)
		}
	}
	return n
}

// limitPodENI is the resource name of branch ENIs.
const limitPodENI = "vpc.amazonaws.com/pod-eni"

// branchPod reports whether a pod gets a branch ENI instead of an address of the pool. Only its
// first container counts.
func (c *Case) branchPod(p *evidence.KubePod) bool {
	return c.Settings.PodENI && asksFirst(p)
}

// find returns the first element that fits, false if there is none.
func find[T any](all []T, fits func(T) bool) (found T, there bool) {
	if at := slices.IndexFunc(all, fits); at >= 0 {
		return all[at], true
	}
	return found, false
}

// where returns those of all that fit.
func where[T any](all []T, fits func(T) bool) (out []T) {
	for _, v := range all {
		if fits(v) {
			out = append(out, v)
		}
	}
	return out
}

// each returns what of says of each.
func each[T, U any](all []T, of func(T) U) (out []U) {
	for _, v := range all {
		out = append(out, of(v))
	}
	return out
}

func podName(p *evidence.KubePod) string { return string(p.Pod) }

func has[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

// records yields the addresses of the datastore.
func (c *Case) records() iter.Seq[evidence.Address] {
	return func(yield func(evidence.Address) bool) {
		for _, e := range c.R.ENIs.Content {
			for a := range e.Records() {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// Pooled returns the pods of this node that hold, or should hold, an address of the pool.
func (c *Case) Pooled() []*evidence.KubePod {
	return slices.DeleteFunc(c.Here(), func(p *evidence.KubePod) bool { return p.HostNetwork || c.branchPod(p) || c.ofOtherCNI(p) })
}

// addressed returns the pooled pods that run with an address of the pool.
func (c *Case) addressed() []*evidence.KubePod {
	return slices.DeleteFunc(c.Pooled(), func(p *evidence.KubePod) bool {
		return p.Phase != "Running" || len(p.IPs) == 0 || p.Annotations[limitPodENI] != ""
	})
}

// waiting returns the pooled pods that have no address yet.
func (c *Case) waiting() []*evidence.KubePod {
	return slices.DeleteFunc(c.Pooled(), func(p *evidence.KubePod) bool {
		return p.Phase != "Pending" || len(p.IPs) > 0 || p.Reason != "" && p.Reason != "ContainerCreating" || c.waitsElsewhere(p)
	})
}

// starved states that no address can be given to a pod. If the pool is unknown, pods that fail to
// get an address show it.
func (c *Case) starved() Fact { return orElse(c.dry(), onlyIfTrue(c.failing())) }

// textsAssignFailed are the plugin's errors when it got no address from the daemon.
var textsAssignFailed = []string{"failed to assign an IP address to container"}

// textsDry is what the daemon logs when the pool has no address left.
var textsDry = []string{"DataStore has no available IP/Prefix addresses", "no available IP/Prefix addresses"}

// textsAssigned is what the daemons log when a pod gets an address. They have written their checkpoint then.
var textsAssigned = []string{"Send AddNetworkReply: Success: true", "address assigned"}

// failing states that pods of the node currently fail to get an address.
func (c *Case) failing() Fact {
	return Either(
		c.active(pattern{sources: []string{"log.ipamd"}, texts: textsDry, cured: textsAssigned, since: c.lastStart()}),
		c.answeredNone(),
		c.series("awscni_no_available_ip_addresses"),
		c.stuck(attachTime),
	)
}

// lastStart returns when a pod of the node last got an address, zero if unknown. What failed
// before has passed.
func (c *Case) lastStart() (at time.Time) {
	for r := range c.records() {
		if r.AssignedAt.After(at) && r.UnassignedAt.IsZero() {
			at = r.AssignedAt
		}
	}
	return at
}

// How long pods normally wait for an address: a sandbox takes a few seconds, attaching an
// interface ten more.
const (
	sandboxTime = catalogue.SandboxTime
	branchTime  = catalogue.BranchTime
	attachTime  = 30 * time.Second
)

// stuck states that pods have been waiting for an address for longer than most.
func (c *Case) stuck(most time.Duration) Fact {
	path := fmt.Sprintf("pods in ContainerCreating for more than %d s", int(most.Seconds()))
	return On(c, c.R.Pods, "k8s.pod", path, "none", func([]evidence.KubePod) (any, State) {
		for _, p := range c.waiting() {
			if c.Now.Sub(p.CreatedAt) > most {
				return p.Pod, Yes
			}
		}
		return "none", No
	})
}

// subnetOfNode returns the subnet of the primary interface, empty if unknown.
func (c *Case) subnetOfNode() string {
	managed, _ := find(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Primary })
	listed, _ := find(c.R.IMDS.Content.ENIs, evidence.IMDSInterface.IsPrimary)
	attached, _ := find(c.attached(), evidence.Interface.IsPrimary)
	return or(managed.Subnet, listed.Subnet, attached.Subnet)
}

// primary returns the primary interface and its MAC address, empty if unknown.
func (c *Case) primary() (id, mac string) {
	if e, there := find(c.R.IMDS.Content.ENIs, evidence.IMDSInterface.IsPrimary); there {
		return e.ID, e.MAC
	}
	e, _ := find(c.R.ENIs.Content, func(e evidence.ENI) bool { return e.Primary })
	return e.ID, ""
}

// instance returns the id of the node's instance, empty if unknown. The Node may be of an earlier one of the name.
func (c *Case) instance() string {
	return or(c.R.IMDS.Content.Instance, c.R.Node.Content.Instance, c.R.Summary.Content.InstanceID)
}

// ownInstance returns the node's instance as EC2 shows it.
func (c *Case) ownInstance() (evidence.Instance, bool) {
	id := c.instance()
	return find(c.R.Instances.Content, func(i evidence.Instance) bool { return id != "" && i.ID == id })
}

// region matches the region in the name of a zone: us-west-2 in us-west-2b and in us-west-2-lax-1a.
var region = lazy.Regexp(`^[a-z]{2}(-[a-z]+)+-\d`)

// places returns the names of the node's cluster, region and VPC for commands, by placeholder; an empty name
// is unknown.
func (c *Case) places() map[string]string {
	names := map[string]string{"REGION": region().FindString(or(c.R.Node.Content.Zone, c.R.IMDS.Content.Zone))}
	own, _ := c.ownInstance()
	names["CLUSTER"] = or(own.Cluster, c.Settings.ClusterName)
	subnet := ""
	for _, e := range c.attached() {
		subnet = or(subnet, e.Subnet)
		names["CLUSTER"] = or(names["CLUSTER"], e.Tags[resync.TagClusterName])
	}
	within, _ := c.subnet(subnet)
	names["VPC"] = within.VPC
	return names
}

// attached returns the interfaces that EC2 shows as attached to the node's instance.
func (c *Case) attached() []evidence.Interface {
	if c.nics == nil {
		c.nics = []evidence.Interface{}
		instance := c.instance()
		for i := range c.R.Interfaces.Content { // of the whole account
			if e := &c.R.Interfaces.Content[i]; e.Instance != "" && e.Instance == instance && e.Type != "branch" && e.Status != "available" {
				c.nics = append(c.nics, *e)
			}
		}
	}
	return c.nics
}

// Attached returns the interfaces that EC2 shows as attached to the node's instance, if it is
// known.
func (c *Case) Attached() (all []evidence.Interface, known bool) {
	return c.attached(), c.instance() != ""
}

// eniConfigName returns the ENIConfig that the node maps to.
func (c *Case) eniConfigName() (string, bool) {
	if !c.R.Node.OK() || !c.Knows("ENI_CONFIG_ANNOTATION_DEF", "ENI_CONFIG_LABEL_DEF") {
		if name := c.R.ENIConfig.Content; name != nil {
			return *name, true
		}
		return "", false
	}
	n := c.R.Node.Content
	return cluster.ENIConfigName(cluster.Node{Labels: n.Labels, Annotations: n.Annotations}, c.Settings.ENIConfigAnnotation,
		c.Settings.ENIConfigLabel), true
}

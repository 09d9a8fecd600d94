package ipamd

import (
	"cnictl/daemon/api/logline"

	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/checkpoint"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/kube"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/rpcserver"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Deps is what the daemon's process gives to Run. Empty paths and addresses mean the
// original's.
type Deps struct {
	Config   config.Config
	Problems []config.Problem // of loading Config
	Version  string
	Started  time.Time // of the process

	GRPCSocket  string
	LeanSocket  string
	MetricsAddr string
}

// drainGrace bounds the time between SIGTERM and the end of the process: below the
// manifest's terminationGracePeriodSeconds of 10.
const drainGrace = 8 * time.Second

// Run starts the daemon and serves until ctx ends; then it stops taking requests,
// answers those it has, lets EC2 calls in flight finish within drainGrace and
// returns nil. Any error is fatal to the process and has been logged.
func Run(ctx context.Context, d Deps) error {
	log, closer, err := logging.Open(logging.Options{Path: d.Config.LogFile, Level: d.Config.LogLevel})
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	err = run(ctx, d, log)
	if err != nil {
		log.Error(err.Error()) //nolint:sloglint // the fatal reason is the message people search for
	}
	return errors.Join(err, closer.Close())
}

func run(ctx context.Context, d Deps, log *slog.Logger) error {
	log.Info(textStarting+" "+d.Version+"  ...", slog.String(logline.KeyVersion, d.Version)) //nolint:sloglint // the original's line
	// What needs no fact of the instance is checked before anything is touched.
	if err := reportProblems(log, append(d.Problems, config.Validate(d.Config, config.Facts{})...)); err != nil {
		return err
	}

	// Operations in flight outlive ctx by the drain's grace.
	opsCtx, endOps := context.WithCancel(context.WithoutCancel(ctx))
	defer endOps()
	ops, opsCtx := errgroup.WithContext(opsCtx)

	daemon, err := start(ctx, opsCtx, ops, d, log)
	if err != nil {
		return err
	}
	return daemon.serve(ctx, endOps, ops)
}

// reportProblems logs settings that are not used as written and fails on those that
// forbid a start.
func reportProblems(log *slog.Logger, problems []config.Problem) error {
	var fatal []error
	for _, p := range problems {
		if p.Fatal {
			fatal = append(fatal, errors.New(p.String()))
			continue
		}
		log.Warn("setting not used as written", slog.String(logline.KeySetting, p.Variable), slog.String(logline.KeyDetail, p.String()))
	}
	if len(fatal) > 0 {
		return fmt.Errorf("%s: %w", textValidation, errors.Join(fatal...))
	}
	return nil
}

// daemon is everything between a finished start and the end of the process.
type daemon struct {
	deps    Deps
	log     *slog.Logger
	owner   *owner
	store   *checkpoint.Store
	images  chan image
	metrics *metrics.Metrics
	host    *hostnet.Host
	imds    *imds.Client
	kube    *kube.Client // nil: no API server configured
	rulesIn rules.NodeInput
}

func start(ctx, opsCtx context.Context, ops *errgroup.Group, d Deps, log *slog.Logger) (*daemon, error) {
	c := d.Config
	initStart := time.Now()
	met := metrics.New(metrics.Options{Version: d.Version, GoVersion: runtime.Version()})

	metadata := imds.New(imds.Config{Timeout: c.HTTPTimeout})
	var (
		identity   imds.Identity
		interfaces []imds.Interface
		vpcCIDRs   []netip.Prefix
		host       *hostnet.Host
	)
	first, firstCtx := errgroup.WithContext(ctx)
	first.Go(func() (err error) {
		if identity, err = metadata.Identity(firstCtx); err != nil {
			return fmt.Errorf("read instance metadata: %w", err)
		}
		if vpcCIDRs, err = metadata.VPCCIDRs(firstCtx, identity.PrimaryMAC); err != nil {
			return fmt.Errorf("read VPC CIDRs: %w", err)
		}
		return nil
	})
	first.Go(func() (err error) {
		if interfaces, err = metadata.Interfaces(firstCtx); err != nil {
			return fmt.Errorf(textNoENIs+": %w", err)
		}
		return nil
	})
	first.Go(func() (err error) {
		host, err = hostnet.New(hostnet.Options{Log: log})
		return err
	})
	if err := first.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", textInitFailure, err)
	}

	calls := &callCounts{}
	ec2, err := vpcapi.New(ctx, vpcapi.Config{
		Region: identity.Region, Endpoint: c.EC2Endpoint, HTTPTimeout: c.HTTPTimeout,
		UserAgent: "amazon-vpc-cni-k8s/" + c.ReleaseVersion, InstanceID: identity.InstanceID,
		VPCID: identity.VPCID, AZ: identity.AZ, ClusterName: c.ClusterName, AdditionalTags: c.AdditionalTags,
		Observe: func(call vpcapi.Call) {
			met.EC2Call(call.Action, call.Took, call.Code, call.Err)
			calls.count(call, time.Now())
		},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textInitFailure, err)
	}

	node, err := newNode(ctx, d, log, ec2, identity, interfaces, vpcCIDRs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textInitFailure, err)
	}
	rulesIn := node.hostRules()
	ids := make([]ipam.ENIID, len(interfaces))
	for i, f := range interfaces {
		ids[i] = f.ENI
	}
	// Before the first EC2 request, whose connection the new NAT rules would break.
	if err := host.SetupNode(ctx, rulesIn); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", textInitFailure, textHostNetwork, err)
	}
	metadata.Forget()
	view, err := look(ctx, ec2, host, ids, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textInitFailure, err)
	}

	inbox := make(chan message, 256)
	exec := &executor{
		spawn: func(op func(context.Context)) {
			ops.Go(func() error {
				op(opsCtx)
				return nil
			})
		},
		ec2: ec2, host: host, log: log, mtu: c.ENIMTU,
		// The owner reads its inbox until the last operation has reported.
		post: func(m message) { inbox <- m },
	}
	managed := setUpENIs(ctx, exec, classify(node, view, interfaces, time.Now()), log)

	images := make(chan image, 1)
	o := &owner{
		log: log, now: time.Now, metrics: met, node: *node, exec: exec, inbox: inbox,
		book: ipam.New(ipam.Options{Cooldown: c.Cooldown}), ledger: newLedger(), commits: images,
		ops: make(map[opID]*operation), backoff: newBackoffs(), attachments: make(map[ipam.ENIID]string),
		history: newHistory(), calls: calls,
	}
	o.policy = policyOf(c, node.prefixes, 0)
	o.setMaxPods(offlineMaxPods(identity.InstanceType))
	if len(view.subnets) > 0 {
		o.subnets.fill(view.subnets, time.Now())
	}
	for _, e := range view.attached {
		o.attachments[e.ID] = e.AttachmentID
	}

	store := checkpoint.Open(c.CheckpointPath)
	if err := restore(ctx, o, store, host, managed, view); err != nil {
		return nil, fmt.Errorf("%s: %w", textInitFailure, err)
	}
	met.NodeInitialized(time.Since(initStart), nil)
	met.ConnmarkBackend(host.Backend())
	met.ConnmarkReconcile(nil)
	log.Info(textInitDone, slog.Duration(logline.KeyDuration, time.Since(d.Started)))
	exec.tagAll(node.ownENIs(view.attached))

	return &daemon{
		deps: d, log: log, owner: o, store: store, images: images, metrics: met, host: host, imds: metadata,
		kube: kubeClient(d, log), rulesIn: rulesIn,
	}, nil
}

// serve runs the owner, the servers and the periodic readers until ctx ends, then
// drains.
func (d *daemon) serve(ctx context.Context, endOps context.CancelFunc, ops *errgroup.Group) error {
	d.metrics.SetPool(d.poolGauges)
	stopOwner := make(chan struct{})
	var inner sync.WaitGroup
	inner.Go(func() { d.owner.run(stopOwner) })
	inner.Go(func() { d.writeCheckpoints(stopOwner) })

	group, serveCtx := errgroup.WithContext(ctx)
	servers, err := d.servers()
	if err != nil {
		return err
	}
	for _, serve := range servers {
		group.Go(func() error { return serve(serveCtx) })
	}
	for _, watch := range d.watchers() {
		group.Go(func() error {
			watch(serveCtx)
			return nil
		})
	}
	group.Go(func() error {
		<-serveCtx.Done()
		// Before the servers' drain ends: ADDs that wait for the pool are answered now.
		d.owner.inbox <- terminate{}
		return nil
	})
	d.metrics.Started(time.Since(d.deps.Started), false, "")
	d.log.Info(textServing+" "+d.deps.Version+" on unix:"+d.grpcSocket(), slog.Duration(logline.KeyDuration, time.Since(d.deps.Started))) //nolint:sloglint // the original's line
	err = group.Wait()

	// Operations in flight get the rest of the grace; cancelling them mid-call could
	// leave an ENI that nobody knows.
	timer := time.AfterFunc(drainGrace/2, endOps)
	_ = ops.Wait() // its functions return nil
	timer.Stop()
	close(stopOwner)
	inner.Wait()
	d.log.Info("drained", slog.Any(logline.KeyError, err))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (d *daemon) policyConfig() rpcserver.PolicyConfig {
	n := d.owner.node
	return rpcserver.PolicyConfig{
		Mode: n.config.NetworkPolicyMode, NodeIPv4: n.identity.PrimaryIPv4.String(),
		InstanceID: n.identity.InstanceID, Region: n.identity.Region,
	}
}

func (d *daemon) grpcSocket() string {
	if d.deps.GRPCSocket != "" {
		return d.deps.GRPCSocket
	}
	return rpcserver.DefaultGRPCSocket
}

// servers lists what listens. The RPC server is fatal when it cannot; the others
// keep trying, as in the original.
func (d *daemon) servers() ([]func(context.Context) error, error) {
	rpc := rpcserver.New(rpcserver.Options{
		GRPCSocket: d.grpcSocket(), LeanSocket: d.deps.LeanSocket,
		Backend: &backend{owner: d.owner, wait: d.deps.Config.AddWait, policy: d.policyConfig()},
		Log:     d.log, Version: d.deps.Version,
	})
	out := []func(context.Context) error{rpc.Serve}
	if !d.deps.Config.MetricsOff {
		out = append(out, d.serveMetrics)
	}
	if !d.deps.Config.IntrospectionOff {
		in, err := introspectserver.New(introspectserver.Options{Addr: d.deps.Config.IntrospectionAddr, Source: d, Log: d.log})
		if err != nil {
			return nil, err
		}
		out = append(out, func(ctx context.Context) error { return d.keepServing(ctx, "introspection", in.Serve) })
	}
	return out, nil
}

// terminate ends growth and answers the ADDs that wait.
type terminate struct{}

func (terminate) handle(o *owner, now time.Time) {
	o.terminating = true
	o.log.Info("AWS CNI is terminating, no more pool changes")
}

// writeCheckpoints writes images until stop is closed and none is left.
func (d *daemon) writeCheckpoints(stop <-chan struct{}) {
	for {
		select {
		case img := <-d.images:
			m := committed{gen: img.gen, err: d.store.Write(img.data)}
			select {
			case d.owner.inbox <- m:
			case <-stop:
				return
			}
		case <-stop:
			return
		}
	}
}

func newNode(ctx context.Context, d Deps, log *slog.Logger, ec2 *vpcapi.Client, identity imds.Identity, interfaces []imds.Interface, vpcCIDRs []netip.Prefix) (*node, error) {
	c := d.Config
	instance, err := instanceOf(ctx, ec2, identity.InstanceType)
	if err != nil {
		return nil, err
	}
	facts := config.Facts{InstanceType: identity.InstanceType, PrefixDelegation: instance.PrefixDelegation(), MaxENIs: instance.MaxENIs}
	problems := config.Validate(c, facts)
	if err := reportProblems(log, problems); err != nil {
		return nil, err
	}
	c = c.For(facts)
	n := &node{
		config: c, version: d.Version, settings: c.Describe(append(d.Problems, problems...)), problems: len(d.Problems) + len(problems), identity: identity, instance: instance, limits: plannerLimits(instance, c.MultiNIC),
		prefixes:     c.PrefixDelegation,
		provisioning: !c.ProvisioningDisabled(), checkpointPath: c.CheckpointPath, started: d.Started,
		subnetPolicy: resync.SubnetPolicy{NodeSubnet: identity.SubnetID, ClusterName: c.ClusterName, Discovery: c.SubnetDiscovery},
	}
	i := slices.IndexFunc(interfaces, func(f imds.Interface) bool { return f.ENI == identity.PrimaryENI })
	if i < 0 {
		return nil, fmt.Errorf("instance metadata lists no interface %s, which it calls the primary one", identity.PrimaryENI)
	}
	n.vpcCIDRs, n.securityGroups = vpcCIDRs, interfaces[i].SecurityGroups
	return n, nil
}

// hostRules is the input for the node's rules as start-up knows it.
func (n *node) hostRules() rules.NodeInput {
	c := n.config
	return rules.NodeInput{
		PrimaryMAC: n.identity.PrimaryMAC, PrimaryIP: n.identity.PrimaryIPv4, VPCCIDRs: n.vpcCIDRs,
		ExcludeSNATCIDRs: c.ExcludeSNATCIDRs, ExternalServiceCIDRs: c.ExternalServiceCIDRs,
		ExternalSNAT: c.ExternalSNAT, NodePortSupport: c.NodePortSupport, RandomizeSNAT: string(c.RandomizeSNAT),
		ConnMark: c.Connmark, VethPrefix: c.VethPrefix, MTU: c.ENIMTU,
	}
}

// ownENIs lists ENIs whose tags are the daemon's to write.
func (n *node) ownENIs(attached []vpcapi.ENI) []vpcapi.ENI {
	if !n.provisioning {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(attached), func(e vpcapi.ENI) bool {
		return e.InterfaceType == string(resync.TypeTrunk) || e.Tags[resync.TagNoManage] == "true" ||
			(e.ID != n.identity.PrimaryENI && !n.config.ManageUntagged && e.Tags[resync.TagInstanceID] != n.identity.InstanceID)
	})
}

// restore fills the book: ENIs from EC2, allocations from the checkpoint and, where
// that is damaged or missing, from the kernel's pod routes.
func restore(ctx context.Context, o *owner, store *checkpoint.Store, host *hostnet.Host, managed []resync.Attached, view outside) error {
	now := o.now()
	for _, ev := range resync.Adopt(o.book.Snapshot(), managed) {
		if _, err := o.book.Apply(now, ev); err != nil {
			return fmt.Errorf("take attached ENIs into the address book: %w", err)
		}
	}
	loaded, err := store.Load()
	if err != nil {
		return fmt.Errorf("load %s: %w", o.node.checkpointPath, err)
	}
	if loaded.Problem != nil {
		o.history.failed(now, "checkpoint", cause.CheckpointUnwritable, loaded.Problem)
		o.log.Error("checkpoint not usable, allocations are rebuilt from the kernel",
			slog.String(logline.KeyPath, loaded.KeptAside), slog.Any(logline.KeyError, loaded.Problem))
	}
	in := resync.RestoreInput{
		Entries: loaded.Entries,
		HashOf:  func(ns, name string) string { return netnames.Hash(ns, name, 0) },
	}
	for name := range view.links {
		in.Links = append(in.Links, name)
	}
	for _, r := range view.routes {
		if r.HostLink != "" {
			in.Routes = append(in.Routes, resync.PodRoute{Address: r.Address, HostLink: r.HostLink})
		}
	}
	result := resync.Restore(in)
	for _, e := range result.Events {
		if _, err := o.book.Apply(now, e); err != nil {
			return fmt.Errorf("restore allocation of %s: %w", e.Address, err)
		}
	}
	for a := range o.book.Assignments() {
		o.ledger.put(a)
	}
	for _, e := range result.Stale {
		//nolint:sloglint // the original's line, which people search for
		o.log.Warn(textStale+e.ContainerID+")", slog.String(logline.KeyIP, e.Address().String()),
			slog.String(logline.KeyPod, e.PodName), slog.String(logline.KeyNamespace, e.PodNamespace))
		if err := host.DropPod(ctx, e.Address()); err != nil {
			o.log.Warn("rules of a stale allocation not removed", slog.String(logline.KeyIP, e.Address().String()), slog.Any(logline.KeyError, err))
		}
	}
	rehome(ctx, o, host, view)
	dropOrphans(ctx, o, host, view)
	if len(result.Stale) > 0 || result.Recovered > 0 || loaded.Problem != nil {
		o.changed()
	}
	for _, a := range o.book.Snapshot().Unplaced {
		o.log.Warn("allocation kept aside: its address is on no known ENI; nothing is released meanwhile",
			slog.String(logline.KeyIP, a.Address.String()), slog.String(logline.KeyPod, a.Pod.Name))
	}
	o.log.Info("allocations restored", slog.Int(logline.KeyCount, len(result.Events)), slog.Int(logline.KeyRecovered, result.Recovered), slog.Int(logline.KeyStale, len(result.Stale)))
	return nil
}

// rehome mends the rules of living pods whose table in the kernel is not the one
// their ENI has: wiped while no daemon ran, or left by another release.
func rehome(ctx context.Context, o *owner, host *hostnet.Host, view outside) {
	seen := make(map[netip.Addr]hostnet.PodRoute, len(view.routes))
	for _, r := range view.routes {
		seen[r.Address] = r
	}
	for a := range o.book.Assignments() {
		r, routed := seen[a.Address]
		if !routed || a.ENI == "" || (r.ToRule && r.Table == a.RouteTable) {
			continue
		}
		if err := host.RehomePod(ctx, a.Address, a.RouteTable); err != nil {
			o.log.Warn("rules of a living pod not mended", slog.String(logline.KeyIP, a.Address.String()), slog.Any(logline.KeyError, err))
			continue
		}
		o.log.Warn("rules of a living pod mended", slog.String(logline.KeyIP, a.Address.String()), slog.Int(logline.KeyRouteTable, a.RouteTable))
	}
}

// dropOrphans removes rules of addresses that no pod has: an ADD that died half-way
// left them, and they would misroute the next pod that gets the address.
func dropOrphans(ctx context.Context, o *owner, host *hostnet.Host, view outside) {
	for _, r := range view.routes {
		if _, held := o.book.AtAddress(r.Address); held || r.HostLink != "" {
			continue
		}
		if err := host.DropPod(ctx, r.Address); err != nil {
			o.log.Warn("left-over rules not removed", slog.String(logline.KeyIP, r.Address.String()), slog.Any(logline.KeyError, err))
			continue
		}
		o.log.Info("left-over rules removed", slog.String(logline.KeyIP, r.Address.String()))
	}
}

package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/checkpoint"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
)

// start learns what the node is, brings the host's rules and the address book up to
// date and returns a daemon that is ready to serve.
func start(ctx context.Context, ops *operations, d Deps, log *slog.Logger) (*daemon, error) {
	initStart := time.Now()
	met := metrics.New(metrics.Options{Version: d.Version, GoVersion: runtime.Version()})
	defer met.Action(metrics.FnNodeInit)()
	metadata := imds.New(imds.Config{Timeout: d.Config.HTTPTimeout, Observe: func(call imds.Call) { countMetadata(met, call) }})
	f, err := readFacts(ctx, metadata, d.Config, log)
	if err != nil {
		return nil, err
	}
	calls := &callCounts{}
	ec2, err := newEC2(ctx, d.Config, f.identity, func(call vpcapi.Call) {
		met.EC2Call(call.Action, call.Took, call.Code, call.Err)
		calls.count(call, time.Now())
	})
	if err != nil {
		return nil, err
	}
	node, err := newNode(ctx, d, log, ec2, f)
	if err != nil {
		return nil, err
	}
	store := checkpoint.Open(d.Config.CheckpointPath)
	// A checkpoint means that a daemon ran here before. It may have died between two
	// EC2 calls; a new node is spared the question.
	sweep := store.Exists() && node.provisioning && !d.Config.LeakSweepOff
	view, err := look(ctx, ec2, f.host, sweep, log)
	if err != nil {
		return nil, err
	}

	images := make(chan image, 1)
	o := &owner{
		log: log, now: time.Now, metrics: met, inbox: make(chan message, inboxSize), ended: make(chan struct{}),
		book: ipam.New(ipam.Options{Cooldown: d.Config.Cooldown}), ledger: newLedger(), commits: images,
		ops: make(map[opID]*operation), backoff: newBackoffs(), attachments: make(map[ipam.ENIID]string),
		history: newHistory(), calls: calls,
	}
	o.exec = &executor{spawn: ops.spawn, ec2: ec2, host: f.host, log: log, post: o.deliver, mtu: d.Config.ENIMTU}
	managed, err := classify(node, view, f.interfaces, time.Now(), log)
	if err != nil {
		return nil, err
	}
	usable, late := setUpENIs(ctx, o.exec, managed, log)
	node.countOthers(late)
	o.node = *node
	o.policy = policyOf(node.config, node.prefixes, 0)
	o.setMaxPods(offlineMaxPods(f.identity.InstanceType))
	if len(view.subnets) > 0 {
		o.subnets.fill(view.subnets, node.subnetPolicy, time.Now())
	}
	for _, e := range view.attached {
		o.attachments[e.ID] = e.AttachmentID
	}

	if err := restore(ctx, o, store, f.host, usable, view); err != nil {
		return nil, err
	}
	met.NodeInitialized(time.Since(initStart), nil)
	met.ConnmarkBackend(f.host.Backend())
	met.ConnmarkReconcile(nil)
	log.Info(textInitDone, slog.Duration(logline.KeyDuration, time.Since(d.Started)))
	o.exec.tagAll(node.ownENIs(view.attached))
	o.exec.adoptAll(late)
	o.exec.deleteOrphans(view.orphans)
	o.exec.readLinks(linkEndDelay)

	return &daemon{
		deps: d, log: log, owner: o, store: store, images: images, metrics: met, host: f.host, imds: metadata,
		kube: kubeClient(d, log), rulesIn: f.rules,
	}, nil
}

// inboxSize lets requests be posted while the owner is at work.
const inboxSize = 256

func newEC2(ctx context.Context, c config.Config, id imds.Identity, observe func(vpcapi.Call)) (*vpcapi.Client, error) {
	return vpcapi.New(ctx, vpcapi.Config{
		Region: id.Region, Endpoint: c.EC2Endpoint, HTTPTimeout: c.HTTPTimeout,
		UserAgent: "amazon-vpc-cni-k8s/" + c.ReleaseVersion, InstanceID: id.InstanceID,
		VPCID: id.VPCID, AZ: id.AZ, ClusterName: c.ClusterName, AdditionalTags: c.AdditionalTags, Observe: observe,
	})
}

// facts is what the node says about itself.
type facts struct {
	identity   imds.Identity
	interfaces []imds.Interface
	vpcCIDRs   []netip.Prefix
	host       *hostnet.Host
	rules      rules.NodeInput
}

// readFacts reads instance metadata and sets up the host's rules as soon as what they
// need is known. That is before the first EC2 request, whose connection new NAT rules
// would break.
func readFacts(ctx context.Context, metadata *imds.Client, c config.Config, log *slog.Logger) (facts, error) {
	var f facts
	found := make(chan struct{}) // closed when f.host is set
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		defer close(found)
		f.host, err = hostnet.New(hostnet.Options{Log: log})
		return err
	})
	group.Go(func() (err error) {
		if f.interfaces, err = metadata.Interfaces(ctx); err != nil {
			return fmt.Errorf(textNoENIs+" (instance metadata must be enabled for the instance and answer on this node): %w", err)
		}
		return nil
	})
	group.Go(func() (err error) {
		if f.identity, err = metadata.Identity(ctx); err != nil {
			return fmt.Errorf("read instance metadata (it must be enabled for the instance and answer on this node): %w", err)
		}
		if f.vpcCIDRs, err = metadata.VPCCIDRs(ctx, f.identity.PrimaryMAC); err != nil {
			return fmt.Errorf("read VPC CIDRs: %w", err)
		}
		if <-found; f.host == nil {
			return nil // its own error ends the group
		}
		f.rules = hostRules(c, f.identity, f.vpcCIDRs)
		if err := f.host.SetupNode(ctx, f.rules); err != nil {
			return fmt.Errorf(textHostNetwork+": %w", err)
		}
		return nil
	})
	err := group.Wait()
	metadata.Forget()
	return f, err
}

// outside is the first picture of everything beyond the process.
type outside struct {
	attached []vpcapi.ENI
	subnets  []vpcapi.Subnet
	routes   []hostnet.PodRoute
	links    map[string]int
	orphans  []vpcapi.ENI // made by an earlier daemon and attached nowhere
}

// look reads EC2 and the kernel side by side: none of these needs another's answer.
// Orphans are looked for here, before this process creates an ENI of its own.
func look(ctx context.Context, ec2 *vpcapi.Client, host *hostnet.Host, sweep bool, log *slog.Logger) (outside, error) {
	var out outside
	group, ctx := errgroup.WithContext(ctx)
	if sweep {
		group.Go(func() error {
			orphans, err := ec2.DescribeOrphans(ctx)
			if err != nil {
				log.Warn("ENIs of an earlier daemon not looked for", slog.String(logline.KeyCause, string(vpcapi.Cause(err))), slog.Any(logline.KeyError, err))
			}
			out.orphans = orphans
			return nil
		})
	}
	group.Go(func() (err error) {
		// By instance and not by the ids of IMDS, which lags behind attachments.
		if out.attached, err = ec2.DescribeENIs(ctx, nil); err != nil {
			return fmt.Errorf(textNoENIs+": %w", err)
		}
		return nil
	})
	group.Go(func() error {
		subnets, err := ec2.DescribeSubnets(ctx)
		if err != nil {
			// Growth can do without: the node's own subnet is known.
			log.Warn("subnets not described at start", slog.String(logline.KeyCause, string(vpcapi.Cause(err))), slog.Any(logline.KeyError, err))
			return nil
		}
		out.subnets = subnets
		return nil
	})
	group.Go(func() (err error) {
		if out.links, err = host.PodLinks(ctx); err != nil {
			return fmt.Errorf("list host links: %w", err)
		}
		if out.routes, err = host.PodRoutes(ctx); err != nil {
			return fmt.Errorf("list pod routes: %w", err)
		}
		return nil
	})
	return out, group.Wait()
}

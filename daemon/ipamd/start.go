package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"golang.org/x/sync/errgroup"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
)

// start finds out about the node, brings the host's rules and the address book up to date and
// returns a daemon that is ready to serve.
func start(ctx context.Context, ops *operations, d Deps, log *slog.Logger) (_ *daemon, err error) {
	initStart := time.Now()
	met := metrics.New(metrics.Options{Version: d.Version, GoVersion: runtime.Version()})
	defer met.Action(metrics.FnNodeInit)()
	api, err := newKubernetes(d, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			api.flush(ctx)
		}
	}()
	if api != nil {
		ops.spawn(api.greet)
	}
	metadata := imds.New(imds.Config{Timeout: d.Config.HTTPTimeout, IPv6: d.Config.IPv6, Observe: func(call imds.Call) { met.IMDSCall(call.Path, call.Took, call.Err) }})
	f, err := readFacts(ctx, metadata, d.Config, log)
	if err != nil {
		return nil, err
	}
	counts, refused := &callCounts{}, refusals{log, api}
	o := newOwner(met)
	var ec2 *vpcapi.Client
	if !d.Config.IMDSOnly {
		if ec2, err = newEC2(ctx, d.Config, f.identity, func(call vpcapi.Call) {
			met.EC2Call(call.Action, call.Took-call.Waited, call.Code, call.Err)
			counts.count(call, time.Now())
			refused.observe(call)
			if call.Throttled > 0 {
				o.tryPost(keeper.Throttled{})
			}
		}); err != nil {
			return nil, err
		}
	}
	node, err := newNode(ctx, d, log, ec2, f)
	if err != nil {
		return nil, err
	}
	if api != nil {
		node.nodeWait = nodeWaitLimit
		api.trunk, api.targets = node.keeperSettings().Trunk, node.targets
	}
	files := openCheckpoints(d.Config.CheckpointPath)
	// A checkpoint means that a daemon ran here before, which may have died between two EC2
	// calls. A new node skips the search.
	restart := files.exists()
	sweep := restart && node.provisioning && !d.Config.LeakSweepOff
	var calls keeper.EC2 = metadataOnly{metadata: metadata, instance: f.identity.InstanceID, primary: f.identity.PrimaryENI}
	if ec2 != nil {
		calls = ec2
	}
	view, err := readOutside(vpcapi.Urgent(ctx), calls, f.host, sweep, log)
	if err != nil {
		return nil, err
	}

	if ec2 != nil {
		ops.spawn(func(ctx context.Context) { logCredentials(ctx, log, ec2, metadata, f.identity.Account) })
	}

	s := &starter{
		log: log, now: time.Now, node: *node, view: view, restart: restart,
		recorder: newRecorder(ctx, log, met, introspectserver.NewFeed(d.Started), node.keeperSettings().Policy),
		exec: &executor{
			EC2: calls, Host: f.host, Client: metadata, mtu: d.Config.ENIMTU, ipv6: d.Config.IPv6, spawn: ops.spawn, metrics: met, log: log,
		},
	}
	s.recorder.started(d.Started, d.Version)
	s.recorder.subnets = newSubnetHistory(d.Config, log)
	if api != nil {
		s.recorder.kube = api
	}
	for _, p := range node.unsuited {
		s.recorder.publish(time.Now(), settingProblem(p))
	}
	out := &outside{executor: s.exec, images: make(chan keeper.Image, 1), recorder: s.recorder}
	o.stepped = s.recorder.lines.stepped
	s.exec.post, s.exec.podsWait = o.deliver, o.podsWait
	if api != nil {
		api.owner = o
		api.problem = func(p config.Problem) {
			logProblem(log, p)
			_, _ = ask(o, func(_ *keeper.Keeper, now time.Time) struct{} { // nobody reads it once the daemon ends
				s.recorder.publish(now, settingProblem(p))
				return struct{}{}
			})
		}
	}
	if o.keeper, err = s.keeper(ctx, files, f, out); err != nil {
		return nil, err
	}
	s.recorder.subnets.note(s.now(), o.keeper.State(s.now()).Subnets)
	met.NodeInitialized(time.Since(initStart), nil)
	met.ConnmarkBackend(f.host.Backend())
	met.ConnmarkReconcile(nil)
	log.Info(textInitDone, slog.Duration(logline.KeyDuration, time.Since(d.Started)))
	return &daemon{
		deps: d, log: log, node: s.node, owner: o, recorder: s.recorder, calls: counts, ec2: ec2, files: files, images: out.images,
		metrics: met, host: f.host, imds: metadata, api: api, rules: f.rules,
	}, nil
}

// starter holds the state shared by the parts of a start.
type starter struct {
	log      *slog.Logger
	now      func() time.Time
	node     node
	view     firstView
	restart  bool // a daemon ran on this node before
	recorder *recorder
	exec     *executor
}

// keeper creates the state machine and fills it.
func (s *starter) keeper(ctx context.Context, files *checkpoints, f facts, out keeper.Outside) (*keeper.Keeper, error) {
	settings := s.node.keeperSettings()
	k := keeper.New(keeper.Options{
		Settings: settings, Limits: s.node.limits, VPCCIDRs: f.vpcCIDRs, SecurityGroups: s.node.securityGroups,
		ConnTrack: primaryTracking(s.view.attached, settings.PrimaryENI), Outside: out, Jitter: jitter, Now: s.now(),
	})
	pods, source := offlineMaxPods(s.node.identity.InstanceType)
	k.SetMaxPods(s.now(), pods, source)
	return k, s.restore(ctx, k, files, f.interfaces)
}

// primaryTracking is the primary ENI's connection tracking setting; new ENIs get the same.
func primaryTracking(attached []vpcapi.ENI, primary ipam.ENIID) resync.ConnTrack {
	for _, e := range attached {
		if e.ID == primary {
			return e.ConnTrack
		}
	}
	return resync.ConnTrack{}
}

func newEC2(ctx context.Context, c config.Config, id imds.Identity, observe func(vpcapi.Call)) (*vpcapi.Client, error) {
	return vpcapi.New(ctx, vpcapi.Config{
		Region: id.Region, Endpoint: c.EC2Endpoint, HTTPTimeout: c.HTTPTimeout,
		UserAgent: "amazon-vpc-cni-k8s/" + c.ReleaseVersion, InstanceID: id.InstanceID,
		VPCID: id.VPCID, AZ: id.AZ, ClusterName: c.ClusterName, AdditionalTags: c.AdditionalTags, Observe: observe,
	})
}

// logCredentials logs whose AWS credentials the daemon uses. Otherwise, a service account's role
// that is not in use shows only by a missing permission.
func logCredentials(ctx context.Context, log *slog.Logger, ec2 *vpcapi.Client, metadata *imds.Client, account string) {
	id, err := ec2.Identity(ctx)
	if id.Provider == ec2rolecreds.ProviderName {
		id.Account = account
		id.Role, err = metadata.Role(ctx)
	}
	if err != nil {
		log.Warn("could not determine the AWS identity", slog.Any(logline.KeyError, err))
		return
	}
	log.Info("AWS credentials found", slog.String(logline.KeyProvider, id.Provider), slog.String(logline.KeyRole, id.Role), slog.String(logline.KeyAccount, id.Account))
}

// facts is what the node reports about itself.
type facts struct {
	identity   imds.Identity
	interfaces []imds.Interface
	vpcCIDRs   []netip.Prefix
	host       *hostnet.Host
	rules      *nodeRules
	noIPv6     bool // ENABLE_V6_EGRESS needs an IPv6 address of the primary ENI, and there is none
}

// readFacts reads instance metadata and sets up the host's rules as soon as their input is
// known. That is before the first EC2 request, whose connection new NAT rules would break.
func readFacts(ctx context.Context, metadata *imds.Client, c config.Config, log *slog.Logger) (facts, error) {
	var f facts
	found := make(chan struct{}) // closed when f.host is set
	writes := &filterWrites{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(found)
		host, err := hostnet.New(ctx, hostnet.Options{Log: log, Observe: writes.observe})
		if err != nil {
			return err
		}
		if err := host.CheckCapabilities(); err != nil {
			return fmt.Errorf(textHostNetwork+": %w", err)
		}
		f.host = host
		return nil
	})
	group.Go(func() (err error) {
		if f.interfaces, err = metadata.Interfaces(ctx); err != nil {
			return fmt.Errorf(textNoENIs+" (instance metadata must be enabled for the instance and answer on this node): %w", err)
		}
		return nil
	})
	if c.V6Egress && !c.IPv6 {
		group.Go(func() error {
			_, err := metadata.PrimaryIPv6(ctx)
			f.noIPv6 = errors.Is(err, imds.ErrNotThere) // after any other error the entrypoint knows more
			return nil
		})
	}
	group.Go(func() (err error) {
		if f.identity, err = metadata.Identity(ctx); err != nil {
			return fmt.Errorf("read instance metadata (it must be enabled for the instance and answer on this node): %w", err)
		}
		if c.IPv6 && !f.identity.PrimaryIPv6.IsValid() {
			return fmt.Errorf("%s: ENABLE_IPv6 is true and the primary ENI %s has no IPv6 address: its subnet must have an IPv6 block and assign addresses", textValidation, f.identity.PrimaryENI)
		}
		if f.vpcCIDRs, err = vpcCIDRs(ctx, metadata, f.identity.PrimaryMAC, c.IPv6); err != nil {
			return fmt.Errorf("read VPC CIDRs: %w", err)
		}
		if <-found; f.host == nil {
			return nil // its own error ends the group
		}
		f.rules = &nodeRules{host: f.host, writes: writes, in: hostRules(c, f.identity, f.vpcCIDRs)}
		if err := f.host.SetupNode(ctx, f.rules.in); err != nil {
			return fmt.Errorf(textHostNetwork+": %w", err)
		}
		return nil
	})
	err := group.Wait()
	metadata.Forget()
	return f, err
}

// vpcCIDRs reads the VPC's CIDRs of a family.
func vpcCIDRs(ctx context.Context, metadata *imds.Client, mac string, ipv6 bool) ([]netip.Prefix, error) {
	if ipv6 {
		return metadata.VPCIPv6CIDRs(ctx, mac)
	}
	return metadata.VPCCIDRs(ctx, mac)
}

// firstView is the first view of everything outside the process.
type firstView struct {
	attached []vpcapi.ENI
	subnets  []vpcapi.Subnet
	routes   []resync.PodRoute
	links    map[string]int
	orphans  []vpcapi.ENI // created by an earlier daemon, and not attached
}

// readOutside reads EC2 and the kernel in parallel: none needs another's answer. It looks for
// orphans here, before this process creates an ENI itself.
func readOutside(ctx context.Context, ec2 keeper.EC2, host *hostnet.Host, sweep bool, log *slog.Logger) (firstView, error) {
	var out firstView
	group, ctx := errgroup.WithContext(ctx)
	if sweep {
		group.Go(func() error {
			orphans, err := ec2.DescribeOrphans(ctx)
			if err != nil {
				log.Warn("skipped the search for leaked ENIs", slog.String(logline.KeyCause, string(keeper.CauseOf(err))), slog.Any(logline.KeyError, err))
			}
			out.orphans = orphans
			return nil
		})
	}
	group.Go(func() (err error) {
		// By instance rather than by the IDs in IMDS, which lags behind attachments.
		if out.attached, err = ec2.DescribeENIs(ctx, nil); err != nil {
			return fmt.Errorf(textNoENIs+": %w", err)
		}
		return nil
	})
	group.Go(func() error {
		subnets, err := ec2.DescribeSubnets(ctx)
		if err != nil {
			// Growth works without them: the node's own subnet is known.
			log.Warn("subnets not described at start", slog.String(logline.KeyCause, string(keeper.CauseOf(err))), slog.Any(logline.KeyError, err))
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

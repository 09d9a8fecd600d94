package ipamd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"cnictl/capacity/limits"
	"cnictl/daemon/config"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// node is what start-up found out about this instance. It never changes, except targets.
type node struct {
	config         config.Config    // without labels of the Node
	targets        *targets         // with them
	unsuited       []config.Problem // settings that cannot take effect on this instance
	version        string           // of this build
	identity       imds.Identity
	instance       limits.Instance
	limits         warmpool.Limits
	prefixes       bool // prefix delegation is wanted and possible
	provisioning   bool
	checkpointPath string
	securityGroups []string
	subnetPolicy   resync.SubnetPolicy
	started        time.Time
	nodeWait       time.Duration // how long the pool waits for the Node object; 0 if there is no API server
}

// nodeWaitLimit is how long the pool does not grow ahead of demand while it is unknown whether
// the node is cordoned.
const nodeWaitLimit = 5 * time.Second

// newNode combines the settings with the facts of the instance.
func newNode(ctx context.Context, d Deps, log *slog.Logger, ec2 *vpcapi.Client, f facts) (*node, error) {
	c, identity := d.Config, f.identity
	instance, err := instanceOf(ctx, ec2, identity.InstanceType, f.interfaces)
	if err != nil {
		return nil, err
	}
	about := config.Facts{InstanceType: identity.InstanceType, PrefixDelegation: instance.PrefixDelegation(), MaxENIs: instance.MaxENIs,
		NoIPv6: f.noIPv6}
	news := beyond(config.Validate(c, about), config.Validate(c, config.Facts{})) // those were reported
	if err := reportProblems(log, news); err != nil {
		return nil, err
	}
	targets := newTargets(c, about, d.Problems)
	c = c.For(about)
	n := &node{
		config: c, version: d.Version, identity: identity, instance: instance, limits: plannerLimits(instance, c.MultiNIC),
		targets: targets, unsuited: news,
		prefixes:     c.PrefixDelegation,
		provisioning: !c.ProvisioningDisabled(), checkpointPath: c.CheckpointPath, started: d.Started,
		subnetPolicy: resync.SubnetPolicy{
			NodeSubnet: identity.SubnetID, ClusterName: c.ClusterName, Discovery: c.SubnetDiscovery, Custom: c.CustomNetworking,
		},
	}
	i := slices.IndexFunc(f.interfaces, func(f imds.Interface) bool { return f.ENI == identity.PrimaryENI })
	if i < 0 {
		return nil, fmt.Errorf("instance metadata does not list the primary interface %s", identity.PrimaryENI)
	}
	n.securityGroups = f.interfaces[i].SecurityGroups
	return n, nil
}

// hostRules is the input for the node's rules, from what start-up knows.
func hostRules(c config.Config, id imds.Identity, vpcCIDRs []netip.Prefix) rules.NodeInput {
	return rules.NodeInput{
		IPv6: c.IPv6, StrictPodENI: c.PodENI && c.PodSecurityMode == "strict",
		PrimaryMAC: id.PrimaryMAC, PrimaryIP: id.PrimaryIPv4, VPCCIDRs: vpcCIDRs,
		ExcludeSNATCIDRs: c.ExcludeSNATCIDRs, ExternalServiceCIDRs: c.ExternalServiceCIDRs,
		ExternalSNAT: c.ExternalSNAT, NodePortSupport: c.NodePortSupport, RandomizeSNAT: string(c.RandomizeSNAT),
		ConnMark: c.Connmark, VethPrefix: c.VethPrefix, MTU: c.ENIMTU, V6Egress: c.V6Egress,
	}
}

// keeperSettings are the settings of the state machine.
func (n *node) keeperSettings() keeper.Settings {
	c := n.config
	return keeper.Settings{
		Policy: policyOf(c, n.prefixes, 0), Provisioning: n.provisioning,
		// AmazonEKS_CNI_IPv6_Policy, the usual role of IPv6 nodes, does not allow deleting ENIs.
		SweepLeaks:     n.provisioning && !c.LeakSweepOff && !c.IPv6,
		CheckpointPath: n.checkpointPath, VethPrefix: c.VethPrefix, ExternalSNAT: c.ExternalSNAT,
		ExcludeSNATCIDRs: c.ExcludeSNATCIDRs, NetworkPolicyMode: c.NetworkPolicyMode,
		InstanceID: n.identity.InstanceID, PrimaryENI: n.identity.PrimaryENI, ClusterName: c.ClusterName,
		ManageUntagged: c.ManageUntagged, MultiNIC: c.MultiNIC, Subnets: n.subnetPolicy,
		IPv6: c.IPv6, Trunk: c.PodENI && n.instance.TrunkingCompatible != limits.No && !c.IMDSOnly,
		NodeWait:    n.nodeWait,
		TokenPrefix: n.identity.InstanceID + "-" + strconv.FormatInt(n.started.UnixNano(), 36),
	}
}

func plannerLimits(i limits.Instance, multiNIC bool) warmpool.Limits {
	if multiNIC {
		return warmpool.Limits{IPv4PerENI: i.IPv4PerENI, ENIsByCard: i.ENIsByCard()}
	}
	return warmpool.Limits{IPv4PerENI: i.IPv4PerENI, ENIsByCard: []int{i.MaxENIs}}
}

func policyOf(c config.Config, prefixes bool, maxPods int) warmpool.Policy {
	return warmpool.Policy{
		PrefixDelegation: prefixes,
		IPv6:             c.IPv6,
		CustomNetworking: c.CustomNetworking,
		MultiNIC:         c.MultiNIC,
		WarmENI:          c.WarmENI,
		WarmIP:           c.WarmIP,
		MinIP:            c.MinIP,
		WarmPrefix:       c.WarmPrefix,
		MaxENI:           c.MaxENI,
		MaxPods:          maxPods,

		ManageUnschedulable: c.ManageUnschedulable,
		Cooldown:            c.Cooldown,
		ScaleDownInterval:   30 * time.Second,
		ENIMinAge:           60 * time.Second,
	}
}

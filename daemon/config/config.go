package config

import (
	"net/netip"
	"time"
)

// Config holds every setting, typed. A setting that was not given or was not usable has the
// default of its row.
type Config struct {
	// Address families. Exactly one is on in a config that passes Validate.
	IPv4 bool
	IPv6 bool

	// The address pool.
	PrefixDelegation    bool
	WarmENI             int
	WarmIP              int // 0: not set
	MinIP               int // 0: not set
	WarmPrefix          int
	MaxENI              int           // 0: only the instance type's limit
	TargetsFromLabels   bool          // labels of the Node override the five above
	Cooldown            time.Duration // cooldown of an address after its pod ends
	AddWait             time.Duration // how long an ADD waits for a dry pool to grow
	ReadyWithAddresses  bool          // the readiness service requires a free address
	ManageUnschedulable bool          // grow and free ENIs on a cordoned node
	SubnetDiscovery     bool
	ProvisioningOff     bool // change nothing in EC2
	IMDSOnly            bool
	LeakSweepOff        bool
	ManageUntagged      bool

	// Optional modes.
	CustomNetworking    bool
	ENIConfigAnnotation string
	ENIConfigLabel      string
	PodENI              bool
	PodSecurityMode     string // "strict" or "standard"
	MultiNIC            bool
	AnnotatePodIP       bool
	NetworkPolicyMode   string // as typed; "" = not set

	// Host network.
	ExternalSNAT         bool
	ExcludeSNATCIDRs     []netip.Prefix // IPv4, masked
	ExternalServiceCIDRs []netip.Prefix // IPv4, masked
	RandomizeSNAT        SNATPorts
	NodePortSupport      bool
	Connmark             uint32
	ENIMTU               int
	PodMTU               int // ENIMTU when not set
	VethPrefix           string
	V6Egress             bool
	V4Egress             bool

	// Node and cluster.
	CheckpointPath  string
	ClusterName     string
	AdditionalTags  map[string]string // without keys reserved for ipamd
	ClusterEndpoint string
	Kubeconfig      string
	NodeName        string
	PodName         string
	ReleaseVersion  string // user agents only
	HTTPTimeout     time.Duration
	EC2Endpoint     string

	// Observation.
	MetricsOff        bool
	IntrospectionOff  bool
	IntrospectionAddr string // host:port or unix:path
	LogFile           string // path, "stdout" or "stderr"
	LogLevel          string // lower case

	// What the entrypoint writes into the conflist.
	PluginLogFile    string
	PluginLogLevel   string
	EgressV4LogFile  string
	EgressV6LogFile  string
	BandwidthPlugin  bool
	ConflistVersions bool // cniVersions in the conflist
	ConflistEgress   bool // egress-cni in the conflist, used or not
	PodV6Off         bool
	CNIBinDir        string
	CNIConfDir       string
	StartLimit       time.Duration // limit of the wait for the daemon

	// Init container.
	EarlyDemuxOff bool

	// cni-metrics-helper.
	CloudWatch     bool
	Prometheus     bool
	MetricInterval time.Duration
	Region         string
	ClusterID      string

	origins map[string]origin
}

// origin records what Load found for one variable.
type origin struct {
	set      bool
	declared string
	taken    bool   // the declared value is in effect, at least in part
	shown    string // the effective value after Load and WithLabels, as text

	label *string // the Node's label as written; nil = none
	inUse string  // the label's value in effect; "" = none: the environment's or the default is
}

func (c Config) declared(variable string) string { return c.origins[variable].declared }

// SNATPorts is how SNAT chooses source ports.
type SNATPorts string

const (
	SNATPortsPRNG SNATPorts = "prng"       // --random-fully
	SNATPortsHash SNATPorts = "hashrandom" // --random
	SNATPortsNone SNATPorts = "none"
)

// APIServerMandatory reports whether an enabled mode cannot start without the Kubernetes
// API (spec: the daemon then waits for it without limit).
func (c Config) APIServerMandatory() bool {
	return c.PodENI || c.CustomNetworking || c.AnnotatePodIP
}

// ProvisioningDisabled reports whether the daemon must change nothing in EC2, by its own
// setting or by IMDS-only mode.
func (c Config) ProvisioningDisabled() bool { return c.ProvisioningOff || c.IMDSOnly }

// Facts holds what Validate needs to know about the instance and its type. The zero value means
// that nothing is known yet: the checks that depend on it are skipped.
type Facts struct {
	InstanceType     string
	PrefixDelegation bool // Nitro or bare metal
	MaxENIs          int  // on the default network card; 0 = unknown
	NoIPv6           bool // the primary ENI has no IPv6 address
}

// For returns the config as it works on an instance type: prefix delegation is off if the
// hypervisor does not support it, and MAX_ENI is at most the type's limit. Validate reports
// the difference.
func (c Config) For(f Facts) Config {
	if f.InstanceType != "" && !f.PrefixDelegation && c.IPv4 && !c.IPv6 {
		c.PrefixDelegation = false
	}
	if f.MaxENIs > 0 {
		c.MaxENI = min(c.MaxENI, f.MaxENIs)
	}
	return c
}

package aggregate

import "slices"

// Kind is how the values of the nodes become one figure.
type Kind int

const (
	Gauge   Kind = iota // the sum
	Counter             // the sum of the increases since the previous poll
	Latency             // the worst node's
)

// Metric is one row of the table: what is read, and its name in CloudWatch.
type Metric struct {
	Source    string // metric family of ipamd
	Published string // name in CloudWatch
	Kind      Kind
}

// Names of families used in more than one place.
const (
	APILatency  = "awscni_aws_api_latency_ms"
	NoAddresses = "awscni_no_available_ip_addresses"
)

// metrics are the figures that upstream's cni-metrics-helper publishes (amazon-vpc-cni-k8s:
// cmd/cni-metrics-helper/README.md); the last row is our addition.
var metrics = []Metric{
	{"awscni_assigned_ip_addresses", "assignIPAddresses", Gauge},
	{"awscni_total_ip_addresses", "totalIPAddresses", Gauge},
	{"awscni_total_ipv4_prefixes", "totalIPv4Prefixes", Gauge},
	{"awscni_assigned_ip_per_cidr", "totalAssignedIPv4sPerCidr", Gauge},
	{"awscni_eni_allocated", "eniAllocated", Gauge},
	{"awscni_eni_max", "eniMaxAvailable", Gauge},
	{"awscni_ip_max", "maxIPAddresses", Gauge},
	{APILatency, "awsAPILatency", Latency},
	{"awscni_aws_api_error_count", "awsAPIErr", Counter},
	{"awscni_aws_utils_error_count", "awsUtilErr", Counter},
	{"awscni_ipamd_error_count", "ipamdErr", Counter},
	{"awscni_force_removed_enis", "forceRemoveENI", Counter},
	{"awscni_force_removed_ips", "forceRemoveIPs", Counter},
	{"awscni_ipamd_action_inprogress", "ipamdActionInProgress", Gauge},
	{"awscni_reconcile_count", "reconcileCount", Counter},
	{"awscni_add_ip_req_count", "addReqCount", Counter},
	{"awscni_del_ip_req_count", "delReqCount", Counter},
	{"awscni_pod_eni_error_count", "podENIErr", Counter},
	{"awscni_ec2api_req_count", "ec2ApiReqCount", Counter},
	{"awscni_ec2api_error_count", "ec2ApiErrCount", Counter},
	{NoAddresses, "noAvailableIPAddresses", Counter},
}

// Metrics returns the table in the order of publication.
func Metrics() []Metric { return slices.Clone(metrics) }

package catalogue

import (
	"slices"
	"strings"
)

// Observations that many causes explain.
const (
	noStart = "pod-not-starting event log-error ec2-error add-failing add-waiting " // pods get no address or no network
	empty   = noStart + "pool-dry daemon-back-off subnet-low eni-empty counters "   // for want of addresses
	down    = noStart + "network-not-ready daemon-not-ready daemon-restarts init-failing pod-not-ending pool-dry rollout network-condition daemon-silent "
	branch  = noStart + "pod-unschedulable cninode "
)

// explained lists the kinds of observations that each cause explains, without their group.
var explained = map[string]string{
	"ip/subnet-exhausted":        empty,
	"ip/prefix-fragmented":       empty,
	"ip/alloc-backoff":           empty,
	"ip/warm-pool-lag":           empty,
	"ip/cooldown-saturated":      empty,
	"ip/leaked-allocations":      empty + "allocation-no-pod allocation-only-in-checkpoint",
	"ip/live-allocation-dropped": "pod-no-allocation allocation-only-in-checkpoint pod-not-in-checkpoint pod-address-on-no-eni log-error",
	"ip/mode-mixed":              empty + "address-not-in-datastore",
	"ip/pd-unsupported-type":     empty + "max-pods-high",
	"ip/subnet-excluded":         empty,
	"ip/discovery-unused":        empty,
	"ip/v6-prefix-missing":       empty,

	"cap/max-pods":       empty + "max-pods-high max-pods-differs",
	"cap/max-pods-low":   "max-pods-low max-pods-differs pod-unschedulable event",
	"cap/growth-stopped": empty + "allocation-no-pod",
	"cap/eni-limit":      empty,

	"config/min-ip-only": empty,
	"config/warm-waste":  "subnet-low",
	"config/invalid":     down + "setting",

	"eni/leaked":               "subnet-low",
	"eni/foreign-slots":        empty + "eni-not-in-datastore stated-limit",
	"eni/region-quota":         empty + "quota",
	"eni/ec2-rejected":         empty,
	"eni/setup-failed":         empty + "eni-not-in-datastore eni-no-link address-not-in-datastore eni-not-in-metadata",
	"eni/detached-out-of-band": "counters dns eni-not-in-ec2 pod-address-on-no-eni eni-no-link address-not-in-ec2 eni-not-in-metadata eni-only-in-metadata event log-error",
	"eni/imds-stale": "dns eni-not-in-metadata eni-only-in-metadata eni-address-differs address-not-in-ec2 address-not-in-datastore address-not-in-metadata " +
		"address-only-in-metadata pod-address-on-no-eni log-error ec2-error pool-dry pod-not-starting",
	"eni/node-unschedulable": empty,
	"eni/provisioning-off":   empty,

	"cfgnet/eniconfig-missing": empty + down + "eniconfig-differs",
	"cfgnet/eniconfig-invalid": empty,
	"cfgnet/changed-live":      "eniconfig-differs max-pods-high pool-dry",

	"aws/iam":              empty + down + "iam",
	"aws/credentials":      empty + down,
	"aws/throttled":        empty + down,
	"aws/clock":            empty + down + "clock",
	"aws/ec2-unreachable":  empty + down + "probe-failing",
	"aws/imds-unreachable": empty + down + "metadata probe-failing eni-not-in-metadata",
	"aws/instance-type":    empty + down,

	"boot/apiserver":           down + "probe-failing kube-proxy-not-ready node-not-ready",
	"boot/rbac":                down + "right branch-no-pod",
	"boot/ipamd-down":          down + "cpu log-error checkpoint port",
	"boot/probe-timeout":       down + "cpu probe-limits",
	"boot/socket-skew":         down + "plugin-other-release image-releases",
	"boot/plugin-version-skew": noStart + "plugin-other-release",
	"boot/checkpoint":          down + "checkpoint pod-not-in-checkpoint allocation-not-in-checkpoint",
	"boot/backing-store":       down + "disk read-only denial allocation-not-in-checkpoint",
	"boot/iptables":            down + "kernel-module",
	"boot/cni-config":          down + "cni-config pod-of-other-cni",
	"boot/port-conflict":       down + "port agent-not-ready",
	"boot/primary-link":        down + "eni-no-link",
	"boot/disk-full":           noStart + "disk read-only node-pressure:DiskPressure",
	"boot/crd-missing":         down + "crd agent-not-ready cninode",
	"boot/webhook":             "webhook event pod-unschedulable",
	"boot/monitor-latched":     "network-condition",
	"boot/daemon-missing":      "daemon-not-on-node network-not-ready pod-not-starting event pod-unschedulable",
	"boot/rollout":             "rollout",

	"sgp/instance-unsupported": branch, "sgp/no-trunk-slot": branch, "sgp/trunk-create-failed": branch, "sgp/trunk-link-missing": branch + "eni-no-link eni-link-down pod-no-vlan",
	"sgp/annotation-pending": branch + "right", "sgp/branch-alloc-failed": branch + "subnet-low", "sgp/annotation-denied": branch + "webhook right",
	"sgp/annotation-malformed": branch, "sgp/branch-conflict": branch, "sgp/branch-capacity": branch + "branch-no-pod",
	"sgp/feature-off": branch, "sgp/limit-not-first": branch, "sgp/pod-lookup-failed": branch, "sgp/sg-rules": "probe-failing event",
	"sgp/ipvs": "kube-proxy-ipvs probe-failing",

	"net/setup-failed":     noStart + "pod-not-ending veth-no-pod",
	"net/veth-mac-changed": "dns pod-gateway-mac probe-failing",
	"net/rules-flushed": "dns pod-no-rule pod-no-route eni-no-route eni-route-wrong node-second-default-route network-manager probe-failing network-condition " +
		"rule-wrong main-rule",
	"net/stale-rules":        "dns rule-wrong route-no-pod veth-no-pod probe-failing",
	"net/duplicate-ip":       "dns pod-address-shared pod-address-differs",
	"net/node-address":       "dns pod-address-of-node pod-address-shared pod-address-on-no-eni pod-no-allocation address-not-in-ec2",
	"net/veth-missing":       "dns pod-no-veth pod-no-vlan pod-no-route",
	"net/link-down":          "dns eni-link-down pod-veth-down network-condition probe-failing",
	"net/backend-mismatch":   "chains-split snat reply-path probe-failing",
	"net/snat":               "snat reply-path probe-failing",
	"net/forward-drop":       "dns forward-dropped forwarding-off probe-failing network-condition",
	"net/rpf-conntrack":      "reply-path probe-failing",
	"net/mtu":                "mtu probe-failing",
	"net/nic-allowance":      "allowance probe-failing network-condition",
	"net/conntrack-full":     "conntrack probe-failing",
	"net/kube-proxy":         "kube-proxy-not-ready kube-proxy-rules probe-failing",
	"np/agent-unreachable":   noStart + "agent-not-ready pod-not-ending",
	"np/agent-failing":       "agent-not-ready log-error",
	"np/agent-version-skew":  noStart + "agent-not-ready",
	"np/attach-failed":       noStart + "agent-not-ready kernel-module",
	"np/strict-default-deny": "pod-no-policy probe-failing",

	"obs/pod-not-starting":      "event log-error ec2-error add-failing add-waiting pool-dry subnet-low daemon-back-off",
	"obs/counters":              noStart + "pool-dry daemon-back-off subnet-low eni-empty",
	"obs/pool-dry":              "log-error ec2-error add-failing add-waiting event subnet-low",
	"obs/node-no-default-route": "node-second-default-route probe-failing sysctl:.accept_ra",
	"obs/rule-ahead":            "probe-failing",
	"obs/route-overlaps":        "probe-failing",
	"obs/main-rule":             "probe-failing",
	"obs/pod-unschedulable":     "event",
	"obs/pod-not-ending":        "event",
	"obs/daemon-not-ready":      "daemon-restarts log-error rollout network-not-ready event pod-not-starting",
	"obs/init-failing":          "daemon-not-ready daemon-restarts log-error rollout network-not-ready event pod-not-starting",
	"obs/network-not-ready":     "event pod-not-starting pod-unschedulable",
	"obs/node-not-ready":        "event pod-unschedulable",
	"obs/startup-taint":         "pod-unschedulable event",
	"obs/cninode":               "pod-unschedulable pod-not-starting event log-error",
	"obs/dns":                   "event probe-failing",
	"obs/neighbours":            "probe-failing",
	"obs/pod-not-network":       "event",
	"obs/eni-empty":             "pool-dry pod-not-starting event log-error add-waiting add-failing daemon-back-off",
	"obs/eni-attaching":         "pool-dry pod-not-starting event log-error add-waiting add-failing daemon-back-off",
	"obs/vpc-route":             "probe-failing",
	"obs/groups-closed":         "probe-failing",
	"obs/memory":                "node-pressure:MemoryPressure",
	"obs/denial":                noStart,
	"obs/eni-not-in-ec2":        "eni-not-in-metadata eni-no-link address-not-in-ec2 pod-no-vlan",
	"obs/eni-not-in-datastore":  noStart + "pool-dry counters daemon-back-off",
	"obs/disk":                  "node-pressure:DiskPressure",
	"obs/pod-address-on-no-eni": "pod-no-allocation address-not-in-ec2",
	"obs/pod-address-differs":   "pod-no-allocation pod-address-on-no-eni",
}

// Stops reports whether a kind of observations is that pods get no address or no network.
func Stops(code string) bool {
	return slices.Contains(strings.Fields(noStart), strings.TrimPrefix(code, GroupObserved+"/"))
}

// stopGrowth are the causes that only keep a pool from growing: pods fail once no address is free.
var stopGrowth = []string{
	"aws/iam", "aws/credentials", "aws/throttled", "aws/ec2-unreachable", "cfgnet/eniconfig-missing", "cfgnet/eniconfig-invalid",
	"ip/subnet-exhausted", "ip/prefix-fragmented", "ip/subnet-excluded", "eni/region-quota", "eni/ec2-rejected",
}

// StopsGrowth reports whether a cause does no harm to a node as long as it has free addresses and its daemon runs.
func StopsGrowth(code string) bool { return slices.Contains(stopGrowth, code) }

// Observes returns the kinds of observations that a cause explains, as codes.
func (e *Entry) Observes() (codes []string) {
	for name := range strings.FieldsSeq(explained[e.Code]) {
		kind, _, _ := strings.Cut(name, ":")
		codes = append(codes, GroupObserved+"/"+kind)
	}
	return codes
}

// ObservesOf reports whether the cause explains a subject's observation of a kind: after a colon, explained has
// what the subjects end with that a cause explains.
func (e *Entry) ObservesOf(code, subject string) bool {
	for name := range strings.FieldsSeq(explained[e.Code]) {
		kind, only, limited := strings.Cut(name, ":")
		if code == GroupObserved+"/"+kind && (!limited || strings.HasSuffix(subject, only)) {
			return true
		}
	}
	return false
}

package fakeaws

import (
	"time"

	"cnictl/capacity/limits"
)

// Options describe a World. The zero value works: region us-west-2, no latency, attachments
// complete immediately, metadata is current, and nothing is throttled or denied.
type Options struct {
	Region    string // default "us-west-2"
	AccountID string // default "111122223333"
	Seed      uint64 // of request ids and metadata tokens; never of addresses or object ids

	Latency map[string]time.Duration // by action; "IMDS" for every metadata request

	AttachDelay      time.Duration // attaching → attached, after the call has returned
	DetachDelay      time.Duration // detaching → gone
	MetadataLag      time.Duration // how late IMDS shows what EC2 has done, both additions and removals
	DescribeLag      time.Duration // how late EC2 lists its own changes of ENIs: IMDS and the node may be ahead
	SerialiseAttach  bool          // one AttachNetworkInterface per instance at a time
	Throttle         *Throttle     // nil if there are no request limits
	Allow            []string      // actions the caller's role may use; nil for all
	ExhaustedAsValue bool          // report missing addresses and prefixes as InvalidParameterValue, as EC2 sometimes does (amazon-vpc-cni-k8s issue 3105)

	// Types adds instance types to the table of capacity/limits, or overrides them
	// in this world.
	Types []limits.Instance
	// HideTypes omits types from DescribeInstanceTypes' answers.
	HideTypes []string

	Now func() time.Time // default time.Now; for token lifetimes, buckets, lags and times in answers
}

func (o Options) withDefaults() Options {
	if o.Region == "" {
		o.Region = "us-west-2"
	}
	if o.AccountID == "" {
		o.AccountID = "111122223333"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// RealisticLatency returns latencies that are usual for EC2, as all comparisons assume them.
func RealisticLatency() map[string]time.Duration {
	l := make(map[string]time.Duration)
	for name := range actions {
		l[name] = 80 * time.Millisecond
	}
	l["CreateNetworkInterface"] = 300 * time.Millisecond
	l["AttachNetworkInterface"] = time.Second
	l["AssignPrivateIpAddresses"] = 400 * time.Millisecond
	l["AssignIpv6Addresses"] = 400 * time.Millisecond
	l["ModifyNetworkInterfaceAttribute"] = 150 * time.Millisecond
	l["CreateTags"] = 100 * time.Millisecond
	return l
}

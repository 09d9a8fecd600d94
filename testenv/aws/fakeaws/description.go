package fakeaws

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"
)

// Description is a world as JSON: what testenv/cmd/fakeaws serves.
type Description struct {
	Region           string              `json:"region,omitempty"`
	Seed             uint64              `json:"seed,omitempty"`
	VPCs             []VPCDescription    `json:"vpcs"`
	RealisticLatency bool                `json:"realisticLatency,omitempty"` // RealisticLatency, before Latency
	Latency          map[string]Duration `json:"latency,omitempty"`          // by action, "IMDS" too
	AttachDelay      Duration            `json:"attachDelay,omitempty"`
	DetachDelay      Duration            `json:"detachDelay,omitempty"`
	MetadataLag      Duration            `json:"metadataLag,omitempty"`
	DescribeLag      Duration            `json:"describeLag,omitempty"`
	SerialiseAttach  bool                `json:"serialiseAttach,omitempty"`
	Throttle         bool                `json:"throttle,omitempty"` // AccountBuckets
	Buckets          *Throttle           `json:"buckets,omitempty"`  // custom request limits
	Faults           []Rule              `json:"faults,omitempty"`
	ExhaustedAsValue bool                `json:"exhaustedAsValue,omitempty"`
	Allow            []string            `json:"allow,omitempty"` // actions; absent: all
}

// VPCDescription describes one VPC.
type VPCDescription struct {
	CIDRs          []netip.Prefix      `json:"cidrs"` // IPv4 and IPv6
	SecurityGroups []string            `json:"securityGroups,omitempty"`
	Subnets        []SubnetDescription `json:"subnets"`
}

// SubnetDescription describes one subnet and what is in it.
type SubnetDescription struct {
	ID         string                `json:"id,omitempty"`
	AZ         string                `json:"az,omitempty"`
	CIDR       netip.Prefix          `json:"cidr,omitzero"` // none: IPv6-only
	IPv6CIDR   netip.Prefix          `json:"ipv6Cidr,omitzero"`
	AssignIPv6 bool                  `json:"assignIpv6,omitempty"` // to each ENI at its creation
	Tags       map[string]string     `json:"tags,omitempty"`
	Occupied   int                   `json:"occupied,omitempty"` // addresses in use by others
	Fragmented bool                  `json:"fragmented,omitempty"`
	Instances  []InstanceDescription `json:"instances,omitempty"`
}

// InstanceDescription describes one instance.
type InstanceDescription struct {
	ID        string            `json:"id,omitempty"`
	Type      string            `json:"type"`
	PrivateIP netip.Addr        `json:"privateIp,omitzero"`
	IPv6      bool              `json:"ipv6,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
}

// Duration is a time.Duration written as "1.5s".
type Duration time.Duration

// UnmarshalJSON reads "1.5s".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a duration such as \"1.5s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as \"1.5s\"", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes "1.5s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// ParseDescription reads a description. Unknown members are errors.
func ParseDescription(b []byte) (Description, error) {
	var d Description
	if err := strictJSON(b, &d); err != nil {
		return Description{}, fmt.Errorf("parse world: %w", err)
	}
	for a := range d.Latency {
		if _, known := actions[a]; !known && a != "IMDS" {
			return Description{}, fmt.Errorf("parse world: latency of %q: no such action", a)
		}
	}
	if err := d.Buckets.check(); err != nil {
		return Description{}, fmt.Errorf("parse world: %w", err)
	}
	for _, a := range d.Allow {
		if _, known := actions[a]; !known {
			return Description{}, fmt.Errorf("parse world: allow %q: no such action", a)
		}
	}
	return d, nil
}

// ParseFaults reads a list of faults. Unknown members are errors.
func ParseFaults(b []byte) ([]Rule, error) {
	var out []Rule
	if err := strictJSON(b, &out); err != nil {
		return nil, fmt.Errorf("parse faults: %w", err)
	}
	return out, nil
}

func (d Description) options() Options {
	o := Options{Region: d.Region, Seed: d.Seed, AttachDelay: time.Duration(d.AttachDelay), DetachDelay: time.Duration(d.DetachDelay), MetadataLag: time.Duration(d.MetadataLag), DescribeLag: time.Duration(d.DescribeLag),
		SerialiseAttach: d.SerialiseAttach, ExhaustedAsValue: d.ExhaustedAsValue, Allow: d.Allow, Latency: make(map[string]time.Duration)}
	if d.RealisticLatency {
		o.Latency = RealisticLatency()
	}
	for a, t := range d.Latency {
		o.Latency[a] = time.Duration(t)
	}
	if d.Throttle {
		o.Throttle = AccountBuckets()
	}
	if d.Buckets != nil {
		o.Throttle = d.Buckets
	}
	return o
}

// Build makes the described world. Close it when done.
func (d Description) Build() (*World, error) {
	w := NewWorld(d.options())
	for _, v := range d.VPCs {
		if err := w.build(v); err != nil {
			w.Close()
			return nil, fmt.Errorf("build world: %w", err)
		}
	}
	for _, r := range d.Faults {
		if _, err := w.AddFault(r); err != nil {
			w.Close()
			return nil, fmt.Errorf("build world: %w", err)
		}
	}
	return w, nil
}

func (w *World) build(d VPCDescription) error {
	v := w.AddVPC(d.CIDRs...)
	for _, name := range d.SecurityGroups {
		w.AddSecurityGroup(v.ID, name)
	}
	for _, s := range d.Subnets {
		if err := w.buildSubnet(v.ID, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) buildSubnet(vpcID string, d SubnetDescription) error {
	n, err := w.AddSubnet(SubnetSpec{ID: d.ID, VPCID: vpcID, AZ: d.AZ, CIDR: d.CIDR, IPv6CIDR: d.IPv6CIDR, AssignIPv6: d.AssignIPv6, Tags: d.Tags})
	if err != nil {
		return fmt.Errorf("subnet %s: %w", d.CIDR, err)
	}
	for _, i := range d.Instances {
		if _, err := w.AddInstance(InstanceSpec{ID: i.ID, Type: i.Type, SubnetID: n.ID, PrivateIP: i.PrivateIP, IPv6: i.IPv6, Tags: i.Tags}); err != nil {
			return fmt.Errorf("subnet %s: instance of type %q: %w", d.CIDR, i.Type, err)
		}
	}
	if d.Fragmented {
		if err := w.Fragment(n.ID); err != nil {
			return err
		}
	}
	_, err = w.Occupy(n.ID, d.Occupied)
	return err
}

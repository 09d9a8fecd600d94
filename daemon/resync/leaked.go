package resync

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/ipam"
)

// Marks of an ENI that a CNI daemon created, upstream's or ours.
const (
	TagCreatedAt      = "node.k8s.amazonaws.com/createdAt" // RFC 3339
	TagClusterName    = "cluster.k8s.amazonaws.com/name"
	DescriptionPrefix = "aws-K8S-"
)

// LeakMinAge is how old an unattached ENI must be before a sweep deletes it: a
// younger one may be between its creation and its attachment.
const LeakMinAge = 5 * time.Minute

// maxLeakClockSkew is how far in the future a creation time may be, since the clocks of nodes
// differ. A later one is a mistake and would keep its ENI forever.
const maxLeakClockSkew = 5 * time.Minute

// firstYear is the year of the first CNI release: an earlier creation time is a mistake.
const firstYear = 2017

// LeakInput is what decides about unattached ENIs besides EC2's description.
type LeakInput struct {
	Now         time.Time
	ClusterName string       // "" to look at ENIs of every cluster in the VPC
	Busy        []ipam.ENIID // ENIs that this process has in its book or is working on

	// InUse lists addresses of this node's pods. An ENI with one of them was detached by
	// something else; deleting it would cut off those pods for good.
	InUse []netip.Addr

	// InstanceID and Started identify this process and its start: an ENI that an earlier
	// process of the node created is leaked, however young it is.
	InstanceID string
	Started    time.Time
}

// LeakAction is what to do with an unattached ENI.
type LeakAction uint8

// The actions.
const (
	LeakSkip   LeakAction = iota // leave it alone
	LeakTag                      // write the current time as creation time; a later sweep decides
	LeakDelete                   // delete it
)

// LeakVerdict is the decision about one ENI.
type LeakVerdict struct {
	ENI    ipam.ENIID
	Action LeakAction
	Reason string
}

// Leaked decides about the unattached ENIs in a description, in its order. An ENI is deleted
// only if a CNI daemon created it, either at least [LeakMinAge] ago by its creation time tag
// or in an earlier life of this node's daemon. A missing or invalid creation time is
// rewritten, and a later sweep decides.
func Leaked(described []ENI, in LeakInput) []LeakVerdict {
	out := make([]LeakVerdict, 0, len(described))
	for i := range described {
		action, reason := judgeLeak(&described[i], &in)
		out = append(out, LeakVerdict{described[i].ID, action, reason})
	}
	return out
}

func judgeLeak(e *ENI, in *LeakInput) (LeakAction, string) {
	switch {
	case e.Status != StatusAvailable || e.Attached():
		return LeakSkip, fmt.Sprintf("attached, attaching or detaching: status %q, attachment %q", e.Status, e.AttachmentStatus)
	case !strings.HasPrefix(e.Description, DescriptionPrefix):
		return LeakSkip, fmt.Sprintf("description %q: created by another program", e.Description)
	case e.Tags[TagInstanceID] == "":
		return LeakSkip, "no tag " + TagInstanceID + ": created by another program"
	case e.Tags[TagNoManage] == "true":
		return LeakSkip, "tag " + TagNoManage + "=true: not managed"
	case in.ClusterName != "" && e.Tags[TagClusterName] != in.ClusterName:
		return LeakSkip, fmt.Sprintf("belongs to cluster %q", e.Tags[TagClusterName])
	case slices.Contains(in.Busy, e.ID):
		return LeakSkip, "in the book of this process, or in use by one of its operations"
	}
	if a, used := e.holdsAny(in.InUse); used {
		return LeakSkip, "a pod on this node has its address " + a.String()
	}
	created, known := e.Tags[TagCreatedAt]
	if !known || created == "" {
		return LeakTag, "no creation time: set to now"
	}
	born, err := time.Parse(time.RFC3339, created)
	if err != nil || born.Year() < firstYear {
		return LeakTag, fmt.Sprintf("creation time %q is invalid: set to now", created)
	}
	age := in.Now.Sub(born)
	switch {
	case age < -maxLeakClockSkew:
		return LeakTag, "creation time " + created + " is in the future: set to now"
	case in.InstanceID != "" && e.Tags[TagInstanceID] == in.InstanceID && born.Before(in.Started.Truncate(time.Second)):
		return LeakDelete, "left by an earlier daemon of this node, created " + created
	case age < LeakMinAge:
		return LeakSkip, fmt.Sprintf("only %v old", max(0, age).Truncate(time.Second))
	}
	return LeakDelete, "unattached since its creation or a detach, created " + created
}

// holdsAny returns one of the addresses that is among those the ENI has for pods.
func (e *ENI) holdsAny(addrs []netip.Addr) (netip.Addr, bool) {
	for _, a := range addrs {
		for _, p := range slices.Concat(e.CIDRs(), e.IPv6Prefixes) {
			if p.Contains(a) {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// WithoutPods returns the ENIs that hold no pod's address.
func WithoutPods(enis []ENI, inUse []netip.Addr) []ENI {
	var out []ENI
	for i := range enis {
		if _, used := enis[i].holdsAny(inUse); !used {
			out = append(out, enis[i])
		}
	}
	return out
}

// Time between sweeps.
const (
	sweepEvery  = 60 * time.Minute
	SweepJitter = 300 * time.Second // exclusive bound of the random part
)

// NextSweep returns when to sweep for leaked ENIs next: after a start (lastEnded is zero), or
// 60 minutes after the last sweep ended, but not before now. Both are delayed by jitter, a
// random duration in [0, SweepJitter) that keeps the nodes of a cluster apart and is clamped
// to that range. Call it once per sweep: the result moves with now.
func NextSweep(now time.Time, jitter time.Duration, lastEnded time.Time) time.Time {
	jitter = min(max(0, jitter), SweepJitter-1)
	if lastEnded.IsZero() {
		return now.Add(jitter)
	}
	if lastEnded.After(now) {
		lastEnded = now // the clock was set back
	}
	if next := lastEnded.Add(sweepEvery + jitter); next.After(now) {
		return next
	}
	return now
}

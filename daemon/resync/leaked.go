package resync

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/ipam"
)

// What marks an ENI as made by a CNI daemon (spec/ipamd.md §4.5).
const (
	TagCreatedAt      = "node.k8s.amazonaws.com/createdAt" // RFC 3339
	TagClusterName    = "cluster.k8s.amazonaws.com/name"
	DescriptionPrefix = "aws-K8S-"
)

// LeakMinAge is how old an unattached ENI must be before a sweep deletes it: a
// younger one may be between its creation and its attachment.
const LeakMinAge = 5 * time.Minute

// maxLeakClockSkew is how far in the future a birthday may lie: clocks of nodes
// differ. One beyond it is a mistake and would keep its ENI forever.
const maxLeakClockSkew = 5 * time.Minute

// firstYear is that of the first CNI release: an earlier birthday is a mistake.
const firstYear = 2017

// LeakInput is what decides about unattached ENIs besides EC2's description.
type LeakInput struct {
	Now         time.Time
	ClusterName string       // "": ENIs of every cluster of the VPC are looked at
	Busy        []ipam.ENIID // ENIs that this process has in its book, or works on

	// InUse lists addresses of this node's pods. An ENI that holds one was taken off
	// the instance by others; deleting it would end what is left of them.
	InUse []netip.Addr

	// InstanceID and Started say whose process this is and since when it runs: an ENI
	// that an earlier process of the node made is leaked, however young it is.
	InstanceID string
	Started    time.Time
}

// LeakAction is what to do with an unattached ENI.
type LeakAction uint8

// The actions.
const (
	LeakSkip   LeakAction = iota // leave it alone
	LeakTag                      // write a birthday (now); a later sweep decides
	LeakDelete                   // delete it
)

// LeakVerdict is the decision about one ENI.
type LeakVerdict struct {
	ENI    ipam.ENIID
	Action LeakAction
	Reason string
}

// Leaked decides about ENIs that a description of unattached ENIs returned, in its
// order (spec/ipamd.md §5.5). An ENI is deleted only if a CNI daemon made it, at
// least [LeakMinAge] ago by its own birthday tag or in an earlier life of this node's
// daemon. A missing or senseless birthday is
// rewritten and waited for.
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

// holdsAny finds an address among those that the ENI gives to pods.
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

// WithoutPods leaves out the ENIs that hold an address of a pod.
func WithoutPods(enis []ENI, inUse []netip.Addr) []ENI {
	var out []ENI
	for i := range enis {
		if _, used := enis[i].holdsAny(inUse); !used {
			out = append(out, enis[i])
		}
	}
	return out
}

// Times between sweeps.
const (
	sweepEvery  = 60 * time.Minute
	SweepJitter = 300 * time.Second // exclusive bound of the random part
)

// NextSweep is when to sweep for leaked ENIs next: after a start (lastEnded is zero),
// or 60 minutes after the last sweep ended, which may have passed. Either is put off by
// jitter, a random duration in [0, SweepJitter) that keeps the nodes of a cluster
// apart; one outside is bent into it. It is to be asked once per sweep: the answer
// moves with now.
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

package record

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/scrub"
)

// Format and Version identify the files of this package. Files of a later version are
// rejected.
const (
	Format  = "cnictl-recording"
	Version = 1
)

// Header is the first line.
type Header struct {
	Format    string    `json:"format"`    // cnictl-recording
	Version   int       `json:"version"`   // of the format
	Tool      string    `json:"tool"`      // version of cnictl that wrote it
	Title     string    `json:"title"`     // of the fleet: the kubeconfig's context
	StartedAt time.Time `json:"startedAt"` // when the recording was begun

	// OpensAt is where the screens begin to play, such as the incident that the recording was
	// made for; null: at the beginning.
	OpensAt *time.Time `json:"opensAt,omitempty"`
}

// entry is one line after the header. Exactly one member besides the time is set.
type entry struct {
	At   time.Time          `json:"at"`
	Key  *keyframe          `json:"key,omitempty"`  // all nodes follow; what was before is forgotten
	Put  *document.NodeIPAM `json:"put,omitempty"`  // a sample; its object is null when it is that of the sample before
	Same *same              `json:"same,omitempty"` // a sample like the one before
	Gone string             `json:"gone,omitempty"` // a node that is no more
	Doc  *documents         `json:"doc,omitempty"`  // what a node was asked for beside its sample; older readers skip it

	Readings []readings `json:"readings,omitempty"` // of subnets, up to here; older readers skip it
}

type keyframe struct {
	Nodes int `json:"nodes"` // that follow
}

type same struct {
	Node           string     `json:"node"`
	SampledAt      *time.Time `json:"sampledAt,omitempty"`
	LatencySeconds *float64   `json:"latencySeconds,omitempty"`
}

// Limits on input.
const (
	maxLine  = 8 << 20 // bytes; a node with all its addresses takes a twentieth of that
	maxNodes = 20_000
	maxFile  = 1 << 30 // bytes, compressed
	maxRatio = 200     // unpacked to compressed, beyond maxSlack; similar samples reach 50
	maxSlack = 16 << 20
	maxHeld  = 256 << 20 // bytes of the current lines of all nodes
)

// labelDomains are those whose labels and annotations of nodes are kept: others are private to their owners.
var labelDomains = []string{"kubernetes.io", "k8s.io", "k8s.aws", "amazonaws.com", "eksctl.io", "karpenter.sh", config.LabelDomain}

// shareable returns a sample without what must not be shared.
func shareable(n document.NodeIPAM) document.NodeIPAM {
	if n.Error != nil {
		e := *n.Error
		e.Message = scrub.Line(e.Message)
		n.Error = &e
	}
	if n.Summary != nil && len(n.Summary.LastErrors) > 0 {
		s := *n.Summary
		s.LastErrors = slices.Clone(s.LastErrors)
		for i := range s.LastErrors {
			s.LastErrors[i].Message = scrub.Line(s.LastErrors[i].Message) // the node may not have scrubbed it
		}
		n.Summary = &s
	}
	if n.Object == nil {
		return n
	}
	o := *n.Object
	o.Labels, o.Annotations = public(o.Labels), public(o.Annotations)
	o.Conditions = slices.Clone(o.Conditions)
	for i := range o.Conditions {
		o.Conditions[i].Message = scrub.Line(o.Conditions[i].Message)
	}
	n.Object = &o
	return n
}

// public returns the labels or annotations of known domains.
func public(all map[string]string) map[string]string {
	if len(all) == 0 {
		return all
	}
	out := map[string]string{}
	for key, value := range all {
		domain, _, ok := strings.Cut(key, "/")
		if ok && slices.ContainsFunc(labelDomains, func(known string) bool { return domain == known || strings.HasSuffix(domain, "."+known) }) {
			out[key] = value
		}
	}
	return out
}

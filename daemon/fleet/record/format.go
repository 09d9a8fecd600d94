package record

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/scrub"
)

// Format and Version name the files of this package. A file of a later version is
// refused.
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

// entry is one line after the header. One of its members beside the time is there.
type entry struct {
	At   time.Time          `json:"at"`
	Key  *keyframe          `json:"key,omitempty"`  // all nodes follow; what was before is forgotten
	Put  *document.NodeIPAM `json:"put,omitempty"`  // a sample; its object is null when it is that of the sample before
	Same *same              `json:"same,omitempty"` // a sample like the one before
	Gone string             `json:"gone,omitempty"` // a node that is no more
	Doc  *documents         `json:"doc,omitempty"`  // what a node was asked for beside its sample; older readers skip it
}

type keyframe struct {
	Nodes int `json:"nodes"` // that follow
}

type same struct {
	Node           string     `json:"node"`
	SampledAt      *time.Time `json:"sampledAt,omitempty"`
	LatencySeconds *float64   `json:"latencySeconds,omitempty"`
}

// Bounds of what is read.
const (
	maxLine  = 8 << 20 // bytes of a line: a node with all its addresses is a twentieth of that
	maxNodes = 20_000
	maxFile  = 1 << 30 // bytes of a file, compressed
	maxRatio = 200     // of the content to the file, beyond maxSlack: similar samples compress to a fiftieth
	maxSlack = 16 << 20
	maxHeld  = 256 << 20 // bytes of the lines of all nodes at one moment
)

// labelDomains are those whose labels are kept: what others write there is theirs.
var labelDomains = []string{"kubernetes.io", "k8s.io", "k8s.aws", "amazonaws.com", "eksctl.io", "karpenter.sh"}

// shareable is a sample without what is not for others.
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
			s.LastErrors[i].Message = scrub.Line(s.LastErrors[i].Message) // of a node that did not
		}
		n.Summary = &s
	}
	if n.Object == nil || len(n.Object.Labels) == 0 {
		return n
	}
	o := *n.Object
	o.Labels = map[string]string{}
	for key, value := range n.Object.Labels {
		domain, _, ok := strings.Cut(key, "/")
		if !ok {
			continue
		}
		for _, known := range labelDomains {
			if domain == known || strings.HasSuffix(domain, "."+known) {
				o.Labels[key] = value
			}
		}
	}
	n.Object = &o
	return n
}

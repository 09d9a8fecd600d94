package watch

import (
	"iter"
	"reflect"

	"cnictl/daemon/api/introspect"
)

// documents are the members of Detail, by the Want that requests each. To add a document, add
// a Want, a member of Detail and a line here; then make live read it, and make record keep it
// if it belongs in recordings.
var documents = map[Want]accessor{
	WantENIs:         member(func(d *Detail) *[]introspect.NodeENI { return &d.ENIs }),
	WantPlan:         member(func(d *Detail) **introspect.NodePlan { return &d.Plan }),
	WantEvents:       member(func(d *Detail) **introspect.NodeEvents { return &d.Events }),
	WantFailures:     member(func(d *Detail) **introspect.NodeFailures { return &d.Failures }),
	WantConfig:       member(func(d *Detail) **introspect.NodeConfig { return &d.Config }),
	WantLogs:         member(func(d *Detail) **introspect.NodeLogs { return &d.Logs }),
	WantPod:          member(func(d *Detail) **introspect.NodePod { return &d.Pod }),
	WantPods:         member(func(d *Detail) *[]Pod { return &d.Pods }),
	WantKubeEvents:   member(func(d *Detail) *[]KubeEvent { return &d.KubeEvents }),
	WantContainerLog: member(func(d *Detail) **ContainerLog { return &d.ContainerLog }),
	WantNodeUse:      member(func(d *Detail) **NodeUse { return &d.Use }),
	WantClusterPods:  member(func(d *Detail) **ClusterPods { return &d.ClusterPods }),
}

// accessor reads and copies one member of Detail.
type accessor struct {
	has  func(*Detail) bool
	copy func(into, from *Detail)
}

func member[T any](at func(*Detail) *T) accessor {
	return accessor{
		has:  func(d *Detail) bool { return !reflect.ValueOf(at(d)).Elem().IsNil() },
		copy: func(into, from *Detail) { *at(into) = *at(from) },
	}
}

// Each yields the documents that w names, one by one.
func (w Want) Each() iter.Seq[Want] {
	return func(yield func(Want) bool) {
		for ; w != 0; w &= w - 1 {
			if !yield(w & -w) {
				return
			}
		}
	}
}

// Has reports whether the document named by one is present.
func (d *Detail) Has(one Want) bool {
	doc, ok := documents[one]
	return ok && doc.has(d)
}

// Take replaces the document named by one with that of another detail.
func (d *Detail) Take(one Want, from *Detail) {
	if doc, ok := documents[one]; ok {
		doc.copy(d, from)
	}
}

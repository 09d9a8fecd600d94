package fleetsim

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind of object that the API server serves.
type resource struct {
	group, version, name, singular, kind string
	short                                []string
	namespaced                           bool
	review                               bool // a review, which is not stored
	subs                                 []subresource

	columns []metav1.TableColumnDefinition
	// cells returns an object's cells, in the order of columns.
	cells func(s *Sim, o runtime.Object) []any
	// entries returns the objects of a namespace ("" for all), ordered by key. It may already
	// omit objects that the fields do not match.
	entries func(s *Sim, namespace string, f fields.Selector) []entry
	// fields are what field selectors may name besides name and namespace.
	fields     func(o runtime.Object) fields.Set
	fieldNames []string
}

type subresource struct {
	name, kind string
	verbs      metav1.Verbs
}

// entry is an object that is built when it is read.
type entry struct {
	namespace, name string
	build           func() runtime.Object
}

// key is the sort key of entries: no name contains a byte below the separator.
func (e entry) key() string { return e.namespace + "\x00" + e.name }

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.name}
}

func (r *resource) groupVersion() string {
	return schema.GroupVersion{Group: r.group, Version: r.version}.String()
}

func (r *resource) verbs() metav1.Verbs {
	if r.review {
		return metav1.Verbs{"create"}
	}
	return metav1.Verbs{"get", "list", "watch"}
}

func column(name, kind string, priority int32) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{Name: name, Type: kind, Priority: priority}
	if name == "Name" {
		c.Format = "name"
	}
	return c
}

func number(name string) metav1.TableColumnDefinition { return column(name, "integer", 0) }
func text(name string) metav1.TableColumnDefinition   { return column(name, "string", 0) }
func wide(name string) metav1.TableColumnDefinition   { return column(name, "string", 1) }

// catalogue holds the resources, grouped. It is not a package variable, because the code that
// builds objects also publishes their changes under their resource.
type catalogue struct {
	nodes, pods, events, daemonSets *resource
	all                             []*resource
	profiles                        []*profile
}

func (c *catalogue) find(group, version, name string) *resource {
	for _, r := range c.all {
		if r.group == group && r.version == version && r.name == name {
			return r
		}
	}
	return nil
}

func newCatalogue(ipv6 bool) *catalogue {
	c := &catalogue{nodes: nodeKind(), pods: podKind(), events: eventKind(), daemonSets: daemonSetKind(), profiles: profiles(ipv6)}
	nameAge := []metav1.TableColumnDefinition{text("Name"), text("Age")}
	c.all = []*resource{
		c.nodes, c.pods, c.events,
		{
			version: "v1", name: "namespaces", singular: "namespace", kind: "Namespace", short: []string{"ns"},
			columns: []metav1.TableColumnDefinition{text("Name"), text("Status"), text("Age")}, cells: namespaceCells, entries: namespaceEntries,
		},
		{
			version: "v1", name: "configmaps", singular: "configmap", kind: "ConfigMap", short: []string{"cm"}, namespaced: true,
			columns: []metav1.TableColumnDefinition{text("Name"), number("Data"), text("Age")}, cells: configMapCells, entries: configMapEntries,
		},
		c.daemonSets,
		{
			group: "authorization.k8s.io", version: "v1", name: "selfsubjectaccessreviews", singular: "selfsubjectaccessreview",
			kind: "SelfSubjectAccessReview", review: true,
		},
		{
			group: "crd.k8s.amazonaws.com", version: "v1alpha1", name: "eniconfigs", singular: "eniconfig", kind: "ENIConfig",
			columns: nameAge, cells: nameAgeCells, entries: eniConfigEntries,
		},
		{
			group: "vpcresources.k8s.aws", version: "v1beta1", name: "securitygrouppolicies", singular: "securitygrouppolicy",
			kind: "SecurityGroupPolicy", short: []string{"sgp"}, namespaced: true,
			columns: nameAge, cells: nameAgeCells, entries: policyEntries,
		},
		{
			group: "vpcresources.k8s.aws", version: "v1alpha1", name: "cninodes", singular: "cninode", kind: "CNINode", short: []string{"cnd"},
			columns: []metav1.TableColumnDefinition{text("Name"), text("Features")}, cells: cniNodeCells, entries: cniNodeEntries,
		},
	}
	return c
}

func nodeKind() *resource {
	return &resource{
		version: "v1", name: "nodes", singular: "node", kind: "Node", short: []string{"no"},
		columns: []metav1.TableColumnDefinition{
			text("Name"), text("Status"), text("Roles"), text("Age"), text("Version"),
			wide("Internal-IP"), wide("External-IP"), wide("OS-Image"), wide("Kernel-Version"), wide("Container-Runtime"),
		},
		cells: nodeCells, entries: nodeEntries, fieldNames: []string{"spec.unschedulable"},
		fields: func(o runtime.Object) fields.Set {
			return fields.Set{"spec.unschedulable": boolWord(o.(*corev1.Node).Spec.Unschedulable)}
		},
	}
}

func podKind() *resource {
	return &resource{
		version: "v1", name: "pods", singular: "pod", kind: "Pod", short: []string{"po"}, namespaced: true,
		subs: []subresource{
			{"exec", "PodExecOptions", metav1.Verbs{"create", "get"}}, {"log", "Pod", metav1.Verbs{"get"}},
			{"portforward", "PodPortForwardOptions", metav1.Verbs{"create", "get"}}, {"proxy", "PodProxyOptions", metav1.Verbs{"get"}},
		},
		columns: []metav1.TableColumnDefinition{
			text("Name"), text("Ready"), text("Status"), text("Restarts"), text("Age"),
			wide("IP"), wide("Node"), wide("Nominated Node"), wide("Readiness Gates"),
		},
		cells: podCells, entries: podEntries,
		fieldNames: []string{"spec.nodeName", "status.phase", "status.podIP", "spec.restartPolicy", "spec.hostNetwork"},
		fields: func(o runtime.Object) fields.Set {
			p := o.(*corev1.Pod)
			return fields.Set{
				"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase), "status.podIP": p.Status.PodIP,
				"spec.restartPolicy": string(p.Spec.RestartPolicy), "spec.hostNetwork": boolWord(p.Spec.HostNetwork),
			}
		},
	}
}

func eventKind() *resource {
	return &resource{
		version: "v1", name: "events", singular: "event", kind: "Event", short: []string{"ev"}, namespaced: true,
		columns: []metav1.TableColumnDefinition{
			text("Last Seen"), text("Type"), text("Reason"), text("Object"), wide("Subobject"), wide("Source"), text("Message"),
			wide("First Seen"), wide("Count"), wide("Name"),
		},
		cells: eventCells, entries: eventEntries,
		fieldNames: []string{
			"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid",
			"reason", "type", "source", "reportingComponent",
		},
		fields: func(o runtime.Object) fields.Set {
			e := o.(*corev1.Event)
			return fields.Set{
				"involvedObject.kind": e.InvolvedObject.Kind, "involvedObject.name": e.InvolvedObject.Name,
				"involvedObject.namespace": e.InvolvedObject.Namespace, "involvedObject.uid": string(e.InvolvedObject.UID),
				"reason": e.Reason, "type": e.Type, "source": e.Source.Component, "reportingComponent": e.ReportingController,
			}
		},
	}
}

func daemonSetKind() *resource {
	return &resource{
		group: "apps", version: "v1", name: "daemonsets", singular: "daemonset", kind: "DaemonSet", short: []string{"ds"}, namespaced: true,
		columns: []metav1.TableColumnDefinition{
			text("Name"), number("Desired"), number("Current"), number("Ready"), number("Up-to-date"), number("Available"),
			text("Node Selector"), text("Age"), wide("Containers"), wide("Images"), wide("Selector"),
		},
		cells: daemonSetCells, entries: daemonSetEntries,
	}
}

func boolWord(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func sortEntries(all []entry) {
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
}

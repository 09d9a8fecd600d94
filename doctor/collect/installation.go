package collect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"cnictl/daemon/fleet/cluster"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Kinds of objects that are read only for an installation.
var (
	kindClusterRoles    = cluster.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterroles"}
	kindClusterBindings = cluster.Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterrolebindings"}
	kindDefinitions     = cluster.Kind{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}
	kindNamespaces      = cluster.Kind{Version: "v1", Plural: "namespaces"}
	kindQuotas          = cluster.Kind{Version: "v1", Plural: "resourcequotas"}
	kindServices        = cluster.Kind{Version: "v1", Plural: "services"}
	kindPodMonitors     = cluster.Kind{Group: "monitoring.coreos.com", Version: "v1", Plural: "podmonitors"}
	kindServiceMonitors = cluster.Kind{Group: "monitoring.coreos.com", Version: "v1", Plural: "servicemonitors"}
)

// installation reads how aws-node was installed. It does not read the secrets in which Helm keeps
// its releases: the right to list them is the right to read every secret of the namespace, and
// Helm itself goes by the annotations of the objects.
func (k kube) installation(ctx context.Context) evidence.Installation {
	var out evidence.Installation
	var wait sync.WaitGroup
	for _, do := range []func(){
		func() { out.Objects = k.installed(ctx) },
		func() {
			out.Conflist = optional(ctx, k, kindConfigMaps, k.c.Namespace(), daemonName, reading.Conflist)
		},
		func() { out.Namespace, out.Admission = k.gates(ctx) },
		func() { out.Monitors = k.monitors(ctx) },
	} {
		wait.Go(do)
	}
	wait.Wait()
	out.AddOn, out.Role = evidence.Lacking[*evidence.AddOn](evidence.MissingAddOn), evidence.Lacking[evidence.Role](evidence.MissingRole)
	out.BPFPins = evidence.Lacking[[]string](evidence.MissingMode)
	return out
}

// installed reads the metadata of the objects that an installation makes, as far as they exist.
func (k kube) installed(ctx context.Context) evidence.Source[[]evidence.KubeObject] {
	space := k.c.Namespace()
	out := []evidence.KubeObject{}
	for _, want := range []struct {
		kind            cluster.Kind
		object          string
		namespace, name string
	}{
		{kindDaemonSets, "DaemonSet", space, daemonName},
		{kindAccounts, "ServiceAccount", space, daemonName},
		{kindConfigMaps, "ConfigMap", space, daemonConfig},
		{kindConfigMaps, "ConfigMap", space, daemonName}, // of the chart's cniConfig
		{kindClusterRoles, "ClusterRole", "", daemonName},
		{kindClusterBindings, "ClusterRoleBinding", "", daemonName},
		{kindDefinitions, "CustomResourceDefinition", "", "eniconfigs.crd.k8s.amazonaws.com"},
		{kindDefinitions, "CustomResourceDefinition", "", "cninodes.vpcresources.k8s.aws"},
	} {
		switch s := one(ctx, k, want.kind, want.namespace, want.name, func(raw []byte) (evidence.KubeObject, error) { return reading.KubeObject(want.object, raw) }); {
		case s.OK():
			out = append(out, s.Content)
		case s.Missing != evidence.MissingAbsent:
			return evidence.Lacking[[]evidence.KubeObject](s.Missing)
		}
	}
	return evidence.Read(out)
}

// gates reads what decides whether a pod of aws-node is admitted.
func (k kube) gates(ctx context.Context) (evidence.Source[evidence.Namespace], evidence.Source[[]evidence.Admission]) {
	labels := one(ctx, k, kindNamespaces, "", k.c.Namespace(), reading.NamespaceLabels)
	quotas := list(ctx, k, kindQuotas, k.c.Namespace(), "", reading.Quota)
	space := evidence.Lacking[evidence.Namespace](cmp.Or(labels.Missing, quotas.Missing))
	if labels.OK() && quotas.OK() {
		space = evidence.Read(evidence.Namespace{Labels: labels.Content, Quotas: slices.DeleteFunc(quotas.Content, func(name string) bool { return name == "" })})
	}
	admitted := one(ctx, k, kindDaemonSets, k.c.Namespace(), daemonName, reading.DaemonLabels)
	if admitted.Missing == evidence.MissingAbsent {
		admitted = evidence.Source[reading.Admitted]{} // it has no labels until it is installed
	}
	admitted.Content.Namespace = labels.Content
	all := []evidence.Admission{}
	for _, kind := range []cluster.Kind{kindMutating, kindValidating} {
		some := list(ctx, k, kind, "", "", func(raw []byte) ([]evidence.Admission, error) { return reading.Admission(raw, admitted.Content) })
		if missing := cmp.Or(labels.Missing, admitted.Missing, some.Missing); missing != "" {
			return space, evidence.Lacking[[]evidence.Admission](missing)
		}
		all = append(all, slices.Concat(some.Content...)...)
	}
	for i := range all {
		if all[i].FailurePolicy == "Fail" && all[i].Service != "" {
			all[i].PodNetwork = k.podNetwork(ctx, all[i].Service)
		}
	}
	slices.SortFunc(all, func(a, b evidence.Admission) int { return strings.Compare(a.Name, b.Name) })
	return space, evidence.Read(all)
}

// podNetwork reports whether all pods of a service have addresses of the pod network, nil if the
// service cannot be read or has no pods.
func (k kube) podNetwork(ctx context.Context, service string) *bool {
	space, name, _ := strings.Cut(service, "/")
	selector := one(ctx, k, kindServices, space, name, reading.ServiceSelector)
	if selector.Content == "" {
		return nil
	}
	pods := list(ctx, k, cluster.KindPods, space, selector.Content, reading.Pod)
	if len(pods.Content) == 0 {
		return nil
	}
	return new(!slices.ContainsFunc(pods.Content, func(p evidence.KubePod) bool { return p.HostNetwork }))
}

// monitors reads what scrapes metrics. A cluster without the Prometheus operator has no monitors.
func (k kube) monitors(ctx context.Context) evidence.Source[[]evidence.Monitor] {
	out := []evidence.Monitor{}
	for name, kind := range map[string]cluster.Kind{"PodMonitor": kindPodMonitors, "ServiceMonitor": kindServiceMonitors} {
		s := list(ctx, k, kind, "", "", func(raw []byte) (evidence.Monitor, error) { return reading.Monitor(name, raw) })
		if !s.OK() && s.Missing != evidence.MissingAbsent {
			return evidence.Lacking[[]evidence.Monitor](s.Missing)
		}
		out = append(out, s.Content...)
	}
	slices.SortFunc(out, func(a, b evidence.Monitor) int { return strings.Compare(a.Name, b.Name) })
	return evidence.Read(out)
}

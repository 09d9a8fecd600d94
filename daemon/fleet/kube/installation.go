package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"cnictl/doctor/evidence"
)

// Kinds of objects that are read only for an installation.
var (
	KindClusterRoles    = Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterroles"}
	KindClusterBindings = Kind{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterrolebindings"}
	KindDefinitions     = Kind{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions"}
	KindNamespaces      = Kind{Version: "v1", Plural: "namespaces"}
	KindQuotas          = Kind{Version: "v1", Plural: "resourcequotas"}
	KindServices        = Kind{Version: "v1", Plural: "services"}
	KindPodMonitors     = Kind{Group: "monitoring.coreos.com", Version: "v1", Plural: "podmonitors"}
	KindServiceMonitors = Kind{Group: "monitoring.coreos.com", Version: "v1", Plural: "servicemonitors"}
)

// installation reads how aws-node was installed. It does not read the secrets in which Helm keeps
// its releases: the right to list them is the right to read every secret of the namespace, and
// Helm itself goes by the annotations of the objects.
func (k Reader) installation(ctx context.Context) evidence.Installation {
	var out evidence.Installation
	var wait sync.WaitGroup
	for _, do := range []func(){
		func() { out.Objects = k.installed(ctx) },
		func() {
			out.Conflist = readOptional(ctx, k, KindConfigMaps, k.Cluster.cfg.Namespace, daemonName, readConflist)
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
func (k Reader) installed(ctx context.Context) evidence.Source[[]evidence.KubeObject] {
	space := k.Cluster.cfg.Namespace
	out := []evidence.KubeObject{}
	for _, want := range []struct {
		kind            Kind
		object          string
		namespace, name string
	}{
		{KindDaemonSets, "DaemonSet", space, daemonName},
		{KindAccounts, "ServiceAccount", space, daemonName},
		{KindConfigMaps, "ConfigMap", space, daemonConfig},
		{KindConfigMaps, "ConfigMap", space, daemonName}, // of the chart's cniConfig
		{KindClusterRoles, "ClusterRole", "", daemonName},
		{KindClusterBindings, "ClusterRoleBinding", "", daemonName},
		{KindDefinitions, "CustomResourceDefinition", "", "eniconfigs.crd.k8s.amazonaws.com"},
		{KindDefinitions, "CustomResourceDefinition", "", "cninodes.vpcresources.k8s.aws"},
	} {
		switch s := readOne(ctx, k, want.kind, want.namespace, want.name,
			func(raw []byte) (evidence.KubeObject, error) { return readKubeObject(want.object, raw) }); {
		case s.OK():
			out = append(out, s.Content)
		case s.Missing != evidence.MissingAbsent:
			return evidence.Lacking[[]evidence.KubeObject](s.Missing)
		}
	}
	return evidence.Read(out)
}

// gates reads what decides whether a pod of aws-node is admitted.
func (k Reader) gates(ctx context.Context) (evidence.Source[evidence.Namespace], evidence.Source[[]evidence.Admission]) {
	labels := readOne(ctx, k, KindNamespaces, "", k.Cluster.cfg.Namespace, readNamespaceLabels)
	quotas := readList(ctx, k, KindQuotas, k.Cluster.cfg.Namespace, "", readQuota)
	space := evidence.Lacking[evidence.Namespace](cmp.Or(labels.Missing, quotas.Missing))
	if labels.OK() && quotas.OK() {
		space = evidence.Read(evidence.Namespace{Labels: labels.Content,
			Quotas: slices.DeleteFunc(quotas.Content, func(name string) bool { return name == "" })})
	}
	admitted := readOne(ctx, k, KindDaemonSets, k.Cluster.cfg.Namespace, daemonName, readDaemonLabels)
	if admitted.Missing == evidence.MissingAbsent {
		admitted = evidence.Source[reviewed]{} // it has no labels until it is installed
	}
	admitted.Content.Namespace = labels.Content
	all := []evidence.Admission{}
	for _, kind := range []Kind{KindMutating, KindValidating} {
		some := readList(ctx, k, kind, "", "", func(raw []byte) ([]evidence.Admission, error) { return readAdmission(raw, admitted.Content) })
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
func (k Reader) podNetwork(ctx context.Context, service string) *bool {
	space, name, _ := strings.Cut(service, "/")
	selector := readOne(ctx, k, KindServices, space, name, readServiceSelector)
	if selector.Content == "" {
		return nil
	}
	pods := readList(ctx, k, KindPods, space, selector.Content, readPod)
	if len(pods.Content) == 0 {
		return nil
	}
	return new(!slices.ContainsFunc(pods.Content, func(p evidence.KubePod) bool { return p.HostNetwork }))
}

// monitors reads what scrapes metrics. A cluster without the Prometheus operator has no monitors.
func (k Reader) monitors(ctx context.Context) evidence.Source[[]evidence.Monitor] {
	out := []evidence.Monitor{}
	for name, kind := range map[string]Kind{"PodMonitor": KindPodMonitors, "ServiceMonitor": KindServiceMonitors} {
		s := readList(ctx, k, kind, "", "", func(raw []byte) (evidence.Monitor, error) { return readMonitor(name, raw) })
		if !s.OK() && s.Missing != evidence.MissingAbsent {
			return evidence.Lacking[[]evidence.Monitor](s.Missing)
		}
		out = append(out, s.Content...)
	}
	slices.SortFunc(out, func(a, b evidence.Monitor) int { return strings.Compare(a.Name, b.Name) })
	return evidence.Read(out)
}

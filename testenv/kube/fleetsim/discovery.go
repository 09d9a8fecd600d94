package fleetsim

import (
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover answers a discovery request, and reports whether the request is one.
func (s *Sim) discover(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "/api" || path == "/apis" {
		if strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && strings.Contains(r.Header.Get("Accept"), "v=v2;") {
			s.answerAs(w, r, aggregated, s.kinds.discoverAll(path == "/api"))
			return true
		}
		if path == "/api" {
			s.answer(w, r, metav1.APIVersions{
				TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
				ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: strings.TrimPrefix(s.url, "https://")}},
			})
			return true
		}
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range s.kinds.groups() {
			if g.name != "" {
				list.Groups = append(list.Groups, g.group())
			}
		}
		s.answer(w, r, list)
		return true
	}
	for _, g := range s.kinds.groups() {
		if g.name != "" && path == "/apis/"+g.name {
			doc := g.group()
			doc.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			s.answer(w, r, doc)
			return true
		}
		for _, version := range g.versions {
			if path == g.path(version) {
				s.answer(w, r, s.kinds.list(g, version))
				return true
			}
		}
	}
	return false
}

// apiGroup is a group of resources.
type apiGroup struct {
	name     string
	versions []string // the preferred one first
}

func (c *catalogue) groups() []apiGroup {
	var out []apiGroup
	for _, r := range c.all {
		if n := len(out); n == 0 || out[n-1].name != r.group {
			out = append(out, apiGroup{name: r.group})
		}
		g := &out[len(out)-1]
		if n := len(g.versions); n == 0 || g.versions[n-1] != r.version {
			g.versions = append(g.versions, r.version)
		}
	}
	return out
}

func (g apiGroup) path(version string) string {
	if g.name == "" {
		return "/api/" + version
	}
	return "/apis/" + g.name + "/" + version
}

func (g apiGroup) gv(version string) metav1.GroupVersionForDiscovery {
	full := version
	if g.name != "" {
		full = g.name + "/" + version
	}
	return metav1.GroupVersionForDiscovery{GroupVersion: full, Version: version}
}

func (g apiGroup) group() metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name, PreferredVersion: g.gv(g.versions[0])}
	for _, v := range g.versions {
		out.Versions = append(out.Versions, g.gv(v))
	}
	return out
}

func (c *catalogue) list(g apiGroup, version string) metav1.APIResourceList {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: g.gv(version).GroupVersion}
	for _, r := range c.all {
		if r.group != g.name || r.version != version {
			continue
		}
		out.APIResources = append(out.APIResources, metav1.APIResource{
			Name: r.name, SingularName: r.singular, Kind: r.kind, Namespaced: r.namespaced, ShortNames: r.short, Verbs: r.verbs(),
		})
		for _, sub := range r.subs {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.name + "/" + sub.name, Kind: sub.kind, Namespaced: r.namespaced, Verbs: sub.verbs})
		}
	}
	return out
}

// discoverAll is the aggregated form: the core group, or all others.
func (c *catalogue) discoverAll(core bool) apidiscovery.APIGroupDiscoveryList {
	out := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: []apidiscovery.APIGroupDiscovery{}}
	for _, g := range c.groups() {
		if (g.name == "") != core {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, version := range g.versions {
			v := apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, r := range c.all {
				if r.group == g.name && r.version == version {
					v.Resources = append(v.Resources, r.discovery())
				}
			}
			item.Versions = append(item.Versions, v)
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func (r *resource) discovery() apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if r.namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	out := apidiscovery.APIResourceDiscovery{
		Resource: r.name, SingularResource: r.singular, ShortNames: r.short, Verbs: r.verbs(), Scope: scope,
		ResponseKind: &metav1.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind},
	}
	for _, sub := range r.subs {
		out.Subresources = append(out.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource: sub.name, ResponseKind: &metav1.GroupVersionKind{Group: r.group, Version: r.version, Kind: sub.kind}, Verbs: sub.verbs,
		})
	}
	return out
}

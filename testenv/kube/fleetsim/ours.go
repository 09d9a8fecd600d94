package fleetsim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
)

// ourPaths are the paths that our daemon lists, upstream's first.
var ourPaths = append(slices.Clone(introspect.DocumentPaths), introspect.PathPod, introspect.PathLogs, introspect.PathSubnetHistory, introspect.PathSchemas)

// serveOurs answers like our daemon.
func (n *node) serveOurs(w http.ResponseWriter, r *http.Request) {
	var doc any
	query := r.URL.Query()
	switch path := r.URL.Path; path {
	case introspect.PathSummary:
		n.withWorld(func(w *world) { doc = w.summary() })
	case introspect.PathENIs:
		n.withWorld(func(w *world) { doc = w.ourENIs() })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	case introspect.PathENIConfigs, introspect.PathNetworkEnv, introspect.PathIPAMEnv:
		n.serveUpstream(w, r)
		return
	case introspect.PathConfig:
		doc = n.config()
	case introspect.PathPlan:
		q, fault := planQuery(query)
		if fault != nil {
			n.fault(w, http.StatusBadRequest, *fault)
			return
		}
		n.withWorld(func(w *world) { doc = w.planned(q) })
	case introspect.PathFailures:
		n.withWorld(func(w *world) { doc = w.failed() })
	case introspect.PathEvents:
		var fault *introspect.Fault
		if doc, fault = n.eventsAfter(r); fault != nil {
			n.fault(w, http.StatusBadRequest, *fault)
			return
		}
	case introspect.PathPod:
		var found bool
		if doc, found = n.podDocument(query.Get("namespace"), query.Get("name")); !found {
			n.fault(w, http.StatusNotFound, introspect.Fault{Code: introspect.FaultNotFound, Message: "the node has given no address to that pod"})
			return
		}
	case introspect.PathLogs:
		doc = n.logs(query)
	case introspect.PathSubnetHistory:
		doc = n.history()
	case introspect.PathSchemas:
		doc = introspect.Schemas()
	default:
		if kind, ok := strings.CutPrefix(path, introspect.PathSchemas+"/"); ok {
			if schema, known := introspect.Schema(kind); known {
				doc = schema
				break
			}
		}
		doc = introspect.Commands{AvailableCommands: ourPaths}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	n.write(w, r, doc)
}

func (n *node) fault(w http.ResponseWriter, status int, f introspect.Fault) {
	f.APIVersion, f.Kind = introspect.APIVersion, introspect.KindFault
	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f)
}

// write answers with a document and its ETag, compressed if the client accepts that.
func (n *node) write(w http.ResponseWriter, r *http.Request, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := fnv.New64a()
	_, _ = h.Write(body) // a hash never fails
	tag := fmt.Sprintf(`"%x"`, h.Sum64())
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentJSON)
	}
	writeBody(w, r, body, 1<<10)
}

// setting is one setting of a profile.
type setting struct {
	name, value string
	standard    bool // the default, so it is not in the environment
}

// settings returns the settings of the manifest with the profile's changes.

func (n *node) settings() []setting {
	p := n.profile.policy
	return []setting{
		{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", boolWord(p.CustomNetworking), !p.CustomNetworking},
		{"ENI_CONFIG_LABEL_DEF", "topology.kubernetes.io/zone", !p.CustomNetworking},
		{"ENABLE_IPv4", boolWord(!p.IPv6), false},
		{"ENABLE_IPv6", boolWord(p.IPv6), false},
		{"ENABLE_POD_ENI", boolWord(n.profile.podENI), !n.profile.podENI},
		{"ENABLE_PREFIX_DELEGATION", boolWord(p.PrefixDelegation), !p.PrefixDelegation},
		{"MINIMUM_IP_TARGET", strconv.Itoa(p.MinIP), p.MinIP == 0},
		{"WARM_ENI_TARGET", strconv.Itoa(p.WarmENI), p.WarmENI == 1},
		{"WARM_IP_TARGET", strconv.Itoa(p.WarmIP), p.WarmIP == 0},
		{"WARM_PREFIX_TARGET", strconv.Itoa(max(p.WarmPrefix, 1)), false},
	}
}

// config returns /v1/config.
func (n *node) config() introspect.NodeConfig {
	doc := introspect.NodeConfig{APIVersion: introspect.APIVersion, Kind: introspect.KindConfig}
	for _, row := range n.settings() {
		out := introspect.ConfigRow{Name: row.name, Effective: row.value, Source: "default", Support: introspect.SupportActs}
		if !row.standard {
			declared := n.garble(row.value)
			out.Declared, out.Source = &declared, "environment"
		}
		doc.Items = append(doc.Items, out)
	}
	return doc
}

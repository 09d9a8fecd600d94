package archtest

import (
	"slices"
	"strings"
)

// layer is a height; imports inside the module only go downward. Layers of the same name
// differ in height if one may import the other.
type layer struct {
	name   string
	height int
	pure   bool // standard library only, no clock, no environment, no I/O
}

var (
	leaf       = layer{"0a leaf", 0, true}
	pure       = layer{"0b pure", 10, true} // + order, see pureAt
	contract   = layer{"1 contract", 30, false}
	bottom     = layer{"2 bottom adapter", 40, false}
	adapter    = layer{"2 adapter", 41, false}
	display    = layer{"2 display", 42, false} // how values look in a terminal; what is read does not know
	collector  = layer{"2 adapter", 43, false} // reads through adapters
	shell      = layer{"3 shell", 50, false}
	binary     = layer{"4 binary", 60, false}
	model      = layer{"test support", 68, true} // facts of EC2
	simulation = layer{"test support", 69, true} // runs in virtual time
	testSupply = layer{"test support", 70, false}
)

// deduction is a pure layer above the contracts.
func deduction(order int) layer { return layer{"1p deduction", contract.height + 1 + order, true} }

func pureAt(order int) layer { f := pure; f.height += order; return f }

// placement assigns packages to a layer. A pattern ending in "/..." covers a subtree; with
// group the packages under the pattern may import each other.
type placement struct {
	pattern string
	layer   layer
	group   bool
}

// placements are the layers from the bottom up. The first match wins.
var placements = []placement{
	{"daemon/ipam", leaf, false},
	{"daemon/api/cause", leaf, false},
	{"daemon/iam", leaf, false},
	{"daemon/api/netnames", leaf, false},
	{"daemon/api/checkpoint", leaf, false},
	{"daemon/api/cniwire", leaf, false},
	{"daemon/api/crashpoint", leaf, false},
	{"daemon/api/logline", leaf, false},
	{"daemon/api/promtext", leaf, false},
	{"daemon/api/kubeobject", leaf, false},
	{"daemon/fleet/human", leaf, false},
	{"daemon/lazy", leaf, false},
	{"capacity/limits", leaf, false},
	{"deploy/chart", leaf, false}, // the schemas of its values, the table of registries
	{"docs/doctor", leaf, false},  // pages that the doctor reads

	{"daemon/netstate", pureAt(0), false},
	{"daemon/iptables", pureAt(0), false},
	{"daemon/warmpool", pureAt(0), false},
	{"daemon/resync", pureAt(1), false},
	{"daemon/cluster", pureAt(1), false},
	{"daemon/budget", pureAt(1), false},
	{"daemon/notice", pureAt(1), false},
	{"daemon/scrub", pureAt(1), false},
	{"daemon/api/daemonlog", pureAt(1), false},
	{"daemon/keeper", pureAt(2), false},
	{"daemon/hostnet/rules", pureAt(5), false},
	{"daemon/hostnet/egress", pureAt(5), false},
	{"plugin/podnet/rules", pureAt(6), false},
	{"doctor/causes/catalogue", pureAt(7), false},
	{"capacity/ec2types", bottom, false},
	{"capacity/maxpods", pureAt(11), false},
	{"capacity/trunk", pureAt(11), false},
	{"capacity/subnet", pureAt(11), false},
	{"capacity/whatif", pureAt(12), false},
	{"capacity/compare", pureAt(13), false},

	{"daemon/api/cnirpc", contract, false},
	{"daemon/api/introspect", contract, false},
	{"daemon/config", contract, false},
	{"plugin/netconf", contract, false},

	// cnictl's documents contain parts of the daemon's.
	{"daemon/fleet/document", deduction(0), false},
	{"daemon/subnethistory", deduction(0), false},
	// Evidence contains the daemon's documents, so the doctor's pure packages are above the
	// contracts.
	{"doctor/evidence", deduction(1), false},
	{"doctor/collect/reading", deduction(2), false},
	{"doctor/causes", deduction(3), false},
	{"doctor/migrate", deduction(4), false},
	{"doctor/evidence/file", bottom, false}, // YAML

	{"tui/show", display, true},
	{"tui/query", display, true},

	{"daemon/awssdk", bottom, false},
	{"daemon/rtnl", bottom, false},
	{"daemon/kubeclient", bottom, false},
	{"daemon/listen", bottom, false},
	{"daemon/logfile", bottom, false},
	{"capacity/capacitytest", testSupply, false},
	{"daemon/fleet/fleettest", testSupply, false},
	{"daemon/internal/vpcapi", adapter, false},
	{"daemon/internal/imds", adapter, false},
	{"daemon/internal/kube", adapter, false},
	{"daemon/internal/hostnet", adapter, false},
	{"daemon/internal/hostnet/branch", adapter, false}, // only tests
	{"daemon/internal/checkpoint", adapter, false},
	{"daemon/internal/rpcserver", adapter, false},
	{"daemon/internal/introspectserver", adapter, false},
	{"daemon/internal/metrics", adapter, false},
	{"daemon/internal/logging", adapter, false},
	{"daemon/internal/policyagent", adapter, false},
	{"daemon/fleet/...", adapter, true},
	{"daemon/api/introspect/client", adapter, false},
	{"daemon/install", adapter, false},
	{"plugin/podnet/apply", adapter, false},
	{"plugin/rpcclient", adapter, false},
	{"plugin/skel", adapter, false},
	{"plugin/pluginlog", adapter, false},
	{"doctor/collect", collector, false},
	{"doctor/collect/watched", collector, false},
	{"doctor/collect/node", adapter, false},
	{"doctor/collect/ec2", adapter, false},
	{"doctor/evidence/bundle", adapter, false},
	{"doctor/report", collector, false}, // commands and screens show it
	{"tui/tables", collector, false},    // the same

	{"daemon/ipamd", shell, false},
	{"daemon/launch", shell, false},
	{"daemon/nodeinit", shell, false},
	{"daemon/uninstall", shell, false},
	{"plugin/vpc", shell, false},
	{"plugin/vpc/branch", shell, false}, // only tests
	{"plugin/egress", shell, false},
	{"plugin/portmap", shell, false},
	{"tui/pages/pagetest", testSupply, true},
	{"tui/...", shell, true},
	{"doctor", shell, true},

	{"cmd/aws-cni/...", binary, true},
	{"cmd/aws-cni-grpc/...", binary, true},
	{"cmd/egress-cni/...", binary, true},
	{"cmd/portmap/...", binary, true},
	{"cmd/aws-k8s-agent/...", binary, true},
	{"cmd/aws-vpc-cni/...", binary, true},
	{"cmd/aws-vpc-cni-init/...", binary, true},
	{"cmd/grpc-health-probe/...", binary, true},
	{"cmd/cni-metrics-helper/...", binary, true},
	{"cmd/cnictl/...", binary, true},

	// Generators run at development time; nothing imports them.
	{"capacity/limits/internal/gen", binary, false},

	{"testenv/aws/ec2model", model, false},
	{"testenv/sim", simulation, false},
	{"testenv/...", testSupply, true},
	{"deploy/...", testSupply, true},
}

// exception is an import that is allowed although the layers forbid it.
type exception struct{ from, to, why string }

var exceptions = []exception{
	{"daemon/fleet", "daemon/api/introspect/client", "fleet reads each node through the one-node client"},
	{"daemon/fleet/live", "daemon/api/introspect/client", "fleet reads each node through the one-node client"},
	{"daemon/fleet/kube", "daemon/api/introspect/client", "fleet reads each node through the one-node client"},
	{"doctor/collect/node", "daemon/api/introspect/client", "the doctor asks the node's daemon through the one-node client"},
	{"doctor/collect/node", "daemon/fleet", "a panic over what a node returned is an error of that source"},
	{"daemon/api/checkpoint", "daemon/api/logline", "one way to quote a JSON text"},
	{"daemon/api/checkpoint", "daemon/api/netnames", "the plugin reads the file without the codec, but with the same version and special names"},
	{"tui/pages/pagetest", "testenv/text/golden", "golden files of the screens"},
	{"testenv/kube/kubeapi", "deploy", "tests grant the roles and create the CRDs that a cluster gets"},
	{"testenv/kube/cluster", "deploy", "the nodes of a cluster have the role that deploy grants"},
	{"testenv/node", "deploy", "the daemon of a simulated node has the capabilities that deploy grants"},
	{"testenv/node/e2e", "deploy", "the role of a simulated node allows what deploy grants"},
	{"testenv/cmd/demo", "deploy", "the role of a simulated node allows what deploy grants"},
}

// wireOnly packages may import only the contracts of the daemon (layers 0 and 1) and the
// packages in wireAlso.
var wireOnly = []string{"plugin/...", "tui/...", "doctor/...", "cmd/cnictl/..."}

var wireAlso = []string{"daemon/fleet", "daemon/api/introspect/client", "daemon/rtnl", "daemon/awssdk", "daemon/logfile"}

// topLevel are the only names allowed in the root, besides dot files.
var topLevel = []string{
	"cmd", "daemon", "plugin", "tui", "doctor", "capacity", "deploy", "testenv", "docs", "tools",
	"README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Makefile", "go.mod", "go.sum",
	"bin", "dist", // created by the build, not committed
}

// meaningless package names say nothing about their domain.
var meaningless = []string{"util", "utils", "helper", "helpers", "common", "manager", "misc", "shared", "base", "lib"}

// budget limits what a binary links.
type budget struct {
	pkg       string
	forbidden []string // package path prefixes
	maxBytes  int64    // of the release build; 0 = not bounded
	why       string
}

var budgets = []budget{
	{"cmd/aws-cni", slices.Concat(oncePerPod, []string{"os", "fmt"}), 19 << 17, "it starts once or twice per pod"}, // 2.375 MiB; it has 2.26
	{"cmd/egress-cni", oncePerPod, 13 << 18, "it starts once or twice per pod where it is in the conflist"},        // 3.25 MiB; it has 3.04
	{"cmd/portmap", slices.Concat(oncePerPod, []string{"os", "fmt"}), 8 << 18, "it starts once or twice per pod"},  // 2 MiB
	{"cmd/grpc-health-probe", []string{"github.com/aws", "k8s.io", "sigs.k8s.io", "github.com/prometheus", "github.com/vishvananda"}, 0, "kubelet runs it every few seconds"},
	{"cmd/aws-vpc-cni", []string{"github.com/aws/aws-sdk-go-v2/service/ec2", "k8s.io"}, 0, "the entrypoint needs the metadata client only"},
	{"cmd/aws-vpc-cni-init", []string{"github.com/aws/aws-sdk-go-v2/service/ec2", "k8s.io"}, 0, "the init container needs the metadata client only"},
	{"cmd/cnictl", []string{"github.com/aws/aws-sdk-go-v2/service/cloudwatch"}, 47 << 20, "of AWS it needs only EC2, for doctor and capacity refresh (doctor/collect/ec2), and not all of its methods"}, // 47 MiB; it has 46.3, 9 of them CEL; with all methods of EC2, 70
}

var oncePerPod = []string{
	"github.com/aws", "k8s.io", "sigs.k8s.io", "google.golang.org", "net/http", "github.com/prometheus", "cnictl/daemon/api/cnirpc",
}

// match applies a placement pattern to a package path below the module's root.
func match(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pattern == pkg
}

func matchAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if match(p, pkg) {
			return true
		}
	}
	return false
}

func place(pkg string) (placement, bool) {
	for _, p := range placements {
		if match(p.pattern, pkg) {
			return p, true
		}
	}
	return placement{}, false
}

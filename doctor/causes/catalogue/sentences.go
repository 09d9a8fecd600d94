package catalogue

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cnictl/daemon/api/cause"
)

// sentencesText holds the sentences of other programs, and of upstream.
//
//go:embed sentences.txt
var sentencesText string

// ownText holds the texts of our code that it logs, returns as errors or sends as events.
//
//go:embed texts.txt
var ownText string

// Sentences returns what other programs and upstream say.
func Sentences() []*Symptom { return sentences() }

// sentences parses sentencesText. Its comment describes the form.
var sentences = sync.OnceValue(func() []*Symptom {
	var out []*Symptom
	component, s := "", &Symptom{}
	for line := range strings.Lines(sentencesText) {
		kind, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch kind {
		case "@":
			component = text
		case "=", "~":
			s = &Symptom{Title: text, Component: component, wraps: kind == "~"}
			out = append(out, s)
		case ".":
			s.Meaning = text
		case ">":
			for code := range strings.FieldsSeq(text) {
				switch code {
				case "normal":
					s.Normal = true
				case "foreign":
					s.foreign = true
				default:
					s.Causes = append(s.Causes, code)
				}
			}
		case "?":
			s.Check.Text, s.Check.Command, _ = strings.Cut(text, " $ ")
		case "+":
			fix, ok := fixNamed(text)
			if !ok {
				fix.Text, fix.Command, _ = strings.Cut(text, " $ ")
			}
			s.Fixes = append(s.Fixes, fix)
		case "-":
			s.Signatures = append(s.Signatures, Signature{Text: text})
		case "!":
			s.exact = append(s.exact, Signature{Text: text})
		case "*":
			s.ours = append(s.ours, Signature{Text: text})
		}
	}
	return out
})

// part is a part of our code: what it prints under which name, and what its failures come from.
type part struct {
	dir       string // the longest one that a package begins with counts
	component string
	causes    string
	check     Check
}

var parts = []part{
	{"cmd/cni-metrics-helper", "cni-metrics-helper", "", Check{"Read the helper's log.", "kubectl -n kube-system logs deployment/cni-metrics-helper"}},
	{"cmd/aws-vpc-cni-init", "aws-vpc-cni-init (init container)", "boot/cni-config", initLog},
	{"daemon/nodeinit", "aws-vpc-cni-init (init container)", "boot/cni-config boot/primary-link aws/imds-unreachable", initLog},
	{"daemon/launch", "aws-vpc-cni (entrypoint)", "boot/cni-config boot/ipamd-down config/invalid", startLog},
	{"cmd/aws-vpc-cni", "aws-vpc-cni (entrypoint)", "boot/cni-config boot/ipamd-down config/invalid", startLog},
	{"daemon/uninstall", "aws-vpc-cni-uninstall", "", Check{"Read the uninstaller's log on that node.", "kubectl -n kube-system logs -l app.kubernetes.io/component=uninstall"}},
	{"plugin", "aws-cni (plugin)", "net/setup-failed", pluginLog},
	{"cmd/aws-cni-grpc", "aws-cni (plugin)", "boot/ipamd-down boot/plugin-version-skew", pluginLog},
	{"cmd/portmap", "portmap (plugin)", "net/setup-failed", pluginLog},
	{"cmd/aws-k8s-agent", "aws-k8s-agent (ipamd)", "", daemonCheck},
	{"plugin/netconf", "aws-cni (plugin)", "boot/cni-config", pluginLog},
	{"plugin/skel", "aws-cni (plugin)", "boot/cni-config", pluginLog},
	{"plugin/rpcclient", "aws-cni (plugin)", "boot/ipamd-down boot/plugin-version-skew", pluginLog},
	{"plugin/egress", "egress-cni (plugin)", "net/setup-failed", pluginLog},
	{"plugin/portmap", "portmap (plugin)", "net/setup-failed", pluginLog},
	{"daemon/config", "aws-k8s-agent (ipamd)", "config/invalid", Check{"Look at the environment of aws-node.", settings}},
	{"daemon/internal/checkpoint", "aws-k8s-agent (ipamd)", "boot/checkpoint boot/backing-store", daemonCheck},
	{"daemon/api/checkpoint", "aws-k8s-agent (ipamd)", "boot/checkpoint", daemonCheck},
	{"daemon/internal/imds", "aws-k8s-agent (ipamd)", "aws/imds-unreachable", daemonCheck},
	{"daemon/internal/vpcapi", "aws-k8s-agent (ipamd)", "eni/ec2-rejected aws/iam aws/throttled aws/ec2-unreachable", daemonCheck},
	{"daemon/awssdk", "aws-k8s-agent (ipamd)", "aws/credentials aws/ec2-unreachable", daemonCheck},
	{"daemon/internal/kube", "aws-k8s-agent (ipamd)", "boot/apiserver boot/rbac", daemonCheck},
	{"daemon/kubeclient", "aws-k8s-agent (ipamd)", "boot/apiserver boot/rbac", daemonCheck},
	{"daemon/internal/hostnet", "aws-k8s-agent (ipamd)", "eni/setup-failed boot/iptables", daemonCheck},
	{"daemon/iptables", "aws-k8s-agent (ipamd)", "boot/iptables", daemonCheck},
	{"daemon/internal/policyagent", "aws-k8s-agent (ipamd)", "np/agent-unreachable", daemonCheck},
	{"daemon/listen", "aws-k8s-agent (ipamd)", "boot/port-conflict", daemonCheck},
	{"daemon", "aws-k8s-agent (ipamd)", "", daemonCheck},
}

var (
	daemonCheck = Check{"Read the lines before and after it in the daemon's log.", showLog}
	pluginLog   = Check{"Read the plugin's log on the node.", "tail -n 50 /var/log/aws-routed-eni/plugin.log"}
	initLog     = Check{"Read the init container's log.", "kubectl -n kube-system logs POD -c aws-vpc-cni-init"}
	startLog    = Check{"Read the container's log.", "kubectl -n kube-system logs POD -c aws-node"}
)

// ownPatterns parses ownText: lines "@ package", and "level[:code] text".
func ownPatterns() []*pattern {
	var out []*pattern
	var of part
	about := map[string]*Symptom{}
	for line := range strings.Lines(ownText) {
		kind, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch kind {
		case "#":
			continue
		case "@":
			of = partOf(text)
			continue
		}
		level, code, _ := strings.Cut(kind, ":")
		if level == "text" && slices.ContainsFunc(strings.Fields(text), func(w string) bool { return w == "not" || fails(form(w)) }) {
			kind, level = strings.Replace(kind, "text", "error", 1), "error"
		}
		key := of.dir + " " + kind
		if about[key] == nil {
			about[key] = of.symptom(level, cause.Code(code))
		}
		p := patterns(source{symptom: about[key]}, []Signature{{Text: text}}, nil)[0]
		p.own = true
		out = append(out, p)
	}
	return out
}

func partOf(dir string) part {
	var best part
	for _, p := range parts {
		if rest, ok := strings.CutPrefix(dir, p.dir); ok && (rest == "" || rest[0] == '/') && len(p.dir) >= len(best.dir) {
			best = p
		}
	}
	return best
}

// symptom describes a text of the part that has no signature.
func (p part) symptom(level string, code cause.Code) *Symptom {
	s := &Symptom{Component: p.component, Check: p.check}
	switch {
	case code != "":
		s.Title, s.Meaning = "the reason "+string(code), sentence(code.Title())+"."
		for e := range All() {
			if slices.Contains(e.Daemon, code) {
				s.Causes = append(s.Causes, e.Code)
			}
		}
	case level == "debug" || level == "info":
		s.Title, s.Meaning, s.Normal = "a message of our "+p.component+" about its work", "Part of normal operation.", true
		s.Check = Check{"Nothing to do unless others report a failure.", p.check.Command}
	case level == "warn":
		s.Title, s.Meaning = "a warning of our "+p.component, "The text says what is not as it should be; the program goes on."
		s.Causes = strings.Fields(p.causes)
	case level == "error":
		s.Title, s.Meaning = "a failure that our "+p.component+" reports", "The text says what failed, and what follows it says why."
		s.Causes = strings.Fields(p.causes)
	default:
		s.Title, s.Normal = "a text of our "+p.component, true
		s.Meaning = "The text stands in a message; what surrounds it says whether something failed."
	}
	return s
}

// prefix matches what loggers put before or around a message.
var prefix = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`"(?:level|ts|time|timestamp|caller|logger|pid|stream)"\s*:\s*"?[^",}]*"?,?`, `\b(?:time|level|caller|ts)=(?:"[^"]*"|\S+)`,
		`^\s*[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+\.go:\d+\]`, `^[A-Z][a-z]{2} [ \d]\d [\d:]+ \S+ [\w.-]+(?:\[\d+\])?:`,
		`\d{4}-\d\d-\d\d[T ][\d:.,]+Z?`,
	}, "|"))
})

// peel removes what loggers put before or around a message.
func peel(line string) string { return prefix().ReplaceAllString(line, " ") }

// Printer is a component whose lines are known by their form, or by a sentence about something
// that the CNI has no part in.
type Printer struct {
	Component string
	About     string // what such lines are about
	Meaning   string // of the sentence
	Check     Check
}

// printers are tried in order.
var printers = []struct {
	form string
	Printer
}{
	{`"caller":"(ipamd|datastore|awsutils|networkutils|eniconfig|aws-k8s-agent|wait|rpc)[/.]`, Printer{"ipamd", "the node's pool of addresses and its interfaces", "", daemonCheck}},
	{`"caller":"(driver|routed-eni-cni-plugin|snat|hostipamwrapper)[/.]`, Printer{"aws-cni (plugin)", "one pod's link, routes and rules", "", pluginLog}},
	{`(?i)network-policy-agent|aws-eks-nodeagent|"logger":"(ebpf|policyendpoints|controllers\.policyEndpoints)|ebpf-client|bpfclient`, Printer{"network policy agent", "network policies on the node", "", Check{"Read the agent's log.", "kubectl -n kube-system logs POD -c aws-eks-nodeagent"}}},
	{`(?i)vpc-resource-controller`, Printer{"VPC resource controller", "trunk and branch interfaces", "", Check{"Read the events of node and pod.", nodeEvents}}},
	{`(?i)default-scheduler|\d+/\d+ nodes are available|schedule_one\.go|FailedScheduling`, Printer{"kube-scheduler", "why no node takes a pod; the CNI has no part in it unless it names pods, pod-eni or a network taint", "", Check{"Read the pod's requests, affinity and tolerations against the nodes.", podEvents}}},
	{`(?i)"controller":"(nodeclaim|provisioner|disruption|node\.)|karpenter|nodeclaim`, Printer{"Karpenter", "starting and ending nodes", "", Check{"Read the NodeClaim's conditions.", "kubectl describe nodeclaims"}}},
	{`(?i)kube-proxy|proxier\.go|ipvs|\biptables_monitor`, Printer{"kube-proxy", "Services on the node", "", Check{"Read kube-proxy's log.", "kubectl -n kube-system logs -l k8s-app=kube-proxy --tail=50"}}},
	{`(?i)\bcontainerd\b|level=\w+ msg="(RunPodSandbox|StopPodSandbox|CreateContainer|cleaning up)`, Printer{"containerd", "sandboxes, containers and images of the node", "", Check{"Read containerd's log around it.", "journalctl -u containerd -n 100"}}},
	{`(?i)\bkubelet\b|(kubelet|pod_workers|kuberuntime_\w+|remote_runtime|kubelet_node_status|eviction_manager|status_manager|prober|reconciler|nestedpendingoperations|controller_utils)\.go:\d+|pod_workers|Error syncing pod`, Printer{"kubelet", "pods of the node", "", Check{"Read the pod's events and kubelet's log.", "journalctl -u kubelet -n 100"}}},
	{`(?i)nodeadm|bootstrap\.sh|cloud-init`, Printer{"nodeadm or bootstrap.sh", "a node's first start", "", Check{"Read the start script's log.", "journalctl -u nodeadm-run -u cloud-final -n 100"}}},
	{`(?i)(INSTALLATION|UPGRADE|ROLLBACK) FAILED|helm\.go:\d+`, Printer{"Helm", "installing a chart", "", Check{"Look at the release.", "helm history -n kube-system RELEASE"}}},
	{`(?i)eksctl|\[[✖ℹ✔]\]`, Printer{"eksctl", "creating clusters, node groups and add-ons", "", Check{"Look at the stack's events.", "aws cloudformation describe-stack-events --stack-name STACK"}}},
	{`(?i)elbv2|aws-load-balancer|targetgroupbinding`, Printer{"AWS load balancer controller", "load balancers and their targets", "", Check{"Read the controller's log.", "kubectl -n kube-system logs deployment/aws-load-balancer-controller --tail=50"}}},
	{`(?i)\bipamd\b|aws-k8s-agent|aws-node\b|aws-routed-eni|vpc-cni\b`, Printer{"aws-node", "addresses of the node's pods", "", daemonCheck}},
	{`\baws-cni\b|/opt/cni/bin`, Printer{"aws-cni (plugin)", "one pod's link, routes and rules", "", pluginLog}},
	{`api error \w+:|An error occurred \(\w+\) when calling the \w+ operation|operation error \w+: \w+`, Printer{"an AWS API", "a call that AWS refused", "", Check{"Look up the error code in the documentation of the service, and who made the call.", "aws cloudtrail lookup-events --lookup-attributes AttributeKey=EventName,AttributeValue=OPERATION"}}},
	{`(?m)^\s*\[\s*\d+\.\d+\] |\bkernel: `, Printer{"the kernel", "the node's hardware, memory and network", "", Check{"Read the lines around it.", "dmesg -T | tail -n 100"}}},
	{`(?m)^\s*[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+\.go:\d+\]`, Printer{"a Kubernetes component (klog)", "", "", Check{"Find out whose log it is; read the lines around it.", podEvents}}},
}

var printerForms = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(printers))
	for i, p := range printers {
		out[i] = regexp.MustCompile(p.form)
	}
	return out
})

// printedIn are the programs by the source in which a signature is found first.
var printedIn = map[string]string{
	"log.ipamd": "ipamd", "log.plugin": "aws-cni (plugin)", "log.np": "network policy agent", "log.awsnode": "aws-vpc-cni (entrypoint)",
	"log.kubelet": "kubelet", "kern.link": "kernel",
}

// printerOf names who prints a signature that is found in some sources, in a line.
func printerOf(where []string, line string) string {
	if p, ok := formOf(line); ok && p.About != "" {
		return p.Component
	}
	for _, source := range where {
		if component := printedIn[source]; component != "" {
			return component
		}
	}
	return ""
}

// callers are the forms whose field "caller" names the program.
const callers = 2

// callerOf names the program of the CNI that logged a line, by the source file that the line names.
func callerOf(line string) string {
	for i, form := range printerForms()[:callers] {
		if form.MatchString(line) {
			return printers[i].Component
		}
	}
	return ""
}

var foreign = sync.OnceValue(func() (out []*pattern) {
	for _, s := range sentences() {
		if s.foreign {
			out = append(out, patterns(source{symptom: s}, s.Signatures, nil)...)
		}
	}
	return out
})

// PrinterOf returns the component that says something with which the CNI has nothing to do, or
// that prints lines of the form that a text has.
func PrinterOf(text string) (Printer, bool) {
	text = text[:min(len(text), mostLine)]
	if s, ok := foreignIn(text); ok {
		return Printer{s.Component, s.Title, s.Meaning, s.Check}, true
	}
	return formOf(text)
}

// Foreign returns what a text means that the CNI has no part in, and what to do about it.
func Foreign(text string) (*Symptom, bool) { return foreignIn(text) }

// foreignIn finds a sentence about something that the CNI has no part in.
func foreignIn(text string) (*Symptom, bool) {
	plain := normal(text)
	for _, p := range foreign() {
		if p.in(plain, text) {
			return p.from.symptom, true
		}
	}
	return nil, false
}

// ours are the components of the CNI, as forms name them.
var ours = []string{"ipamd", "aws-cni (plugin)", "network policy agent", "VPC resource controller", "aws-node"}

func formOf(text string) (Printer, bool) {
	for i, form := range printerForms() {
		if form.MatchString(text) {
			return printers[i].Printer, true
		}
	}
	return Printer{}, false
}

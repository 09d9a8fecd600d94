package bundle

import (
	"bytes"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/causes"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// recorded are archive files with recorded answers and output of upstream's daemon.
var recorded = map[string]string{
	"ipamd/enis.json":                      "../../../daemon/api/introspect/testdata/recorded/two-enis/v1-enis.three-pods.json",
	"ipamd/eni-configs.json":               "../../../daemon/api/introspect/testdata/recorded/two-enis/v1-eni-configs.before.txt",
	"ipamd/ipamd-env-settings.json":        "../../../daemon/api/introspect/testdata/recorded/two-enis/v1-ipamd-env-settings.before.json",
	"ipamd/networkutils-env-settings.json": "../../../daemon/api/introspect/testdata/recorded/two-enis/v1-networkutils-env-settings.before.json",
	"ipamd/pods.json":                      "../../../daemon/api/introspect/testdata/recorded/two-enis/unknown-path.before.json",
	"ipamd/metrics.json":                   "../../../daemon/internal/metrics/testdata/recorded/two-enis.three-pods.txt",
	"ipamd/ipam.json":                      "../../../daemon/api/checkpoint/testdata/recorded/two-enis.ipam.three-pods.json",
	"networking/iptables-save.txt":         "../../../daemon/hostnet/rules/testdata/recorded/two-enis.iptables-save.txt",
	"networking/iprule.txt":                "testdata/networking/iprule.txt",
	"networking/ip6rule.txt":               "testdata/networking/ip6rule.txt",
	"networking/iproute.txt":               "testdata/networking/iproute.txt",
	"networking/ifconfig.txt":              "testdata/networking/ifconfig.txt",
	"var_log/aws-routed-eni/ipamd.log":     "../../../daemon/internal/logging/testdata/recorded/ipamd.log",
}

// written are files made for the test.
var written = []entry{
	{name: "ipamd/ipam.json.tmp123", text: "{"},
	{name: "networking/ip6route.txt"},
	{name: "networking/ip6tables-save.txt"},
	{name: "networking/ethtool.txt", text: "Interface eth0\nNIC statistics:\n     pps_allowance_exceeded: 3\n     bw_in_allowance_exceeded: 0\n\n"},
	{name: "networking/systemd-network/80-ec2.network.d/10-x.conf", text: "[Network]\n"},
	{name: "networking/systemd-network/99-default.link", text: "[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=none\n"},
	{name: "sysctls/sysctl_all.txt", text: "net.ipv4.conf.eth0.rp_filter = 2\nnet.netfilter.nf_conntrack_count = 12\nnet.netfilter.nf_conntrack_max = 131072\n"},
	{name: "system/pkglist.txt", text: "systemd-252.23-3.amzn2023.x86_64\namazon-ec2-net-utils-2.5.1-1.amzn2023.noarch\n"},
	{name: "system/services.txt", text: "  kubelet.service loaded active running Kubernetes Kubelet\n  systemd-networkd.service loaded active running Network Configuration\n"},
	{name: "system/netstat.txt", text: "tcp        0      0 127.0.0.1:61679         0.0.0.0:*               LISTEN      3412/./aws-k8s-agent\n"},
	{name: "system/instance-id.txt", text: "i-0fa4e000000000001"},
	{name: "cni/10-aws.conflist", text: `{"name":"aws-cni","cniVersion":"1.0.0","plugins":[{"type":"aws-cni"},{"type":"egress-cni"},{"type":"portmap"}]}`},
	{name: "cni/cni-configuration-variables-containerd.json", text: `{"ID":"1","Labels":{"io.kubernetes.container.name":"aws-node"},"Spec":{"process":{"env":["MY_NODE_NAME=bench-node","ENABLE_IPv4=true","ENABLE_IPv6=false","WARM_ENI_TARGET=1","WARM_PREFIX_TARGET=1"]}}}`},
	{name: "kubelet/config.json", text: `{"kind":"KubeletConfiguration","maxPods":17}`},
	{name: "kubelet/config.json.d/40-nodeadm.conf", text: `{"maxPods":29}`},
	{name: "kubelet/kubelet.log", text: "-- Logs begin at Fri 2026-11-20 08:00:00 UTC. --\nNov 21 02:59:00 ip-10-0-0-10 kubelet[3412]: E1121 02:59:00.123456    3412 kubelet.go:2900] \"Container runtime network not ready\" networkReady=\"NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized\"\n"},
	{name: "var_log/aws-routed-eni/plugin-2026-11-20T01-02-03.456.log.gz"},
	{name: "var_log/aws-routed-eni/plugin.log", text: `{"level":"error","ts":"2026-11-21T03:00:39.000Z","caller":"a.go:1","msg":"new"}` + "\n"},
	{name: "var_log/aws-routed-eni/network-policy-agent.log"},
	{name: "var_log/kube-system_aws-node-x7k2p_0a0b/aws-node/9.log", text: "2026-11-21T02:58:00Z stdout F before\n"},
	{name: "var_log/kube-system_aws-node-x7k2p_0a0b/aws-node/10.log", text: "2026-11-21T03:00:39Z stdout F now\n"},
	{name: "var_log/aws-node-x7k2p_kube-system_aws-node-0123abc.log", text: "2026-11-21T03:00:39Z stdout F now\n"},
	{name: "var_log/aws-node-x7k2p_kube-system_aws-vpc-cni-init-0123abc.log", text: `2026-11-21T02:58:00Z stderr F time="2026-11-21T02:57:59Z" level=info msg="Copied all CNI plugin binaries to /host/opt/cni/bin"` + "\n"},
	{name: "var_log/aws-node-old_kube-system_aws-node-0123abc.log", text: "2026-11-19T03:00:39Z stdout F old\n"},
	{name: "var_log/messages", text: "Nov 21 02:59:00 ip-10-0-0-10 kernel: nothing\n"},
}

// collected returns an archive in the format of eks-log-collector.
func collected(t testing.TB, change func(name, text string) string) []byte {
	t.Helper()
	var entries []entry
	for name := range recorded {
		entries = append(entries, entry{name: name, text: recordedText(t, name)})
	}
	entries = append(entries, written...)
	for i := range entries {
		e := &entries[i]
		if strings.HasSuffix(e.name, ".gz") {
			e.text = string(zipped(t, []byte(`{"level":"error","ts":"2026-11-20T01:02:00.000Z","caller":"a.go:1","msg":"old"}`+"\n")))
		}
		e.text = change(e.name, e.text)
		e.name = "./" + e.name
	}
	return packed(t, entries...)
}

const collectedName = "/tmp/eks_i-0fa4e000000000001_2026-11-21_0300-UTC_0.7.9.tar.gz"

func asItIs(_, text string) string { return text }

func TestCollected(t *testing.T) {
	t.Parallel()
	ev, notes, err := Read(bytes.NewReader(collected(t, asItIs)), collectedName)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	r := ev.Nodes[0].First
	at := time.Date(2026, 11, 21, 3, 0, 39, 27e6, time.UTC) // time of the newest line
	if ev.Mode != evidence.ModeBundle || ev.Nodes[0].Name != "bench-node" || !ev.At.Equal(at) || !r.At.Equal(at) || ev.Nodes[0].Second != nil {
		t.Errorf("mode %s, node %s, at %v and %v", ev.Mode, ev.Nodes[0].Name, ev.At, r.At)
	}
	byValue := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
	check := func(name string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got, byValue); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	assigned := 0
	for _, e := range r.ENIs.Content {
		for _, a := range e.IPs {
			if a.Pod != nil {
				assigned++
			}
		}
	}
	check("interfaces", []int{2, 3}, []int{len(r.ENIs.Content), assigned})
	check("counters", map[string]evidence.Counters{"0": {TotalIPs: 18, AssignedIPs: 3}}, r.Counters.Content)
	check("settings", 1, r.Env.Content.IPAMD.WarmENITarget)
	check("ENIConfig", new("default"), r.ENIConfig.Content)
	check("metrics", 3.0, r.Metrics.Content.Samples["awscni_assigned_ip_addresses"])
	check("checkpoint", 3, len(r.Checkpoint.Content.Allocations))
	check("temporary checkpoints", new(1), r.Checkpoint.Content.Temporary)
	check("rules", []int{12, 512, 6}, []int{len(r.Rules.Content), r.Rules.Content[1].Priority, r.Rules.Content[11].Family})
	check("route of a pod", evidence.Route{Family: 4, Table: 254, To: "10.0.0.12/32", Pod: "default/web-0"}, r.Routes.Content[4])
	check("link of a pod", evidence.Pod("default/web-0"), r.Links.Content[1].Pod)
	check("iptables", []string{"nft", "10.0.0.10"}, []string{r.IPTables.Content.Mode, r.IPTables.Content.SNATTo.String()})
	check("sysctls", map[string]string{"net.ipv4.conf.eth0.rp_filter": "2"}, r.Sysctls.Content)
	check("conntrack", evidence.Conntrack{Count: new(12), Max: new(131072), Allowance: evidence.Allowance{PPS: new(3), BWIn: new(0)}}, r.Conntrack.Content)
	check("packages", evidence.Packages{
		Systemd: new(252), Packages: []string{"amazon-ec2-net-utils"}, LinkPolicy: "none",
		Units: map[string]string{"kubelet.service": "active", "systemd-networkd.service": "active"},
	}, r.Packages.Content)
	check("CNI", evidence.CNI{Conf: []evidence.CNIConf{{File: "10-aws.conflist", Types: []string{"aws-cni", "egress-cni", "portmap"}, Valid: true}}}, r.CNI.Content)
	check("environment", "1", r.ContainerEnv.Content["aws-node"]["WARM_ENI_TARGET"])
	check("sockets", []evidence.Listener{{Address: "127.0.0.1:61679", Process: "aws-k8s-agent"}}, r.Listeners.Content)
	check("kubelet", evidence.Kubelet{MaxPods: new(29)}, r.Kubelet.Content)
	check("instance type", reading.InstanceType("m5.large"), r.InstanceType.Content)

	check("log of ipamd", "Constructed new logger instance", r.LogIPAMD.Content.Lines[0].Msg)
	check("log of the plugin", []evidence.Line{
		{At: time.Date(2026, 11, 20, 1, 2, 0, 0, time.UTC), Level: "error", Msg: "old"}, {At: time.Date(2026, 11, 21, 3, 0, 39, 0, time.UTC), Level: "error", Msg: "new"},
	}, r.LogPlugin.Content.Lines)
	last := r.LogKubelet.Content.Lines[len(r.LogKubelet.Content.Lines)-1]
	if last.Level != "error" || !strings.Contains(last.Msg, "cni plugin not initialized") || !last.At.Equal(time.Date(2026, 11, 21, 2, 59, 0, 123456e3, time.UTC)) {
		t.Errorf("log of kubelet: %+v", last)
	}
	agent := r.LogAWSNode.Content["aws-node"]
	if len(r.LogAWSNode.Content) != 2 || len(agent.Lines) != 1 || agent.Lines[0].Msg != "now" || agent.Previous == nil || agent.Previous.Lines[0].Msg != "before" {
		t.Errorf("logs of containers: %+v", r.LogAWSNode.Content)
	}
	for name, got := range map[string]string{
		"policy agent": r.LogAgent.Missing, "links of pods": r.Neighbours.Missing, "summary": r.Summary.Missing, "Kubernetes": r.Pods.Missing, "EC2": r.Interfaces.Missing,
	} {
		if want := map[string]string{"policy agent": missingText}[name]; got != want && got != evidence.MissingMode {
			t.Errorf("%s is missing: %q", name, got)
		}
	}
	for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
		if f.Severity != "info" {
			t.Errorf("the node is healthy, and has %s: %s", f.Code, f.Summary)
		}
	}
	saved, err := file.Save(ev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(saved); err != nil {
		t.Errorf("what was read cannot be saved and loaded: %v", err)
	}
}

// TestCollected_Empty: the script swallows failures and leaves files empty.
func TestCollected_Empty(t *testing.T) {
	t.Parallel()
	data := collected(t, func(name, text string) string {
		if name == "system/instance-id.txt" {
			return text
		}
		return ""
	})
	ev, _, err := Read(bytes.NewReader(data), "x.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	r := ev.Nodes[0].First
	for name, missing := range map[string]string{
		"intro.enis": r.ENIs.Missing, "intro.env": r.Env.Missing, "intro.eniconfig": r.ENIConfig.Missing, "metrics": r.Metrics.Missing, "log.ipamd": r.LogIPAMD.Missing,
		"kern.link": r.Links.Missing, "kern.rule": r.Rules.Missing, "kern.route": r.Routes.Missing, "kern.ipt": r.IPTables.Missing, "kern.sysctl": r.Sysctls.Missing,
		"kern.ct": r.Conntrack.Missing, "host.env": r.ContainerEnv.Missing, "host.pkg": r.Packages.Missing,
	} {
		if missing != missingText {
			t.Errorf("%s is missing: %q, want %q", name, missing, missingText)
		}
	}
	if c := r.Checkpoint.Content; c.Error == nil || *c.Bytes != 0 {
		t.Errorf("an empty checkpoint, copied as it was: %+v", c)
	}
	if ev.Nodes[0].Name != "i-0fa4e000000000001" {
		t.Errorf("node %q", ev.Nodes[0].Name)
	}
}

// TestCollected_Folder: users pack the folder that they unpacked. Its name shows the time.
func TestCollected_Folder(t *testing.T) {
	t.Parallel()
	folder := "eks_i-0a_2026-11-21_1201-UTC_0.7.9/"
	ev, _, err := Read(bytes.NewReader(tarred(t, entry{name: folder + "ipamd/enis.json", text: "{}"}, entry{name: folder + "other/x", text: "{}"})), "support.tar")
	if err != nil || ev.Nodes[0].Name != "i-0a" || !ev.At.Equal(noon.Add(time.Minute)) || !ev.Nodes[0].First.ENIs.OK() {
		t.Errorf("read %+v, %v", ev, err)
	}
}

// TestSupport: an archive of our script aws-cni-support.sh is read the same way and has more in
// it.
func TestSupport(t *testing.T) {
	t.Parallel()
	saved := recordedText(t, "networking/iptables-save.txt")
	folder := "aws-cni-support_i-0fa4e000000000001_20261121T120102Z/"
	files := map[string]string{
		"MANIFEST":          "layout\t1\ncollected\t2026-11-21T12:01:03Z\nsystem/instance-id.txt\tok\n",
		"ipamd/enis.json":   recordedText(t, "ipamd/enis.json"),
		"ipamd/metrics.txt": recordedText(t, "ipamd/metrics.json"), "ipamd/summary.json": `{"apiVersion":"cnictl/v1alpha1","kind":"NodeSummary","node":"bench-node","enis":[],"cards":[]}`,
		"ipamd/plan.json":                       `{"AvailableCommands":["/v1/enis"]}`,
		"ipamd/failures.json":                   "",
		"ipamd/ipam.json":                       `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c","ifName":"eth0","ipv4":"10.0.0.9"}]}`,
		"ipamd/ipam-nic-1.json":                 `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c","ifName":"eth1","ipv4":"10.0.1.9"}]}`,
		"ipamd/var-run-aws-node.txt":            "/run/aws-node/:\ntotal 4\ndrwxr-xr-x 2 0 0 80 Nov 21 10:00 .\n-rw------- 1 0 0 30 Nov 21 10:00 ipam.json\nsrw------- 1 0 0 0 Nov 21 10:00 ipamd.sock\n",
		"networking/ipaddr.txt":                 "2: eth0@if3: <UP> mtu 9001\n    link/ether 02:fa:4e:00:00:01 brd ff:ff:ff:ff:ff:ff\n",
		"networking/iptables-save.txt":          "# Generated by iptables-save v1.8.9 (legacy)\n",
		"networking/iptables-nft-save.txt":      saved,
		"networking/nft.txt":                    "table ip aws-cni {\n}\n",
		"sysctls/net.txt":                       "/proc/sys/net/ipv4/conf/eth0.1/rp_filter:2\n/proc/sys/net/netfilter/nf_conntrack_max:262144\n/proc/sys/net/ipv4/neigh/default/gc_thresh3:1024\n",
		"networking/arp-stat.txt":               "entries allocs table_fulls\n000003e8 0 00000002\n",
		"system/instance-type.txt":              "c5.xlarge\n",
		"cni/10-aws.conflist":                   `{"name":"aws-cni","plugins":[{"type":"aws-cni"}]}`,
		"cni/opt-cni-bin.txt":                   "total 9\ndrwxr-xr-x 2 0 0 80 Nov 21 10:00 .\n-rwxr-xr-x 1 0 0 2400000 Nov 21 10:00 aws-cni\n",
		"kubelet/kubelet-version.txt":           "Kubernetes v1.35.0\n",
		"var_log/aws-routed-eni/ipamd-1.log.gz": "",
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{name: folder + name, text: files[name]})
	}
	ev, notes, err := Read(bytes.NewReader(packed(t, entries...)), "support.tar.gz")
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	r := ev.Nodes[0].First
	if want := time.Date(2026, 11, 21, 12, 1, 3, 0, time.UTC); !ev.At.Equal(want) || ev.Nodes[0].Name != "bench-node" {
		t.Errorf("node %s at %v", ev.Nodes[0].Name, ev.At)
	}
	if c := r.Checkpoint.Content; len(c.Allocations) != 2 || c.Allocations[1].Address.String() != "10.0.1.9" {
		t.Errorf("checkpoint %+v", c)
	}
	for name, c := range map[string][2]any{
		"metrics":       {3.0, r.Metrics.Content.Samples["awscni_assigned_ip_addresses"]},
		"summary":       {"bench-node", r.Summary.Content.Node},
		"plan":          {evidence.MissingAbsent, r.Plan.Missing},
		"failures":      {missingText, r.Failures.Missing},
		"events":        {evidence.MissingMode, r.Journal.Missing},
		"files":         {[]string{"ipam.json", "ipamd.sock"}, r.RunFiles.Content},
		"links":         {[]evidence.Link{{Name: "eth0", Kind: "device", MAC: "02:fa:4e:00:00:01", MTU: new(9001), Up: new(true)}}, r.Links.Content},
		"backend":       {[]string{"legacy", "nat AWS-SNAT-CHAIN-0", "ip aws-cni"}, []string{r.IPTables.Content.Mode, r.IPTables.Content.NFT.Chains[0], r.IPTables.Content.NFTTables[0]}},
		"sysctls":       {map[string]string{"net.ipv4.conf.eth0/1.rp_filter": "2"}, r.Sysctls.Content},
		"conntrack":     {new(262144), r.Conntrack.Content.Max},
		"ARP table":     {evidence.NeighbourTable{Entries: new(1000), Max: new(1024), Full: new(2)}, r.Conntrack.Content.Neighbours.IPv4},
		"instance type": {reading.InstanceType("c5.xlarge"), r.InstanceType.Content},
		"CNI":           {evidence.CNI{Conf: []evidence.CNIConf{{File: "10-aws.conflist", Types: []string{"aws-cni"}, Valid: true}}, Bin: []evidence.CNIPlugin{{Name: "aws-cni", Size: new(2400000)}}}, r.CNI.Content},
		"kubelet":       {evidence.Kubelet{Version: "v1.35.0"}, r.Kubelet.Content},
	} {
		if diff := cmp.Diff(c[0], c[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func recordedText(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(recorded[name])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

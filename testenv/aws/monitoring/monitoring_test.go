package monitoring

import (
	"net"
	"slices"
	"strings"
	"testing"
)

const (
	down = net.FlagBroadcast | net.FlagMulticast
	up   = down | net.FlagUp | net.FlagRunning
)

// address is a CIDR of /v1/enis with an address that a container has, or none if id is "".
func address(ip, id string) string {
	key := `{"networkName":"aws-cni","containerID":"` + id + `","ifName":"eth0"}`
	if id == "" {
		key = `{"networkName":"","containerID":"","ifName":""}`
	}
	return `{"IPAddresses":{"` + ip + `":{"Address":"` + ip + `","IPAMKey":` + key + `}}}`
}

// nat is what iptables-save prints with one rule in table nat.
func nat(rule string) string { return "*nat\n:X - [0:0]\n-A X -p tcp " + rule + "\nCOMMIT\n" }

// healthy is a node with a pod on the primary ENI, one on another ENI, one that has ended, and an
// IPv6 pod.
func healthy() View {
	return View{
		IPAMDLog:  "Starting L-IPAMD v1  ...\nThe API server does not answer yet, will retry\nServing RPC Handler version v1 on unix:/x\n",
		PodLogs:   []string{"kube-system_aws-node-x_u/aws-vpc-cni-init", "kube-system_aws-node-x_u/aws-node"},
		Processes: []string{"aws-vpc-cni", "aws-k8s-agent"},
		Links: []Link{
			{"lo", net.FlagLoopback}, {"ens5", up}, {"eni1", up}, {"docker0", down}, {"tun0", net.FlagPointToPoint | net.FlagMulticast},
		},
		ENIs: []byte(`{"0":{"ENIs":{
			"eni-1":{"IsPrimary":true,
				"AvailableIPv4Cidrs":{"10.0.0.5/32":` + address("10.0.0.5", "a") + `},
				"IPv6Cidrs":{"2001:db8::/80":` + address("2001:db8::5", "c") + `}},
			"eni-2":{"AvailableIPv4Cidrs":{"10.0.0.7/32":` + address("10.0.0.7", "b") + `,"10.0.0.8/32":` + address("10.0.0.8", "") + `}}}}}`),
		Rules: [2]string{
			"0:\tfrom all lookup local\n512:\tfrom all to 10.0.0.5 lookup main\n512:\tfrom all to 10.0.0.7 lookup main\n1536:\tfrom 10.0.0.7 lookup 2\n",
			"512:\tfrom all to 2001:db8::5 lookup main\n",
		},
		Routes: [2]string{
			"default via 10.0.0.1 dev eni9 table 2\ndefault via 10.0.0.1 dev ens5\n10.0.0.5 dev enia scope link\n10.0.0.7 dev enib scope link\n",
			"2001:db8::5 dev enic metric 1024 pref medium\n",
		},
		Filters: [2]string{`*filter
:FORWARD ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
-A FORWARD -m comment --comment "-j DROP" -j ACCEPT
-A FORWARD -m comment --comment -j -j ACCEPT
-A KUBE-FIREWALL -j DROP
COMMIT
`, ""},
		Checkpoint: []byte(`{"allocations":[{"containerID":"a","ipv4":"10.0.0.5"},{"containerID":"c","ipv6":"2001:db8::5"},
			{"containerID":"gone","ipv4":"10.0.0.9"}]}`),
		Sandboxes: map[string]string{"a": "10.0.0.5", "c": "2001:db8::5"},
		IPForward: "1\n", Allowances: map[string]uint64{"bw_in_allowance_exceeded": 5000},
		LinkFiles: map[string]string{"10-x.link": "[Link]\nMACAddressPolicy=none\n"},
	}
}

// TestNamed: only addresses of pods get a name.
func TestNamed(t *testing.T) {
	t.Parallel()
	blank := strings.NewReplacer(`"containerID":"a","ifName":"eth0"}`, `"containerID":"","ifName":""},"IPAMMetadata":{"k8sPodName":"web-0"}`)
	enis := []byte(blank.Replace(`{"0":{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{
		"10.0.0.5/32":` + address("10.0.0.5", "a") + `,"10.0.0.8/32":` + address("10.0.0.8", "") + `}}}}}`))
	if got := Compared(enis); got != nil {
		t.Errorf("without names %q is compared", got)
	}
	named, err := Named(enis)
	if got := Compared(named); err != nil || !slices.Equal(got, []string{"10.0.0.5"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCheck: each predicate finds what it is about, and nothing else does.
func TestCheck(t *testing.T) {
	t.Parallel()
	replace := func(text *string, old, with string) { *text = strings.ReplaceAll(*text, old, with) }
	for name, row := range map[string]struct {
		change func(before, now *View)
		want   string // severity and reasons
	}{
		"healthy":                        {func(_, _ *View) {}, ""},
		"the API server is away":         {func(_, n *View) { n.IPAMDLog += "Unable to reach API Server, will retry\n" }, "Fatal IPAMDNotReady"},
		"upstream's other text":          {func(_, n *View) { n.IPAMDLog += "x Failed to check API server connectivity: y\n" }, "Fatal IPAMDNotReady"},
		"four starts":                    {func(_, n *View) { n.IPAMDLog += strings.Repeat("Starting L-IPAMD v1  ...\n", 3) }, ""},
		"five starts":                    {func(_, n *View) { n.IPAMDLog += strings.Repeat("Starting L-IPAMD v1  ...\n", 4) }, "Warning IPAMDRepeatedlyRestart"},
		"an empty subnet":                {func(_, n *View) { n.IPAMDLog += "ec2: InsufficientFreeAddressesInSubnet: x\n" }, "Warning IPAMDNoIPs"},
		"no daemon":                      {func(b, n *View) { b.Processes, n.Processes = []string{"aws-vpc-cni"}, nil }, "Fatal IPAMDNotRunning"},
		"no daemon in one look":          {func(_, n *View) { n.Processes = nil }, ""},
		"no daemon, no pod":              {func(b, n *View) { b.Processes, n.Processes, n.PodLogs = nil, nil, []string{"x_aws-node-y_u/aws-node"} }, ""},
		"a link down":                    {func(b, n *View) { b.Links[2].Flags &^= net.FlagUp; n.Links[2].Flags &^= net.FlagUp }, "Fatal InterfaceNotUp"},
		"a link not running":             {func(b, n *View) { b.Links[2].Flags &^= net.FlagRunning; n.Links[2].Flags &^= net.FlagRunning }, "Fatal InterfaceNotRunning"},
		"a link down in one look":        {func(_, n *View) { n.Links[2].Flags = down }, ""},
		"a link that is new and down":    {func(b, n *View) { b.Links = b.Links[:2]; n.Links[2].Flags = down }, ""},
		"no rule to a pod":               {func(_, n *View) { replace(&n.Rules[0], "to 10.0.0.5 ", "to 10.0.0.55 ") }, "Warning MissingIPRules"},
		"no rule from a pod":             {func(_, n *View) { replace(&n.Rules[0], "from 10.0.0.7 ", "from 10.0.0.77 ") }, "Warning MissingIPRules"},
		"no IPv6 rule":                   {func(_, n *View) { n.Rules[1] = "" }, "Warning MissingIPRules"},
		"no route":                       {func(_, n *View) { replace(&n.Routes[0], "10.0.0.7 dev", "10.0.0.70 dev") }, "Warning MissingIPRoutes"},
		"a route of another form":        {func(_, n *View) { replace(&n.Routes[0], "enib scope link", "enib scope host") }, "Warning MissingIPRoutes"},
		"no IPv6 route":                  {func(_, n *View) { replace(&n.Routes[1], "metric 1024", "metric 256") }, "Warning MissingIPRoutes"},
		"no default route":               {func(_, n *View) { replace(&n.Routes[0], " table 2", " table 22") }, "Warning MissingDefaultRoutes"},
		"introspection is off":           {func(_, n *View) { n.ENIs, n.Rules, n.Routes = nil, [2]string{}, [2]string{} }, ""},
		"a document of another form":     {func(_, n *View) { n.ENIs = []byte("<html>") }, "Warning MissingIPRules"},
		"another address than allocated": {func(_, n *View) { n.Sandboxes["a"] = "10.0.0.6" }, "Warning IPAMDInconsistentState"},
		"a sandbox without an address":   {func(_, n *View) { n.Sandboxes["gone"] = "" }, "Warning IPAMDInconsistentState"},
		"a checkpoint of another form":   {func(_, n *View) { n.Checkpoint = []byte("[]") }, "Warning IPAMDInconsistentState"},
		"a rule that rejects": {func(_, n *View) {
			replace(&n.Filters[0], "-A KUBE", "-A FORWARD -j REJECT --reject-with icmp-port-unreachable\n-A KUBE")
		}, "Warning UnexpectedRejectRule"},
		"a rule that goes to drop, IPv6":     {func(_, n *View) { n.Filters[1] = "*raw\n:X - [0:0]\n-A X -g DROP\nCOMMIT\n" }, "Warning UnexpectedRejectRule"},
		"a rule that rejects in a known one": {func(_, n *View) { n.Filters[1] = "*filter\n:ALLOWED - [0:0]\n-A ALLOWED -j DROP\nCOMMIT\n" }, ""},
		"the kubelet's port is translated": {func(_, n *View) {
			n.Filters[0] += nat("-m tcp --dport 10250 -j DNAT --to-destination 10.0.0.5:80")
		}, "Warning PortConflict"},
		"another port is translated": {func(_, n *View) {
			n.Filters[0] += nat("-m tcp --dport 1025 -j DNAT --to-destination 10.0.0.5:10250")
		}, ""},
		"the kubelet's port among translated": {func(_, n *View) {
			n.Filters[0] += nat("-m multiport --dports 80,10250 -j DNAT --to-destination 10.0.0.5")
		}, "Warning PortConflict"},
		"no forwarding":                   {func(_, n *View) { n.IPForward = "0\n" }, "Warning NetworkSysctl"},
		"an allowance is exceeded":        {func(_, n *View) { n.Allowances = map[string]uint64{"bw_in_allowance_exceeded": 5051} }, "Warning bw_in_allowance_exceeded"},
		"an allowance is exceeded slowly": {func(_, n *View) { n.Allowances = map[string]uint64{"bw_in_allowance_exceeded": 5050} }, ""},
		"systemd changes MACs": {func(_, n *View) {
			n.LinkFiles = map[string]string{"99.link": "[Link]\nMACAddressPolicy = persistent\n"}
		}, "Warning MACAddressPolicyMisconfigured"},
		"kube-proxy misses an API": {func(_, n *View) {
			n.KubeProxyLog = "E1 \"Failed to watch *v1.EndpointSlice: the server could not find the requested resource\"\n"
		}, "Warning KubeProxyNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, now := healthy(), healthy()
			row.change(&before, &now)
			found := Agent{AllowedChains: []string{"ALLOWED"}}.Check(before, now)
			got := strings.Join(Reasons(found), " ")
			severity, reason, _ := strings.Cut(row.want, " ")
			if got != reason || slices.ContainsFunc(found, func(f Finding) bool { return f.Severity != severity || f.Detail == "" }) {
				t.Errorf("%v, want %q", found, row.want)
			}
		})
	}
}

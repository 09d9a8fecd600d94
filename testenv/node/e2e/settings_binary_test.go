package e2e_test

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// one is a node in its own lab, for the tests of single settings.
type one struct {
	*lab
	*node.Node
}

func (o one) enis() []fakeaws.ENI { return o.world.ENIsOf(o.InstanceID) }

func (o one) kernel() node.KernelState {
	o.t.Helper()
	s, err := o.KernelState()
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// primaryHas waits until the primary ENI is the only one and has these numbers of secondary IPs and
// prefixes.
func primaryHas(ips, prefixes int) func(one) {
	return func(o one) {
		testenv.Eventually(o.t, "the pool", func() bool {
			e := o.enis()
			return len(e) == 1 && len(e[0].SecondaryIPs) == ips && len(e[0].Prefixes) == prefixes
		})
		o.settled(o.Node)
		if e := o.enis(); len(e) != 1 || len(e[0].SecondaryIPs) != ips || len(e[0].Prefixes) != prefixes {
			o.t.Errorf("the pool moved on to %+v", e)
		}
	}
}

// iptables expects texts in the rules, or their absence if they begin with "!".
func iptables(texts ...string) func(one) {
	return func(o one) { o.shows(o.kernel().IPTables+o.kernel().NFT, texts...) }
}

func (o one) shows(where string, texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		want, not := strings.CutPrefix(text, "!")
		if strings.Contains(where, want) == not {
			o.t.Errorf("%q there: %v; in\n%s", want, not, where)
		}
	}
}

func (o one) read(path string) string {
	o.t.Helper()
	f, err := o.Open(path, os.O_RDONLY, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(b)
}

func (o one) refused(addr string) {
	o.t.Helper()
	if conn, err := o.Dial("tcp", addr, time.Second); err == nil { //realtime: nothing answers
		_ = conn.Close()
		o.t.Errorf("%s answers", addr)
	}
}

// TestSettings starts a daemon for each setting and checks the setting's effect.
func TestSettings(t *testing.T) {
	t.Parallel()
	type env = map[string]string
	rows := []struct {
		name   string
		env    env
		before func(l *lab, instance string)
		check  func(o one)
	}{
		{"prefixes", env{"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "2"}, nil, primaryHas(0, 2)},
		{"WARM_ENI_TARGET", env{"WARM_ENI_TARGET": "2"}, nil, func(o one) {
			testenv.Eventually(o.t, "two full ENIs", func() bool { e := o.enis(); return len(e) == 2 && len(e[0].SecondaryIPs)+len(e[1].SecondaryIPs) == 18 })
		}},
		{"WARM_IP_TARGET", env{"WARM_IP_TARGET": "3"}, nil, primaryHas(3, 0)},
		{"MINIMUM_IP_TARGET", env{"WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "5"}, nil, primaryHas(5, 0)},
		{"MAX_ENI", env{"WARM_ENI_TARGET": "3", "MAX_ENI": "1"}, nil, primaryHas(9, 0)},
		{"IP_COOLDOWN_PERIOD", env{"MAX_ENI": "1", "IP_COOLDOWN_PERIOD": "0"}, nil, func(o one) {
			pods := o.mustAdd(o.Node, "p", 9, 4)
			o.del(o.Node, pods[:1], 1)
			if again := o.mustAdd(o.Node, "again", 1, 1); again[0].IP != pods[0].IP {
				o.t.Errorf("got %v, want %v at once", again[0].IP, pods[0].IP)
			}
		}},
		{"tags", env{"CLUSTER_NAME": "blue", "ADDITIONAL_ENI_TAGS": `{"team":"shop"}`, "WARM_ENI_TARGET": "2"}, nil, func(o one) {
			testenv.Eventually(o.t, "tags on both ENIs", func() bool {
				tagged := 0
				for _, e := range o.enis() {
					if e.Tags["cluster.k8s.amazonaws.com/name"] == "blue" && e.Tags["team"] == "shop" && e.Tags["node.k8s.amazonaws.com/instance_id"] == o.InstanceID {
						tagged++
					}
				}
				return tagged == 2
			})
		}},
		{"MANAGE_UNTAGGED_ENI", env{"MANAGE_UNTAGGED_ENI": "false"}, attachForeign, func(o one) {
			var s introspect.Summary
			o.get(o.Node, introspect.PathSummary, &s)
			if c := s.Cards[0]; *c.OtherENIs != 1 || *c.ENIs != 1 || *c.AddressLimit != 18 {
				o.t.Errorf("%d others, %d managed, limit %d; want 1, 1, 18", *c.OtherENIs, c.ENIs, *c.AddressLimit)
			}
		}},
		{"an untagged ENI is managed", nil, attachForeign, func(o one) {
			var s introspect.Summary
			o.get(o.Node, introspect.PathSummary, &s)
			if c := s.Cards[0]; *c.OtherENIs != 0 || *c.ENIs != 2 {
				o.t.Errorf("%d others, %d managed; want 0, 2", *c.OtherENIs, *c.ENIs)
			}
		}},
		{"subnet discovery", env{"WARM_ENI_TARGET": "2"}, tagSecondSubnet, func(o one) { o.secondENIIn("10.1.64.0/18") }},
		{"ENABLE_SUBNET_DISCOVERY off", env{"WARM_ENI_TARGET": "2", "ENABLE_SUBNET_DISCOVERY": "false"}, tagSecondSubnet, func(o one) { o.secondENIIn("10.1.0.0/20") }},
		{"SNAT", nil, nil, iptables("AWS-SNAT-CHAIN", "--random-fully", "0x80")},
		{"AWS_VPC_K8S_CNI_EXTERNALSNAT", env{"AWS_VPC_K8S_CNI_EXTERNALSNAT": "true"}, nil, iptables("!-j SNAT")},
		{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", env{"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.99.0.0/16"}, nil, iptables("10.99.0.0/16")},
		{"AWS_VPC_K8S_CNI_RANDOMIZESNAT", env{"AWS_VPC_K8S_CNI_RANDOMIZESNAT": "none"}, nil, iptables("-j SNAT", "!--random")},
		{"AWS_VPC_K8S_CNI_CONNMARK", env{"AWS_VPC_K8S_CNI_CONNMARK": "0x40"}, nil, iptables("0x40", "!0x80/0x80")},
		{"AWS_VPC_K8S_CNI_VETHPREFIX", env{"AWS_VPC_K8S_CNI_VETHPREFIX": "pod"}, nil, iptables("pod+", "!eni+")},
		{"AWS_VPC_CNI_NODE_PORT_SUPPORT", env{"AWS_VPC_CNI_NODE_PORT_SUPPORT": "false", "AWS_VPC_K8S_CNI_EXTERNALSNAT": "true"}, nil, func(o one) {
			o.shows(o.kernel().Rules, "!1024:")
		}},
		{"AWS_EXTERNAL_SERVICE_CIDRS", env{"AWS_EXTERNAL_SERVICE_CIDRS": "203.0.113.0/24"}, nil, func(o one) {
			o.shows(o.kernel().Rules, "203.0.113.0/24")
		}},
		{"AWS_VPC_ENI_MTU", env{"AWS_VPC_ENI_MTU": "1500", "WARM_ENI_TARGET": "2"}, nil, func(o one) {
			testenv.Eventually(o.t, "a second link of MTU 1500", func() bool { return strings.Contains(o.kernel().Links, "mtu 1500") })
		}},
		{"AWS_VPC_K8S_CNI_BACKING_STORE", env{"AWS_VPC_K8S_CNI_BACKING_STORE": "/run/aws-node/elsewhere.json"}, nil, func(o one) {
			pods := o.mustAdd(o.Node, "p", 1, 1)
			o.shows(o.read("/run/aws-node/elsewhere.json"), pods[0].IP.String())
		}},
		{"AWS_EC2_ENDPOINT alone", env{"AWS_ENDPOINT_URL_EC2": ""}, nil, func(o one) { o.mustAdd(o.Node, "p", 1, 1) }},
		{"DISABLE_METRICS", env{"DISABLE_METRICS": "true"}, nil, func(o one) { o.dial(o.Node, "tcp", "127.0.0.1:61679").Close(); o.refused("127.0.0.1:61678") }},
		{"DISABLE_INTROSPECTION", env{"DISABLE_INTROSPECTION": "true"}, nil, func(o one) { o.dial(o.Node, "tcp", "127.0.0.1:61678").Close(); o.refused("127.0.0.1:61679") }},
		{"INTROSPECTION_BIND_ADDRESS", env{"INTROSPECTION_BIND_ADDRESS": "unix:/run/aws-node/in.sock"}, nil, func(o one) { o.dial(o.Node, "unix", "/run/aws-node/in.sock").Close() }},
		{"AWS_VPC_K8S_CNI_LOG_FILE", env{"AWS_VPC_K8S_CNI_LOG_FILE": "/run/aws-node/other.log"}, nil, func(o one) {
			o.shows(o.read("/run/aws-node/other.log"), `"msg":"Starting L-IPAMD`)
			testenv.Eventually(o.t, "a line of level debug", func() bool { return strings.Contains(o.read("/run/aws-node/other.log"), `"level":"debug"`) })
		}},
		{"AWS_VPC_K8S_CNI_LOGLEVEL", env{"AWS_VPC_K8S_CNI_LOGLEVEL": "error"}, nil, func(o one) { o.shows(o.Logs()["ipamd.log"], `!"level":"info"`) }},
		{"CNI_ADD_WAIT", env{"CNI_ADD_WAIT": "0s"}, func(l *lab, _ string) { l.world.SetLatency("AssignPrivateIpAddresses", time.Minute) }, func(o one) {
			_, err := o.AddPod(node.PodSpec{Namespace: "default", Name: "p"})
			var failure *node.PluginError
			if !errors.As(err, &failure) {
				o.t.Fatalf("ADD: %v", err)
			}
			// By the daemon's clock, since a busy machine may delay the plugin.
			if _, waited, ok := strings.Cut(failure.Details, "(waited "); ok {
				waited, _, _ = strings.Cut(waited, ")")
				if d, err := time.ParseDuration(waited); err != nil || d > 5*time.Second {
					o.t.Errorf("the ADD waited: %s", failure.Details)
				}
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
			if err != nil {
				t.Fatal(err)
			}
			if row.before != nil {
				row.before(l, i.ID)
			}
			n := l.node(i.ID)
			l.start(n, row.env)
			row.check(one{l, n})
		})
	}
}

func attachForeign(l *lab, instance string) {
	l.t.Helper()
	e, err := l.world.CreateENI(fakeaws.ENISpec{SubnetID: l.subnet.ID, IPs: 2})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: instance, Device: 1}); err != nil {
		l.t.Fatal(err)
	}
}

func tagSecondSubnet(l *lab, _ string) {
	l.t.Helper()
	_, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: l.subnet.VPCID, CIDR: netip.MustParsePrefix("10.1.64.0/18"), Tags: map[string]string{"kubernetes.io/role/cni": "1"}})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (o one) secondENIIn(cidr string) {
	o.t.Helper()
	testenv.Eventually(o.t, "a second ENI", func() bool { return len(o.enis()) == 2 })
	for _, e := range o.enis() {
		if !e.Primary() && !netip.MustParsePrefix(cidr).Contains(e.PrimaryIP) {
			o.t.Errorf("second ENI has %v, want one of %s", e.PrimaryIP, cidr)
		}
	}
}

// TestMetrics_AreUpstreams compares the metric names that a live daemon serves with those recorded
// from upstream in the same situation: three pods.
func TestMetrics_AreUpstreams(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	l.mustAdd(n, "p", 3, 1)
	want, err := os.ReadFile("testdata/original-metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	conn := l.dial(n, "tcp", "127.0.0.1:61678")
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		served[name] = true
	}
	for name := range strings.Lines(string(want)) {
		if name = strings.TrimSpace(name); !served[name] {
			t.Errorf("%s is not served", name)
		}
	}
	for _, value := range []string{"awscni_assigned_ip_addresses 3\n", "awscni_eni_max 3\n", "awscni_ip_max 27\n", `awscni_add_ip_req_count 3`} {
		if !strings.Contains(string(body), value) {
			t.Errorf("does not serve %q", value)
		}
	}
}

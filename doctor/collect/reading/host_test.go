package reading

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/config"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

func TestSysctls(t *testing.T) {
	t.Parallel()
	got := Sysctls("kernel.hostname = a\nnet.ipv4.conf.all.rp_filter = 0\nnet.ipv4.conf.eth0/1.rp_filter = 2\nnet.ipv4.conf.eni0d7763386da.rp_filter = 1\n" +
		"net.ipv4.conf.eth0.arp_filter = 0\nnet.ipv6.conf.eth0.accept_ra = 2\nnet.ipv4.ip_forward = 1\nnet.ipv4.tcp_rmem = 4096\t131072\nbroken\n")
	want := map[string]string{
		"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.eth0/1.rp_filter": "2", "net.ipv6.conf.eth0.accept_ra": "2", "net.ipv4.ip_forward": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNeighbourTable(t *testing.T) {
	t.Parallel()
	const stat = `entries  allocs   destroys hash_grows lookups  hits     res_failed rcv_probes_mcast table_fulls
00000401 0000001b 00000011 00000000 000001 000001 000000 0000000 0000000a
00000401 0000001c 00000012 00000000 000001 000001 000000 0000000 00000001
`
	if diff := cmp.Diff(evidence.NeighbourTable{Entries: new(1025), Full: new(11)}, NeighbourTable(stat)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := NeighbourTable("entries\nx\n"); got != (evidence.NeighbourTable{}) {
		t.Errorf("%+v", got)
	}
}

func TestConntrack(t *testing.T) {
	t.Parallel()
	got := Conntrack("net.netfilter.nf_conntrack_count = 1234\nnet.netfilter.nf_conntrack_max = 262144\n",
		"Interface eth0\nNIC statistics:\n     tx_timeout: 0\n     bw_in_allowance_exceeded: 1\n     pps_allowance_exceeded: 2\n     conntrack_allowance_available: 9\n\n"+
			"Interface eth1\nNIC statistics:\n     bw_in_allowance_exceeded: 18446744073709551615\n     pps_allowance_exceeded: 5\nInterface lo\nno stats available\n")
	want := evidence.Conntrack{Count: new(1234), Max: new(262144), Allowance: evidence.Allowance{PPS: new(7), BWIn: new(1<<31 - 1)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPackages(t *testing.T) {
	t.Parallel()
	services := "UNIT LOAD ACTIVE SUB DESCRIPTION\n  kubelet.service   loaded active running Kubernetes Kubelet\n● nm-cloud-setup.service loaded failed failed x\n  sshd.service loaded active running x\n"
	running := services + "  systemd-networkd.service loaded active running Network Configuration\n"
	conf := map[string]string{"/etc/systemd/networkd.conf.d/80-release.conf": "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=yes\n"}
	link := map[string]string{"/etc/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=none\n"}
	for name, c := range map[string]struct {
		list, services string
		files          map[string]string
		want           evidence.Packages
	}{
		"rpm": {"systemd-252.23-1.amzn2023.x86_64\nsystemd-libs-252.23-1.amzn2023.x86_64\namazon-ec2-net-utils-2.4.1-1.amzn2023.noarch\ndocker-cli-1-1.x\n", services, link, evidence.Packages{
			Systemd: new(252), Packages: []string{"amazon-ec2-net-utils"}, Units: map[string]string{"kubelet.service": "active", "nm-cloud-setup.service": "failed"},
			LinkPolicy: "none", ForeignRules: new(false), ForeignRoutes: new(false),
		}},
		"dpkg": {"Desired=Unknown/Install\n||/ Name Version Architecture Description\nii  systemd 249.11-0ubuntu3 amd64 x\nii  ufw:all 0.36 all x\nrc  firewalld 1.0 all x\n", running, conf, evidence.Packages{
			Systemd: new(249), Packages: []string{"ufw"}, Units: map[string]string{"kubelet.service": "active", "nm-cloud-setup.service": "failed", "systemd-networkd.service": "active"},
			ForeignRules: new(true), ForeignRoutes: new(false),
		}},
		"nothing": {"", "", nil, evidence.Packages{Packages: []string{}, Units: map[string]string{}}},
		"garbage": {"-\n--\nsystemd-x-y\nii\n", running, nil, evidence.Packages{Packages: []string{}, Units: map[string]string{"kubelet.service": "active", "nm-cloud-setup.service": "failed", "systemd-networkd.service": "active"}}},
	} {
		if diff := cmp.Diff(c.want, Packages(c.list, c.services, c.files)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestListeners(t *testing.T) {
	t.Parallel()
	got, err := Listeners(`Active Internet connections (servers and established)
Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name
tcp        0      0 127.0.0.1:61679         0.0.0.0:*               LISTEN      3412/./aws-k8s-age
tcp        0      0 10.0.0.10:22            10.0.0.2:51002          ESTABLISHED 900/sshd: root
tcp        0      0 0.0.0.0:22              0.0.0.0:*               LISTEN      899/sshd: /usr/sbin
tcp        0      0 127.0.0.1:10248         0.0.0.0:*               LISTEN      -
tcp6       0      0 :::61678                :::*                    LISTEN      3412/./aws-k8s-agent
tcp        0      0 nonsense                0.0.0.0:*               LISTEN      1/x
`)
	want := []evidence.Listener{
		{Address: "0.0.0.0:22", Process: "sshd"}, {Address: "127.0.0.1:10248"}, {Address: "127.0.0.1:61679", Process: "aws-k8s-agent"}, {Address: "[::]:61678", Process: "aws-k8s-agent"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Listeners("netstat: command not found\n"); err == nil {
		t.Error("an error of the program is read as no sockets")
	}
}

func TestMaxPods(t *testing.T) {
	t.Parallel()
	if got, err := MaxPods([]byte(`{"maxPods":29}`), []byte(`{"kind":"x"}`), []byte(`{"maxPods":110}`)); err != nil || *got != 110 {
		t.Errorf("%v, %v; want 110", got, err)
	}
	if got, err := MaxPods([]byte("kind: KubeletConfiguration\nmaxPods: 58 # figure\nother: 1\n"), []byte("nested:\n  maxPods: 5\n"), []byte("maxPods: 1e9\n"), nil); err != nil || *got != 58 {
		t.Errorf("%v, %v; want 58", got, err)
	}
	if got, err := MaxPods([]byte(`{}`)); err != nil || got != nil {
		t.Errorf("%v, %v; want nothing", got, err)
	}
	if _, err := MaxPods([]byte(`{"maxPods":"x"}`)); err == nil {
		t.Error("a text is read as a number")
	}
}

func TestContainerEnv(t *testing.T) {
	t.Parallel()
	got, err := ContainerEnv(strings.NewReader(`{"ID":"w","Labels":{"io.kubernetes.container.name":"aws-eks-nodeagent"},"CreatedAt":"2026-11-23T09:00:00.5Z","Spec":{"process":{"env":["PATH=/bin","EMPTY=","broken"]}}}
{"ID":"x","Labels":{"io.kubernetes.container.name":"aws-eks-nodeagent"},"CreatedAt":"2026-11-23T08:00:00Z","Spec":{"process":{"env":["OLD=1"]}}}
{"ID":"y","Labels":{},"Spec":{"process":{"env":["WARM_ENI_TARGET=1","AWS_SECRET_ACCESS_KEY=abc","PROXY=http://a:b@host"]}}}`))
	want := map[string]map[string]string{
		"aws-eks-nodeagent": {"PATH": "/bin", "EMPTY": ""},
		"aws-node":          {"WARM_ENI_TARGET": "1", "AWS_SECRET_ACCESS_KEY": "<secret>", "PROXY": "http://<secret>@host"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "{", `{"ID":`, "[]", "x"} {
		if _, err := ContainerEnv(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestSecretSettings: of the known settings, exactly those marked secret are hidden.
func TestSecretSettings(t *testing.T) {
	t.Parallel()
	for _, row := range config.Table() {
		if got := scrub.Setting(row.Name, "value") != "value"; got != row.Secret {
			t.Errorf("%s: hidden %v, secret %v", row.Name, got, row.Secret)
		}
	}
	for name, hidden := range map[string]bool{"DB_PASSWORD": true, "GITHUB_TOKEN": true, "API_KEY": true, "ssh_private_key": true, "KEYBOARD": false, "TOKEN_FILE": false, "TOKENIZER": false} {
		if got := scrub.Setting(name, "value") != "value"; got != hidden {
			t.Errorf("%s: hidden %v, want %v", name, got, hidden)
		}
	}
}

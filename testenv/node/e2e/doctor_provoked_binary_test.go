package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// patient is a node with a fault.
type patient struct {
	*lab
	n   *node.Node
	env map[string]string
}

// ailment is a fault and how to cause it.
type ailment struct {
	instance string // type; default: t3.nano, which has two addresses for pods
	env      map[string]string
	options  fakeaws.Options
	cold     bool             // no daemon runs yet: begins starts it
	fades    bool             // another ADD may have to fail before the doctor sees it
	begins   func(x *patient) // causes the fault
	ends     func(x *patient) // removes the fault, after which the doctor finds nothing; nil if only a new node is healthy
	printed  bool             // the command of the first fix, as it is printed, removes the fault
	stopped  bool             // begins stops the daemon, which would repair it
}

// ailments are the faults of TestDoctor_Provoked, one of each area. The nightly run has more.
var ailments = map[string]ailment{
	"ip/subnet-exhausted": {cold: true, begins: func(x *patient) {
		if _, err := x.world.Occupy(x.subnet.ID, 1<<20); err != nil {
			x.t.Fatal(err)
		}
		fails(x)
	}, ends: vacated},
	"cap/max-pods": {begins: func(x *patient) {
		x.process("kubelet", "--max-pods=17")
		x.mustAdd(2)
		x.fails()
	}},
	"config/invalid":       {cold: true, env: map[string]string{"AWS_VPC_ENI_MTU": "big"}, begins: dies, ends: restarted("AWS_VPC_ENI_MTU", "9001")},
	"eni/provisioning-off": {env: map[string]string{"DISABLE_NETWORK_RESOURCE_PROVISIONING": "true"}, begins: func(x *patient) { x.fails() }, ends: restarted("DISABLE_NETWORK_RESOURCE_PROVISIONING", "false")},
	"aws/iam": {cold: true, begins: func(x *patient) {
		x.allowOnly("DescribeNetworkInterfaces", "DescribeSubnets", "DescribeInstances", "DescribeInstanceTypes")
		fails(x)
	}, ends: func(x *patient) {
		x.world.AllowAll()
		x.works()
		x.free()
	}},
	"net/forward-drop":     {begins: sh("iptables -P FORWARD DROP"), printed: true},
	"net/forward-drop@off": {begins: sh("sysctl -w net.ipv4.ip_forward=0"), printed: true},
	"obs/host-has-pod-address": {begins: func(x *patient) { // as NetworkManager and ec2-net-utils do
		x.sh(x.n, "ip address add "+x.mustAdd(1)[0].IP.String()+"/32 dev $(ip route show default | sed 's/.* dev \\([^ ]*\\).*/\\1/')")
	}, printed: true},
	"np/agent-unreachable": {env: map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "standard"}, begins: func(x *patient) { x.fails() }},
	"boot/cni-config": {begins: func(x *patient) {
		x.sh(x.n, "cp -a /etc/alternatives /run/; mount -t tmpfs none /etc; mv /run/alternatives /etc/; mkdir -p /etc/cni/net.d; cat > /etc/cni/net.d/10-aws.conflist <<.\n"+conflist("aws-cni", "portmap")+"\n.\ncat > /etc/cni/net.d/05-other.conflist <<.\n"+conflist("bridge")+"\n.\n")
	}, ends: sh("rm /etc/cni/net.d/05-other.conflist")},
}

// TestDoctor_Provoked causes each fault on a real node: the doctor finds it and nothing else,
// and finds nothing after the fault is removed.
func TestDoctor_Provoked(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, ailments, func(t *testing.T, a ailment) {
		x := a.admit(t)
		if !a.cold {
			x.up()
		}
		a.begins(x)
		code, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestDoctor_Provoked/"), "@")
		report := x.diagnose()
		for tries := 0; a.fades && tries < 5 && !slices.ContainsFunc(report.Findings, func(f document.Finding) bool { return f.Code == code }); tries++ {
			x.fails()
			report = x.diagnose()
		}
		if a.stopped {
			report.Findings = slices.DeleteFunc(report.Findings, func(f document.Finding) bool { return f.Code == "boot/ipamd-down" })
		}
		expect(x.t, report, code)
		switch at := slices.IndexFunc(report.Findings, func(f document.Finding) bool { return f.Code == code }); {
		case a.printed && at >= 0:
			x.sh(x.n, report.Findings[at].Fix[0].Command)
		case a.ends == nil:
			return
		default:
			a.ends(x)
		}
		if a.stopped {
			x.up()
		}
		if x.n.DaemonPID() != 0 {
			x.settled(x.n)
		}
		x.shows("")
	})
}

func (a ailment) admit(t *testing.T) *patient {
	t.Helper()
	x := &patient{lab: newLab(t, a.options), env: map[string]string{"CNI_ADD_WAIT": "1s"}}
	for k, v := range a.env {
		x.env[k] = v
	}
	if a.instance == "" {
		a.instance = "t3.nano"
	}
	spec := fakeaws.InstanceSpec{Type: a.instance, SubnetID: x.subnet.ID}
	if x.env["ENABLE_IPv6"] == "true" {
		v := x.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
		subnet := fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64")}
		var err error
		if x.subnet, err = x.world.AddSubnet(subnet); err != nil {
			t.Fatal(err)
		}
		spec.SubnetID, spec.IPv6 = x.subnet.ID, true
	}
	i, err := x.world.AddInstance(spec)
	if err != nil {
		t.Fatal(err)
	}
	x.n = x.node(i.ID)
	return x
}

// mustAdd adds pods, each once an address is free: ADDs wait only a second, so that
// those that must fail do so soon.
func (x *patient) mustAdd(count int) (pods []*node.Pod) {
	x.t.Helper()
	for i := range count {
		x.free()
		pods = append(pods, x.lab.mustAdd(x.n, fmt.Sprintf("p%d", i), 1, 1)...)
	}
	return pods
}

// free waits until the pool has a free address.
func (x *patient) free() {
	x.t.Helper()
	testenv.Eventually(x.t, "a free address", func() bool {
		var s introspect.Summary
		x.get(x.n, introspect.PathSummary, &s)
		return len(s.Cards) > 0 && s.Cards[0].Free > 0
	})
}

// fails adds a pod, which must get no network.
func (x *patient) fails() {
	x.t.Helper()
	if p, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: "fails"}); err == nil {
		x.t.Fatalf("a pod was added: %v", p.IP)
	}
}

// works waits until a pod gets its network.
func (x *patient) works() {
	x.t.Helper()
	testenv.Eventually(x.t, "a pod that starts", func() bool {
		_, err := x.n.AddPod(node.PodSpec{Namespace: "default", Name: "works"})
		return err == nil
	})
}

// dies starts the daemon, which must exit with an error.
func (x *patient) dies() {
	x.t.Helper()
	if err := x.n.StartDaemon(x.env); err != nil {
		x.t.Fatal(err)
	}
	if code := x.ended(x.n); code == 0 {
		x.t.Fatal("the daemon ended with success")
	}
}

// up restarts the daemon with other settings.
func (x *patient) up(env ...string) {
	x.t.Helper()
	if x.n.DaemonPID() != 0 {
		x.kill(x.n, syscall.SIGTERM)
	}
	for i := 0; i < len(env); i += 2 {
		x.env[env[i]] = env[i+1]
	}
	x.start(x.n, x.env)
}

// refuse makes EC2 answer the given actions with an error.
func (x *patient) refuse(code string, actions ...string) {
	x.t.Helper()
	for _, a := range actions {
		x.breakEC2(fakeaws.Rule{Action: a, Fault: fakeaws.Fault{Code: code, Message: "no"}})
	}
}

// shows runs the doctor on the node and expects exactly one root cause above info, which is at
// least probable. An empty code means none.
func (x *patient) shows(code string) {
	x.t.Helper()
	expect(x.t, x.diagnose(), code)
}

// diagnose runs the doctor on the node and returns its report.
func (x *patient) diagnose() document.DoctorReport {
	x.t.Helper()
	out, err := x.n.Exec(agent.Cmd{
		Argv: []string{filepath.Join(x.absBinaries(), "cnictl"), "local", "doctor", "-o", "json", "--exit-zero", "--interval", "2s", "--node-timeout", testenv.Left(x.t).String()},
		Env:  []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + x.n.Dir},
	})
	if err != nil || out.Code != 0 {
		x.t.Fatalf("cnictl local doctor: %v, exit %d\n%s", err, out.Code, out.Stderr)
	}
	return reportOf(x.t, out.Stdout)
}

func reportOf(t *testing.T, text []byte) (r document.DoctorReport) {
	t.Helper()
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// expect checks the root causes in a report, see shows.
func expect(t *testing.T, r document.DoctorReport, code string) {
	t.Helper()
	found := false
	for _, f := range r.Findings {
		switch {
		case f.Code == code:
			found = found || f.Confidence != catalogue.Suspected.String()
		case code == "" && f.Code == "ip/warm-pool-lag": // a pool that is growing again between the readings
		case node.OfMachine(f.Code):
		case f.Severity != catalogue.Info.String():
			t.Errorf("found: %s", f.Code)
		}
	}
	if code != "" && !found {
		t.Errorf("not found: %s", code)
	}
	if !t.Failed() {
		return
	}
	for _, f := range append(r.Findings, r.Explained...) {
		t.Logf("%s %s %s, explained by %v: %s", f.Code, f.Severity, f.Confidence, f.Causes, f.Summary)
		for _, e := range f.Evidence {
			t.Logf("    %v %s %s: %s", e.Holds, e.Source, e.Path, e.Value)
		}
		for _, m := range f.Missing {
			t.Logf("    missing %s %s: %s", m.Source, m.WouldDecide, m.Reason)
		}
	}
	t.Logf("undecided: %v", r.Undecided)
}

// Functions that remove faults.
func fixed(x *patient) { x.endFaults(); x.works() }
func vacated(x *patient) {
	if err := x.world.Vacate(x.subnet.ID); err != nil {
		x.t.Fatal(err)
	}
	x.works()
}
func restarted(env ...string) func(*patient) {
	return func(x *patient) { x.up(env...); x.works() }
}

// Functions that cause faults.
func fails(x *patient) { x.up(); x.fails() }
func dies(x *patient)  { x.dies() }
func refused(code string, actions ...string) func(*patient) {
	return func(x *patient) { x.refuse(code, actions...); x.up(); x.fails() }
}
func sh(script string) func(*patient) { return func(x *patient) { x.sh(x.n, script) } }

var creating = []string{"AssignPrivateIpAddresses", "CreateNetworkInterface"}

// newType is a world with an instance type that neither the daemon's table nor EC2
// describes.
var newType = fakeaws.Options{
	Types:     []limits.Instance{{Type: "x9.large", MaxENIs: 2, IPv4PerENI: 2, IPv6PerENI: 2, Hypervisor: "nitro", Cards: []limits.Card{{MaxENIs: 2}}}},
	HideTypes: []string{"x9.large"},
}

// attach attaches an interface that the daemon did not create.
func (x *patient) attach(tags map[string]string) {
	x.t.Helper()
	e, err := x.world.CreateENI(fakeaws.ENISpec{SubnetID: x.subnet.ID, Tags: tags})
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: x.n.InstanceID, Device: 1}); err != nil {
		x.t.Fatal(err)
	}
}

// process starts a process that the process list shows under the given name.
func (x *patient) process(name string, flags ...string) {
	x.t.Helper()
	x.background(append([]string{"/bin/bash", "-c", "exec -a /none/" + name + ` /bin/sh -c "sleep 600; :" "$@"`, name}, flags...)...)
}

func (x *patient) background(argv ...string) {
	x.t.Helper()
	out, err := os.Create(filepath.Join(x.n.Dir, "log", "background.out"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer out.Close()
	if _, err := x.n.Background(agent.Cmd{Argv: argv}, out, out); err != nil {
		x.t.Fatal(err)
	}
}

// conflist returns a CNI configuration list with these plugins.
func conflist(plugins ...string) string {
	return `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "` + strings.Join(plugins, `"}, {"type": "`) + `"}]}`
}

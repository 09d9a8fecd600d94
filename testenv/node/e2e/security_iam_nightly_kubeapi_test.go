//go:build nightly

package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// untabled is an instance type that the daemon's table lacks.
var untabled = limits.Instance{
	Type: "m99.medium", MaxENIs: 3, IPv4PerENI: 6, IPv6PerENI: 6, Cards: []limits.Card{{MaxENIs: 3}}, Hypervisor: "nitro",
}

// permissionRow is a node's behaviour without one permission.
type permissionRow struct {
	scene    func(*testing.T) (*cluster, fakeaws.InstanceSpec) // default: an IPv4 cluster
	instance string                                            // default t3.medium: five addresses for pods on each of three ENIs
	env      map[string]string                                 // settings
	fatal    bool                                              // the daemon cannot start
	dry      bool                                              // pods fail
	later    bool                                              // the daemon retries only for the next ENI or after ten minutes
	once     bool                                              // the daemon never retries: it uses the ENI or address as it is
	before   func(m *member)                                   // sets up the state before the daemon's start
	provoke  func(m *member)                                   // makes the daemon call the action; default: pods
	fixed    func(m *member) bool

	policy, action string // set by everyAction
}

// TestIAM_EachActionIsNeeded removes each action of deploy/iam in turn. The daemon keeps
// running or exits with the reason, names the missing permission, does not retry in a tight
// loop, and recovers on its own once it is granted. So every action is needed, and each lab
// checks that no others are.
func TestIAM_EachActionIsNeeded(t *testing.T) {
	t.Parallel()
	rows := map[string]permissionRow{
		"ec2:AssignPrivateIpAddresses":        {dry: true, env: map[string]string{"MAX_ENI": "1", "WARM_IP_TARGET": "1"}},
		"ec2:CreateNetworkInterface":          {dry: true},
		"ec2:CreateTags":                      {dry: true},
		"ec2:AttachNetworkInterface":          {dry: true},
		"ec2:ModifyNetworkInterfaceAttribute": {fixed: (*member).endsWithInstance},
		"ec2:DescribeNetworkInterfaces":       {fatal: true},
		"ec2:DescribeInstanceTypes":           {fatal: true, instance: untabled.Type},
		"ec2:DescribeSubnets":                 {fixed: (*member).grown, later: true},
		"ec2:UnassignPrivateIpAddresses":      {env: small, provoke: (*member).emptied, fixed: (*member).shrunk},
		"ec2:DetachNetworkInterface":          {env: small, provoke: (*member).emptied, fixed: (*member).shrunk},
		"ec2:DeleteNetworkInterface":          {env: small, provoke: (*member).emptied, fixed: (*member).shrunk},
	}
	everyAction(t, "aws-node-ipv4", rows)
}

// small lets a pool shrink again.
var small = map[string]string{"IP_COOLDOWN_PERIOD": "1", "WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1"}

// everyAction runs the row of each action of a policy; every action must have a row.
func everyAction(t *testing.T, policy string, rows map[string]permissionRow) {
	t.Helper()
	document, err := deploy.IAM(policy)
	if err != nil {
		t.Fatal(err)
	}
	granted, err := fakeaws.PolicyActions(document)
	if err != nil {
		t.Fatal(err)
	}
	if have := slices.Sorted(maps.Keys(rows)); !slices.Equal(have, granted) {
		t.Fatalf("%s allows\n%q\nand there are tests of\n%q", policy, granted, have)
	}
	for action, row := range rows {
		row.policy, row.action = policy, action
		rows[action] = row
	}
	rowsAtOnce(t, rows, func(t *testing.T, row permissionRow) { row.check(t) })
}

func (row permissionRow) check(t *testing.T) {
	policy, action := row.policy, row.action
	if row.scene == nil {
		row.scene = ipv4Scene
	}
	c, spec := row.scene(t)
	c.refusing = true
	spec.Type = cmp.Or(row.instance, "t3.medium")
	m := c.join(spec)
	m.roleWithout(policy, action)
	env := map[string]string{"CNI_ADD_WAIT": "2s"}
	if spec.IPv6 {
		maps.Copy(env, ipv6Env)
	}
	maps.Copy(env, row.env)
	if row.before != nil {
		row.before(m)
	}
	if row.fatal {
		m.endsFor(action, env)
		m.logs(action)
		m.hasEvent(action)
		c.grant(m.InstanceID, policy)
		m.start(env)
		m.succeeded(action)
		return
	}
	m.start(env)
	pid := m.DaemonPID()
	switch {
	case row.dry:
		m.runsDry(action)
	case row.provoke != nil:
		row.provoke(m)
	default:
		for range 6 { // more than the primary ENI has addresses for
			m.mustAddMore()
		}
	}
	c.within(shrinkTime, "EC2 refuses "+action, func() bool { return slices.Contains(c.world.ActionsDenied(m.InstanceID), action) })
	m.logs(action)
	m.hasEvent(action)
	m.quiet(action)
	c.grant(m.InstanceID, policy)
	if row.dry {
		c.within(shrinkTime, "pods get addresses again", func() bool { return m.addMore().Success })
	}
	if row.fixed != nil {
		c.within(shrinkTime, "the pool is as it should be", func() bool { return row.fixed(m) })
	}
	if m.DaemonPID() != pid {
		t.Error("another daemon runs")
	}
	if row.later {
		c.kill(m.Node, syscall.SIGTERM)
		m.start(env)
	}
	if !row.once {
		c.within(shrinkTime, action+" succeeds", func() bool { return m.allowed(action) })
	}
	if denied := c.world.ActionsDenied(m.InstanceID); !slices.Equal(denied, []string{action}) {
		t.Errorf("refused were %v, want %s alone", denied, action)
	}
	c.kill(m.Node, syscall.SIGTERM)
}

func ipv4Scene(t *testing.T) (*cluster, fakeaws.InstanceSpec) {
	return newCluster(t, fakeaws.Options{Types: []limits.Instance{untabled}}), fakeaws.InstanceSpec{}
}

// roleWithout gives the member's role a policy without one of its actions.
func (m *member) roleWithout(policy, action string) {
	m.c.t.Helper()
	document, err := deploy.IAM(policy)
	if err != nil {
		m.c.t.Fatal(err)
	}
	var p map[string]any
	if err := json.Unmarshal(document, &p); err != nil {
		m.c.t.Fatal(err)
	}
	deny := map[string]any{"Effect": "Deny", "Action": []string{action}, "Resource": []string{"*"}}
	p["Statement"] = append(p["Statement"].([]any), deny)
	less, err := json.Marshal(p)
	if err == nil {
		err = m.c.world.SetPolicy(m.InstanceID, string(less))
	}
	if err != nil {
		m.c.t.Fatal(err)
	}
}

// runsDry adds pods until one fails; its error must say what is missing.
func (m *member) runsDry(action string) {
	m.c.t.Helper()
	var failed *cniwire.AddReply
	for i := 0; failed == nil && i < 20; i++ {
		if r := m.addMore(); !r.Success {
			failed = r
		}
	}
	if failed == nil {
		m.c.t.Fatalf("20 pods got addresses without %s", action)
	}
	if failed.Cause != string(cause.EC2Unauthorized) || !strings.Contains(failed.Detail, action) {
		m.c.t.Errorf("an ADD failed with %s: %s", failed.Cause, failed.Detail)
	}
}

func (m *member) mustAddMore() {
	m.c.t.Helper()
	m.pods++
	m.mustAdd(m.bind(fmt.Sprintf("more-%d", m.pods)))
}

// mustAdd adds a pod, like kubelet, until it has an address.
func (m *member) mustAdd(pod *corev1.Pod) {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, "an address for "+pod.Name, func() bool { return m.add(pod).Success })
}

// logs waits until the log names the missing permission, in upstream's words and in ours.
func (m *member) logs(action string) {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, "log lines about "+action, func() bool {
		log, err := os.ReadFile(filepath.Join(m.Dir, "log", "ipamd.log"))
		if err != nil {
			m.c.t.Fatal(err)
		}
		return strings.Contains(string(log), "IAM role needs "+action) &&
			strings.Contains(string(log), `"msg":"Unauthorized operation: failed to call `+action+` due to missing permissions. Please refer `)
	})
}

// hasEvent waits for an event on the Node that names the missing permission.
func (m *member) hasEvent(action string) {
	m.c.t.Helper()
	events := m.c.objects(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"})
	testenv.Eventually(m.c.t, "an event about "+action, func() bool {
		list, err := events.List(m.c.t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + m.name})
		if err != nil {
			m.c.t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Object["reason"] == "MissingIAMPermissions" && strings.Contains(fmt.Sprint(e.Object["note"]), "failed to call "+action+" due") {
				return true
			}
		}
		return false
	})
}

// quiet checks for about three seconds that the daemon does not call EC2 in a loop.
func (m *member) quiet(action string) {
	m.c.t.Helper()
	const most = 12 // two ENIs, each call with its jitter; a loop would make hundreds
	before := m.refusals(action)
	testenv.Never(m.c.t, 300, fmt.Sprintf("%s was refused more than %d times", action, most), func() bool { return m.refusals(action)-before > most })
}

// allowed reports whether a call that needs the permission has succeeded.
func (m *member) allowed(action string) bool {
	return slices.ContainsFunc(m.c.world.Calls(), func(call fakeaws.Call) bool {
		return call.Caller == m.InstanceID && call.Code == "" && takes(call, action)
	})
}

func (m *member) succeeded(action string) {
	m.c.t.Helper()
	if !m.allowed(action) {
		m.c.t.Errorf("no call took %s", action)
	}
}

// emptied creates and deletes pods, after which the pool must shrink.
func (m *member) emptied() {
	m.c.t.Helper()
	var pods []*corev1.Pod
	for i := range 13 {
		pod := m.bind(fmt.Sprintf("brief-%d", i))
		m.mustAdd(pod)
		pods = append(pods, pod)
	}
	for _, pod := range pods {
		if r := m.del(pod); !r.Success {
			m.c.t.Fatalf("DEL: %s: %s", r.Cause, r.Detail)
		}
		m.c.api.DeletePod(m.c.t, pod.Namespace, pod.Name)
	}
}

// shrunk reports whether only one ENI with the few wanted addresses is left, also in EC2.
func (m *member) shrunk() bool {
	enis := m.c.world.ENIsOf(m.InstanceID)
	return len(enis) == 1 && len(enis[0].SecondaryIPs) <= 3 && len(m.c.unattached()) == 0
}

// grown reports whether ENIs were added.
func (m *member) grown() bool { return len(m.c.world.ENIsOf(m.InstanceID)) > 1 }

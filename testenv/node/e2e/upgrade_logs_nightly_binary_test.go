//go:build nightly

package e2e_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/logline"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// logForm matches the beginning of upstream's lines: collectors parse these four members.
// Ours follow them.
var logForm = regexp.MustCompile(`^\{"level":"(debug|info|warn|error|fatal)","ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d{4})",` +
	`"caller":"[\w.-]+/[\w.-]+\.go:\d+","msg":"`)

// TestDowngrade_LogForm checks every line that a daemon writes in its life, including failures:
// format, names of members, and the cause of every failed ADD.
func TestDowngrade_LogForm(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("t3.small", map[string]string{"MAX_ENI": "1"})
	l.mustAdd(n, "p", 3, 1)
	_, failed := add(n, "too-many", 4, 2)
	if len(failed) != 4 {
		t.Fatalf("%d of 4 failed", len(failed))
	}
	l.kill(n, 15)
	// Other causes: EC2 refuses, the subnet is full, the daemon exits.
	l.world.SetFaults(fakeaws.FailCalls("CreateNetworkInterface", 1, 1<<30, fakeaws.Fault{Code: "UnauthorizedOperation", Message: "no", Status: 403}))
	l.start(n, map[string]string{"CNI_ADD_WAIT": "1s"})
	_, more := add(n, "refused", 2, 2)
	l.kill(n, 15)

	keys, causes, credentials := keysOf(t), map[string]int{}, 0
	for _, line := range daemonLog(t, n) {
		if strings.Contains(line, `"provider":"EC2RoleProvider","role":"node-role","account":"111122223333"`) {
			credentials++
		}
		if !logForm.MatchString(line) {
			t.Errorf("not of upstream's form: %s", line)
			continue
		}
		for _, key := range members(t, line)[4:] {
			if !keys[key] {
				t.Errorf("member %q is none of daemon/api/logline: %s", key, line)
			}
		}
		var in struct{ Msg, Cause string }
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if strings.HasPrefix(in.Msg, logline.TextNoAddress) {
			causes[in.Cause]++
			if cause.Code(in.Cause).Title() == "" {
				t.Errorf("a failed ADD without a known cause: %s", line)
			}
		}
	}
	total := 0
	for _, n := range causes {
		total += n
	}
	if credentials != 2 {
		t.Errorf("%d lines about credentials, want one per start", credentials)
	}
	if total != len(failed)+len(more) || causes[string(cause.PoolFull)] != len(failed) {
		t.Errorf("%d ADDs failed, the log has %v", len(failed)+len(more), causes)
	}
}

// members returns the keys of a line in order; none may be repeated.
func members(t *testing.T, line string) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(keys, fmt.Sprint(key)) {
			t.Errorf("%v twice in %s", key, line)
		}
		keys = append(keys, fmt.Sprint(key))
	}
	return keys
}

// keysOf returns the names that members may have.
func keysOf(t *testing.T) map[string]bool {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "../../../daemon/api/logline/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			key, err := strconv.Unquote(lit.Value)
			keys[key] = err == nil
		}
		return true
	})
	return keys
}

// notWritten lists upstream's lines that guides search for and our daemon does not write here,
// mostly because what they report cannot happen.
var notWritten = map[string]string{
	logline.TextAPICheckFailed:       "upstream ends without an API server that it needs; ours serves on and tries again",
	logline.TextAPIUnreachable:       "after a minute: daemon/ipamd TestWatch_UpstreamsLineAfterAMinute finds it",
	logline.TextNoTrunkSlot:          "needs a node with security groups for pods: TestModes_SecurityGroupsForPods finds it",
	logline.TextVersionSkew:          "ours takes plugins of every version: requests carry a protocol's",
	logline.TextWrongClientVersion:   "ours takes plugins of every version: requests carry a protocol's",
	logline.TextLogOutOfSync:         "a debug line of upstream's retries; ours does not wait for the metadata",
	logline.TextPresumingStale:       "ours never drops an allocation for an address that is not known: it is quarantined",
	logline.TextUsesUnknownIPAddress: "ours never drops an allocation for an address that is not known: it is quarantined",
	logline.TextUnknownAddress:       "ours never drops an allocation for an address that is not known: it is quarantined",
	logline.TextForceRemoving:        "ours never removes an ENI with pods: it is quarantined",
	logline.TextSubnetBackoff:        "ours waits by subnet and never a fixed two minutes; /v1/summary shows the clocks",
}

// TestDowngrade_SearchedLines causes everything whose log line guides search for, and finds
// the lines.
func TestDowngrade_SearchedLines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []string // guarded by mu
	t.Run("scenes", func(t *testing.T) {
		for name, scene := range map[string]func(t *testing.T) *node.Node{
			"pool": sceneOfOnePool, "failures": sceneOfFailures, "losses": sceneOfLosses, "API server": sceneOfAPIServer,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				log := daemonLog(t, scene(t))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, log...)
			})
		}
	})
	text := ""
	for _, line := range all {
		var in struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Fatal(err)
		}
		text += in.Msg + "\n"
	}
	wanted, err := os.ReadFile("../../../daemon/api/logline/testdata/searched.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(string(wanted)) {
		if line[0] == '#' {
			continue
		}
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		written := regexp.MustCompile(strings.Join(parts, ".*")).MatchString(text)
		excuse := ""
		for text, why := range notWritten {
			if strings.Contains(line, text) {
				excuse = why
			}
		}
		switch {
		case !written && excuse == "":
			t.Errorf("not written: %s", line)
		case written && excuse != "":
			t.Errorf("written, take it off the list: %s (%s)", line, excuse)
		}
	}
}

// sceneOfOnePool grows and shrinks a pool, restarts daemons, and makes one refuse to start.
func sceneOfOnePool(t *testing.T) *node.Node {
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", map[string]string{"WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "1"})
	pods := l.mustAdd(n, "p", 12, 4)
	l.settled(n)
	stale := pods[0]
	if _, err := n.RunPlugin(stale, "DEL", nil); err != nil {
		t.Error(err)
	}
	if _, err := n.RunPlugin(stale, "DEL", nil); err != nil { // the pod is unknown by now
		t.Error(err)
	}
	if err := n.RemoveSandbox(stale); err != nil {
		t.Fatal(err)
	}
	l.says(n, logline.TextCooled)
	l.kill(n, 9)
	if err := n.RemoveSandbox(pods[1]); err != nil { // its DEL never came
		t.Fatal(err)
	}
	testenv.Eventually(l.t, "its link is gone", func() bool { return strings.Count(l.sh(n, "ip link"), " eni") == len(pods)-2 })
	// Make the entry older: the pod of a young one could be about to get its link.
	l.sh(n, `sed -i 's/"allocationTimestamp":[0-9]*/"allocationTimestamp":1787000000123456789/g' `+checkpointPath)
	l.start(n, map[string]string{"ENABLE_PREFIX_DELEGATION": "true"})
	l.settled(n)
	l.del(n, pods[2:], 4)
	l.kill(n, 15)
	if err := n.StartDaemon(map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "lax"}); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitServing(t.Context()); err == nil {
		t.Error("it serves with a setting that forbids it")
	}
	return n
}

// sceneOfFailures makes EC2 refuse everything that a pool needs.
func sceneOfFailures(t *testing.T) *node.Node {
	l := newLab(t, fakeaws.Options{})
	full := fakeaws.Fault{Code: "InsufficientFreeAddressesInSubnet", Message: "insufficient free addresses", Status: 400}
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "t3.small", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	l.world.SetFaults(func(action string, nth int) *fakeaws.Fault {
		if action == "CreateNetworkInterface" && nth == 1 {
			return &fakeaws.Fault{Code: "UnauthorizedOperation", Message: "no", Status: 403}
		}
		// Twice: after the first failure fewer addresses are requested.
		if nth <= 2 && action == "AssignPrivateIpAddresses" {
			return &full
		}
		if action == "AttachNetworkInterface" && nth == 1 {
			return &fakeaws.Fault{Hold: fakeaws.HoldLink} // so the ENI is detached again
		}
		switch action {
		case "ModifyNetworkInterfaceAttribute", "DetachNetworkInterface", "DeleteNetworkInterface":
			return &fakeaws.Fault{Code: "OperationNotPermitted", Message: "not now", Status: 400}
		}
		return nil
	})
	n := l.node(i.ID)
	l.start(n, map[string]string{"CNI_ADD_WAIT": "1s"})
	pods, _ := add(n, "p", 4, 2)
	l.within(testenv.Left(t), "the ENI without a link cannot be detached", func() bool { return l.said(n, logline.TextDetachFailed) })
	l.kill(n, 15)
	l.orphan(n)
	l.start(n, map[string]string{"MAX_ENI": "1", "CNI_ADD_WAIT": "1s"})
	add(n, "more", 8, 4)
	for _, change := range []func(*cniwire.AddRequest){
		func(r *cniwire.AddRequest) { r.IfName = "" },
		func(r *cniwire.AddRequest) { r.RequiresMultiNIC = true },
	} {
		req := sandbox(50)
		change(req)
		if r := l.wireAdd(n, req); r.Success {
			t.Errorf("%+v was answered with %+v", req, r)
		}
	}
	l.signal(n, syscall.SIGSTOP) // otherwise it would restore a removed file
	l.sh(n, "rm "+checkpointPath+"; mkdir -p "+checkpointPath+"/in-the-way")
	l.signal(n, syscall.SIGCONT)
	if len(pods) == 0 {
		t.Fatal("no pod has an address")
	}
	_, _ = n.RunPlugin(pods[0], "DEL", nil) // whether or not the plugin reports the refusal
	l.says(n, logline.TextStoreFailed)
	l.kill(n, 15)
	return n
}

// sceneOfLosses removes ENIs of a running daemon, and adds some that it does not manage.
func sceneOfLosses(t *testing.T) *node.Node {
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.xlarge", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	attachForeign(l, i.ID)
	n := l.node(i.ID)
	l.start(n, map[string]string{"MANAGE_UNTAGGED_ENI": "false"})
	pods := l.mustAdd(n, "p", 11, 4)
	l.settled(n)
	enis := l.world.ENIsOf(n.InstanceID)
	at := slices.IndexFunc(enis, func(e fakeaws.ENI) bool {
		return strings.HasPrefix(e.Description, "aws-K8S-") && !slices.ContainsFunc(pods, func(p *node.Pod) bool { return e.Owns(p.IP) })
	})
	if at < 0 {
		t.Fatalf("no spare ENI among %+v", enis)
	}
	spare := enis[at]
	if err := l.world.DetachENI(spare.Attachment.ID); err != nil {
		t.Fatal(err)
	}
	l.within(3*time.Minute, "the daemon finds an ENI detached", func() bool { return l.said(n, logline.TextDetachedENI) })
	l.kill(n, 9)
	orphan := l.orphan(n)
	l.start(n, map[string]string{"MANAGE_UNTAGGED_ENI": "false"})
	testenv.Eventually(l.t, "the orphan is deleted", func() bool { _, there := l.world.ENI(orphan.ID); return !there })
	l.settled(n)
	return n
}

// sceneOfAPIServer runs without an API server first, and then with one whose Node is cordoned.
func sceneOfAPIServer(t *testing.T) *node.Node {
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	env := map[string]string{"KUBECONFIG": l.refusingAPI(n), "MY_NODE_NAME": "worker-7"}
	l.kill(n, 15)
	l.start(n, env)
	l.says(n, logline.TextAPISilent)
	l.kill(n, 15)
	env["CLUSTER_ENDPOINT"] = l.apiServer(n).url
	l.start(n, env)
	l.says(n, logline.TextAPIReached)
	l.says(n, logline.TextNonSchedulable)
	return n
}

//go:build nightly

package e2e_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

func attachment(rt *libcni.RuntimeConf) types.GCAttachment {
	return types.GCAttachment{ContainerID: rt.ContainerID, IfName: rt.IfName}
}

// chain is a user's template with aws-cni and one other plugin.
func chain(version string) string {
	return `{"cniVersion":"` + version + `","name":"aws-cni","plugins":[
  {"name":"aws-cni","type":"aws-cni","vethPrefix":"__VETHPREFIX__","mtu":"__MTU__","podSGEnforcingMode":"__PODSGENFORCINGMODE__",
   "pluginLogFile":"__PLUGINLOGFILE__","pluginLogLevel":"__PLUGINLOGLEVEL__","capabilities":{"io.kubernetes.cri.pod-annotations":true}},
  {"type":"chained"}]}`
}

// TestVerbs_EveryVersion runs a pod's life through libcni with a list of each version of the
// specification, and checks which commands libcni then runs.
func TestVerbs_EveryVersion(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	r := l.newRuntime(n, "chained")
	ctx := t.Context()
	for _, row := range []struct {
		version       string
		check, status bool // libcni runs these commands; with CHECK it caches results for DEL
	}{
		{"0.1.0", false, false}, {"0.2.0", false, false}, {"0.3.0", false, false}, {"0.3.1", false, false},
		{"0.4.0", true, false}, {"1.0.0", true, false}, {"1.1.0", true, true},
	} {
		t.Run(row.version, func(t *testing.T) {
			list := r.list(t, chain(row.version), nil)
			v := row.version
			r.exec.took()
			expect := func(what string, err error, want ...string) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if diff := cmp.Diff(want, r.exec.took()); diff != "" {
					t.Errorf("%s: commands (-want +got):\n%s", what, diff)
				}
			}
			_, err := r.ValidateNetworkList(ctx, list)
			expect("validate", err, "aws-cni VERSION 1.1.0", "chained VERSION 1.1.0")

			p, rt := r.add(t, list, "verbs-"+strings.ReplaceAll(v, ".", "-"))
			expect("ADD", nil, "aws-cni ADD "+v, "chained ADD "+v+" +prevResult")
			if err := p.Ping(n.Primary.PrimaryIP, testenv.Left(t)); err != nil {
				t.Error(err)
			}

			err = r.CheckNetworkList(ctx, list, rt)
			if row.check {
				expect("CHECK", err, "aws-cni CHECK "+v+" +prevResult", "chained CHECK "+v+" +prevResult")
			} else if expect("CHECK", nil); !errors.Is(err, libcni.ErrorCheckNotSupp) {
				t.Errorf("CHECK: %v", err)
			}

			err = r.DelNetworkList(ctx, list, rt)
			with := ""
			if row.check {
				with = " +prevResult"
			}
			expect("DEL", err, "chained DEL "+v+with, "aws-cni DEL "+v+with)
			expect("DEL again", r.DelNetworkList(ctx, list, rt), "chained DEL "+v, "aws-cni DEL "+v)
			if err := n.RemoveSandbox(p); err != nil {
				t.Error(err)
			}

			err = r.GCNetworkList(ctx, list, &libcni.GCArgs{ValidAttachments: []types.GCAttachment{}})
			if row.status {
				expect("GC", err, "aws-cni GC "+v+" +cni.dev/valid-attachments", "chained GC "+v+" +cni.dev/valid-attachments")
				expect("STATUS", r.GetStatusNetworkList(ctx, list), "aws-cni STATUS "+v, "chained STATUS "+v)
			} else {
				expect("GC", err)
				expect("STATUS", r.GetStatusNetworkList(ctx, list))
			}
		})
	}
	info, err := r.GetVersionInfo(ctx, "aws-cni")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}, info.SupportedVersions()); diff != "" {
		t.Errorf("VERSION (-recorded +got):\n%s", diff)
	}
	for _, v := range []string{"0.5.0", "1.2.0"} {
		list := r.list(t, chain(v), nil)
		if _, err := r.ValidateNetworkList(ctx, list); err == nil {
			t.Errorf("%s: libcni takes the list", v)
		}
		p, rt := r.sandbox(t, "unsupported")
		_, err := r.AddNetworkList(ctx, list, rt)
		if code, msg := code(err); code != types.ErrIncompatibleCNIVersion || msg != "incompatible CNI versions" {
			t.Errorf("%s: %v", v, err)
		}
		if err := n.RemoveSandbox(p); err != nil {
			t.Error(err)
		}
	}
	l.nothingLeft(n)
}

// TestVerbs_ReportFaults: CHECK and STATUS fail while something is broken, and succeed once it
// is fixed.
func TestVerbs_ReportFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	r := l.newRuntime(n, "chained")
	ctx := t.Context()
	list := r.list(t, chain("1.1.0"), nil)
	p, rt := r.add(t, list, "web-0")
	healthy := func(when string) {
		t.Helper()
		if err := r.CheckNetworkList(ctx, list, rt); err != nil {
			t.Errorf("%s: CHECK: %v", when, err)
		}
		if err := r.GetStatusNetworkList(ctx, list); err != nil {
			t.Errorf("%s: STATUS: %v", when, err)
		}
	}
	healthy("after ADD")

	if _, err := n.StopDaemon(testenv.Context(t), syscall.SIGTERM); err != nil { // otherwise it would restore the rule
		t.Fatal(err)
	}
	if code, msg := code(r.GetStatusNetworkList(ctx, list)); code != 50 || msg != "status cmd: ipamd does not answer" {
		t.Errorf("STATUS without daemon: %d %s", code, msg)
	}
	if err := r.CheckNetworkList(ctx, list, rt); err != nil {
		t.Errorf("CHECK without daemon: %v", err)
	}
	rule := netlink.NewRule()
	rule.Priority, rule.Table = 512, 254
	rule.Dst = &net.IPNet{IP: p.IP.AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := n.NS.Do(func() error { return netlink.RuleDel(rule) }); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("check cmd: the pod's network is not as ADD left it: host rule 512: from all to %s lookup main is missing", p.IP)
	if code, msg := code(r.CheckNetworkList(ctx, list, rt)); code != types.ErrInternal || msg != want {
		t.Errorf("CHECK without rule: %d %s", code, msg)
	}
	if code, msg := code(r.GetStatusNetworkList(ctx, list)); code != 50 {
		t.Errorf("STATUS without rule, of an ADD that may be at work: %d %s", code, msg)
	}
	age := agent.Cmd{Argv: []string{"/bin/sed", "-i", "-E", `s/("allocationTimestamp":)[0-9]+/\11/`, checkpointPath}}
	if _, err := n.Exec(age); err != nil {
		t.Fatal(err)
	}
	if code, msg := code(r.GetStatusNetworkList(ctx, list)); code != 51 || !strings.Contains(msg, "the rules of 1 running pods are missing") {
		t.Errorf("STATUS without rule: %d %s", code, msg)
	}
	if err := n.NS.Do(func() error { return netlink.RuleAdd(rule) }); err != nil {
		t.Fatal(err)
	}
	l.start(n, nil)
	healthy("after the daemon's restart")
	if err := r.DelNetworkList(ctx, list, rt); err != nil {
		t.Error(err)
	}
	if err := n.RemoveSandbox(p); err != nil {
		t.Error(err)
	}
	l.nothingLeft(n)
}

// TestVerbs_GC: a runtime that has forgotten a sandbox names only the others. The plugin frees
// that sandbox's address, and nothing of the others.
func TestVerbs_GC(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	r := l.newRuntime(n, "chained")
	ctx := t.Context()
	list := r.list(t, chain("1.1.0"), nil)
	kept, keptRT := r.add(t, list, "kept")
	cached, _ := r.add(t, list, "cached")
	lost, lostRT := r.add(t, list, "lost")
	gone, goneRT := r.add(t, list, "gone")
	for _, rt := range []*libcni.RuntimeConf{lostRT, goneRT} {
		files, err := filepath.Glob(filepath.Join(r.dir, "results", "*"+rt.ContainerID+"*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("cache of the runtime: %v, %v", files, err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.RemoveSandbox(gone); err != nil {
		t.Fatal(err)
	}
	r.exec.took()
	if err := r.GCNetworkList(ctx, list, &libcni.GCArgs{ValidAttachments: []types.GCAttachment{attachment(keptRT)}}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{
		"chained DEL 1.1.0 +prevResult", "aws-cni DEL 1.1.0 +prevResult", // the sandbox that libcni has in its cache
		"aws-cni GC 1.1.0 +cni.dev/valid-attachments", "chained GC 1.1.0 +cni.dev/valid-attachments",
	}, r.exec.took()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	allocations, err := n.Allocations()
	if err != nil {
		t.Fatal(err)
	}
	if len(allocations) != 1 || allocations[0].ContainerID != kept.ContainerID {
		t.Errorf("allocations %+v, want that of %s", allocations, kept.ContainerID)
	}
	if err := kept.Ping(n.Primary.PrimaryIP, testenv.Left(t)); err != nil {
		t.Errorf("the pod that is kept: %v", err)
	}
	if err := r.CheckNetworkList(ctx, list, keptRT); err != nil {
		t.Errorf("CHECK of the pod that is kept: %v", err)
	}
	for _, p := range []*node.Pod{cached, lost} {
		if err := n.RemoveSandbox(p); err != nil {
			t.Error(err)
		}
	}
	if err := r.DelNetworkList(ctx, list, keptRT); err != nil {
		t.Error(err)
	}
	if err := n.RemoveSandbox(kept); err != nil {
		t.Error(err)
	}
	l.nothingLeft(n)
}

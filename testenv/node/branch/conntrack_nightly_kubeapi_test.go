//go:build nightly

package branch_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/testenv"
	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/network/vm"
)

// TestBranch_ConntrackFull fills the table of connections: the doctor finds it, and the command of
// its first fix, as printed, empties it. The size of the table is the kernel's, so the test needs a
// guest.
func TestBranch_ConntrackFull(t *testing.T) {
	if !vm.Inside() {
		t.Skip("it would change the table of this machine; it runs where the kernel lacks VLAN")
	}
	l := newLab(t)
	m := l.join(strict, vpcrc.Faults{})
	m.ordinary("plain")
	const setting = "net.netfilter.nf_conntrack_max"
	kernel := func(command string) string { // in the network of the guest, which alone may write
		out, err := exec.Command("nsenter", "--net="+vm.Network(), "/bin/sh", "-ec", "PATH=/usr/sbin:/usr/bin:/sbin:/bin; "+command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	was := kernel("sysctl -n " + setting)
	t.Cleanup(func() { kernel("sysctl -w " + setting + "=" + was) })
	cnictl, err := filepath.Abs(filepath.Join(l.binaries, "cnictl"))
	if err != nil {
		t.Fatal(err)
	}
	found := func() (fix string, found bool) {
		var r document.DoctorReport
		out := m.exec(cnictl, "local", "doctor", "-o", "json", "--exit-zero", "--once", "--node-timeout", testenv.Left(t).String())
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s", m.exec("sysctl", "net.netfilter.nf_conntrack_count", setting))
		i := slices.IndexFunc(r.Findings, func(f document.Finding) bool { return f.Code == "net/conntrack-full" })
		if i < 0 {
			return "", false
		}
		if f := r.Findings[i]; f.Severity != "error" {
			t.Errorf("it is %s: %s", f.Severity, f.Summary)
		}
		return r.Findings[i].Fix[0].Command, true
	}
	if _, full := found(); full {
		t.Fatal("the table is full before it is filled")
	}
	m.exec("bash", "-c", "sysctl -qw net.netfilter.nf_conntrack_udp_timeout=3600; for p in $(seq 20000 20500); do echo > /dev/udp/127.0.0.1/$p; done 2> /dev/null; true")
	count, err := strconv.Atoi(strings.TrimSpace(m.exec("sysctl", "-n", "net.netfilter.nf_conntrack_count")))
	if err != nil {
		t.Fatal(err)
	}
	kernel(fmt.Sprintf("sysctl -w %s=%d", setting, count*9/10)) // others end meanwhile
	fix, full := found()
	if !full {
		t.Fatal("a full table is not found")
	}
	kernel(fix)
	if _, full := found(); full {
		t.Errorf("it is full after %q", fix)
	}
}

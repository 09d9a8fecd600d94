package ipamd

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/internal/hostnet"
)

func TestEgressKeeper_Notify(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		notice hostnet.Notice
		want   egressChanges
	}{
		{hostnet.Notice{Kind: hostnet.ChangedEgress}, egressChanges{any: true, chains: true}},
		{hostnet.Notice{Kind: hostnet.LostChanges}, egressChanges{any: true, chains: true}},
		{hostnet.Notice{Kind: hostnet.ChangedLinks}, egressChanges{any: true}},
		{hostnet.Notice{Kind: hostnet.ChangedPod, Pod: netip.MustParseAddr("169.254.172.9")}, egressChanges{any: true}},
		{hostnet.Notice{Kind: hostnet.ChangedPod, Pod: netip.MustParseAddr("fd00::ac:9")}, egressChanges{any: true}},
		{hostnet.Notice{Kind: hostnet.ChangedPod, Pod: netip.MustParseAddr("10.0.0.9")}, egressChanges{}},
		{hostnet.Notice{Kind: hostnet.ChangedNode}, egressChanges{}},
	} {
		a := &asserter{wake: make(chan struct{}, 1), egress: &egressKeeper{nudge: make(chan struct{}, 1)}}
		a.notice(row.notice)
		if got := a.egress.take(); got != row.want || len(a.egress.nudge) == 1 != row.want.any {
			t.Errorf("%+v: %+v", row.notice, got)
		}
		if row.notice.Kind == hostnet.ChangedEgress && len(a.wake) > 0 {
			t.Error("a DEL with egress is a reason to look at the node's own rules")
		}
	}
}

func TestEgressKeeper_Holders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := &egressKeeper{dirs: []string{filepath.Join(dir, "mounted"), filepath.Join(dir, "own")}}
	if got, err := e.holders(); got != nil || err != nil {
		t.Fatalf("without a directory: %v, %v", got, err)
	}
	if err := os.Mkdir(e.dirs[1], 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"169.254.172.2": "c1\r\neth0", "169.254.172.3": "c2", "last_reserved_ip.0": "169.254.172.3", "lock": "", "169.254.172.4": "no id\r\neth0",
	} {
		if err := os.WriteFile(filepath.Join(e.dirs[1], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(e.dirs[1], "169.254.172.5")); err != nil {
		t.Fatal(err)
	}
	got, err := e.holders()
	want := []egress.Holder{
		{Address: netip.MustParseAddr("169.254.172.2"), ContainerID: "c1"}, {Address: netip.MustParseAddr("169.254.172.3"), ContainerID: "c2"},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := os.Mkdir(e.dirs[0], 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := e.holders(); got != nil || err != nil {
		t.Errorf("a mounted directory hides none: %v, %v", got, err)
	}
}

package testenv_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"cnictl/testenv"
)

// recorder is a testing.TB that records what a requirement does to a test.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()          {}
func (r *recorder) Skip(args ...any) { r.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) {
	r.failed = fmt.Sprintf(f, args...)
	runtime.Goexit()
}

func record(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r
}

func TestRequireKernel_CommonFeatures(t *testing.T) {
	testenv.RequireRoot(t)
	// Every kernel that we support has these.
	r := record(t, func(tb testing.TB) {
		testenv.RequireKernel(tb, "veth", "bridge", "macvlan", "vxlan", "ifb", "iptables", "ip6tables", "nft")
	})
	if r.skipped != "" || r.failed != "" {
		t.Errorf("skipped %q, failed %q", r.skipped, r.failed)
	}
}

func TestRequireKernel_UnknownFeatureFails(t *testing.T) {
	testenv.RequireRoot(t)
	r := record(t, func(tb testing.TB) { testenv.RequireKernel(tb, "warp") })
	if !strings.Contains(r.failed, `unknown feature "warp"`) {
		t.Errorf("failed = %q", r.failed)
	}
}

func TestRequireKernel_MissingFeature(t *testing.T) {
	testenv.RequireRoot(t)
	t.Setenv("PATH", t.TempDir()) // no nft program
	t.Setenv(testenv.RequireVar, "root")
	r := record(t, func(tb testing.TB) { testenv.RequireKernel(tb, "nft") })
	if !strings.HasPrefix(r.skipped, "skip: needs nft: ") || !strings.Contains(r.skipped, "; run: go test -C ") {
		t.Errorf("skipped = %q", r.skipped)
	}
	t.Setenv(testenv.RequireVar, "root,nft")
	r = record(t, func(tb testing.TB) { testenv.RequireKernel(tb, "nft") })
	if r.skipped != "" || !strings.Contains(r.failed, "does not allow this skip: needs nft") {
		t.Errorf("skipped = %q, failed = %q", r.skipped, r.failed)
	}
}

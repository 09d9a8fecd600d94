package cli

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// TestKubeFlags_AreKubectls: names, short forms, types, defaults and texts match those of
// cli-runtime, which only this test links.
func TestKubeFlags_AreKubectls(t *testing.T) {
	t.Parallel()
	theirs, ours := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).AddFlags(theirs)
	var k KubeFlags
	k.register(ours, theirs.Lookup("cache-dir").DefValue)
	type facts struct{ name, short, kind, def, usage string }
	of := func(f *pflag.Flag) facts { return facts{f.Name, f.Shorthand, f.Value.Type(), f.DefValue, f.Usage} }
	theirs.VisitAll(func(f *pflag.Flag) {
		o := ours.Lookup(f.Name)
		if o == nil {
			t.Errorf("--%s is missing", f.Name)
			return
		}
		if of(o) != of(f) {
			t.Errorf("got  %+v\nwant %+v", of(o), of(f))
		}
	})
	ours.VisitAll(func(f *pflag.Flag) {
		if theirs.Lookup(f.Name) == nil {
			t.Errorf("--%s is none of kubectl's", f.Name)
		}
		if !IsKubeFlag(f) {
			t.Errorf("--%s is not marked", f.Name)
		}
	})
}

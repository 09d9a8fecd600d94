package reading

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

func TestCNIConf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]evidence.CNIConf{
		`{"name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"portmap"}]}`: {Types: []string{"aws-cni", "portmap"}, Valid: true},
		`{"name":"bridge","type":"bridge"}`:                                    {Types: []string{"bridge"}, Valid: true},
		`{"name":"none","plugins":[]}`:                                         {Types: []string{}},
		`{"name":"x","plugins":[{"type":"aws-cni"},{}]}`:                       {Types: []string{"aws-cni", ""}},
		`{"plugins":[{"type":"aws-cni"}]}`:                                     {Types: []string{"aws-cni"}},
		`{"name":`:                                                             {Types: []string{}},
		``:                                                                     {Types: []string{}},
	} {
		want.File = "10-aws.conflist"
		if d := cmp.Diff(want, CNIConf("10-aws.conflist", []byte(text))); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

func TestPluginVersion(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"AWS CNI v1.23.1\nCNI protocol versions supported: 0.1.0, 1.0.0\n": "v1.23.1",
		"CNI host-local plugin v1.5.1\nCNI protocol versions supported: 1": "v1.5.1",
		"AWS CNI \nCNI protocol versions supported: 0.1.0\n":               "",
		"exec format error": "", "": "", "\x00\xff": "",
	} {
		got := ""
		if v := PluginVersion(printed); v != nil {
			got = *v
		}
		if got != want {
			t.Errorf("PluginVersion(%q) = %q, want %q", printed, got, want)
		}
	}
}

package nodeinit

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/config"
)

func load(t *testing.T, env map[string]string) config.Config {
	t.Helper()
	c, problems := config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// TestWanted checks the settings and their order: a host that accepts router advertisements
// must be configured to keep doing so before it forwards.
func TestWanted(t *testing.T) {
	t.Parallel()
	const (
		filter  = "net.ipv4.conf.eth0.rp_filter = 2"
		demux   = "net.ipv4.tcp_early_demux = 1"
		noDemux = "net.ipv4.tcp_early_demux = 0"
		on      = "net.ipv6.conf.all.disable_ipv6 = 0"
		accept  = "net.ipv6.conf.eth0.accept_ra = 2"
		forward = "net.ipv6.conf.all.forwarding = 1"
	)
	for _, row := range []struct {
		env  map[string]string
		want []string
	}{
		{nil, []string{filter, demux}},
		{map[string]string{"DISABLE_TCP_EARLY_DEMUX": "true"}, []string{filter, noDemux}},
		{map[string]string{"ENABLE_IPv6": "true"}, []string{filter, demux, on, accept, forward}},
		{map[string]string{"ENABLE_V6_EGRESS": "true"}, []string{filter, demux, accept, forward}},
		{map[string]string{"ENABLE_IPv6": "true", "ENABLE_V6_EGRESS": "true"}, []string{filter, demux, on, accept, forward}},
	} {
		var got []string
		for _, s := range wanted(load(t, row.env), "eth0") {
			got = append(got, s.String())
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", row.env, diff)
		}
	}
}

// TestWrite: only the setting that some kernels lack may be missing.
func TestWrite(t *testing.T) {
	t.Parallel()
	settings := wanted(load(t, map[string]string{"ENABLE_IPv6": "true"}), "en.s5")
	root := t.TempDir()
	for i, phrase := range []string{textSystem, "", textIPv6, textIPv6, textIPv6} {
		err := settings[i].write(root)
		if phrase == "" {
			if err != nil {
				t.Errorf("%s: %v", settings[i], err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), phrase+": set "+settings[i].String()+": ") || !strings.Contains(err.Error(), "does not have this setting") {
			t.Errorf("%s: %v", settings[i], err)
		}
	}
	for _, s := range settings {
		path := filepath.Join(root, s.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.write(root); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != s.Value {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
}

// TestRun_NoSuchLink: the metadata names an ENI without a link here. Upstream continues with
// an empty name and fails at a path that explains nothing.
func TestRun_NoSuchLink(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
		body := "token"
		if strings.HasSuffix(r.URL.Path, "/mac") {
			body = "06:5a:a5:5a:a5:5a\n"
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	bin := t.TempDir()
	var out bytes.Buffer
	err := Run(t.Context(), Deps{Config: load(t, map[string]string{"HOST_CNI_BIN_PATH": bin}), Dir: t.TempDir(), Log: &out, ProcSys: t.TempDir()})
	const want = "Failed to get primary IF: no link of this node has MAC address 06:5a:a5:5a:a5:5a, which instance metadata gives for the primary ENI"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(out.String(), want) || strings.Contains(out.String(), textDone) {
		t.Errorf("error %v, log:\n%s", err, &out)
	}
}

// TestTexts pins the texts that guides search for.
func TestTexts(t *testing.T) {
	t.Parallel()
	got := []string{textBinaries, textPrimary, textSystem, textIPv6, textDone, Self, textFoundMAC, textFoundLink, textUpdated}
	want := []string{"Failed to install binaries", "Failed to get primary IF", "Failed to configure system parameters", "Failed to configure IPv6 settings", "CNI init container done", "aws-vpc-cni-init", "Found primaryMAC ", "Found primaryIF ", "Updated %s to %s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

package node

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/evidence"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	open := server.Listener.Addr().String()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed := gone.Addr().String()
	must(t, gone.Close())
	host, port, err := net.SplitHostPort(closed)
	must(t, err)

	root := t.TempDir()
	file := filepath.Join(root, kubeconfigFile)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte("clusters: [{name: c, cluster: {server: 'http://"+open+"'}}]\n"), 0o600))
	c := newCollector(t.Context(), Options{Root: root, Now: time.Now})
	env := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "CLUSTER_ENDPOINT": "http://" + open}
	want := []evidence.Probe{{From: "host", Kind: "tcp", Target: closed, Result: "refused"}, {From: "host", Kind: "tcp", Target: open, Result: "ok"}}
	for name, more := range map[string]map[string]string{
		"no region":  {},
		"a proxy":    {"AWS_REGION": "eu-west-1", "HTTPS_PROXY": "http://proxy:3128"},
		"own server": {"AWS_EC2_ENDPOINT": "http://" + closed},
		"the SDK's":  {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_EC2": "http://" + closed},
		"FIPS":       {"AWS_REGION": "eu-west-1", "AWS_USE_FIPS_ENDPOINT": "true"},
	} {
		maps.Copy(more, env)
		got, err := c.probes(t.Context(), more, "")
		must(t, err)
		byTarget := cmpopts.SortSlices(func(a, b evidence.Probe) bool { return a.Target < b.Target })
		if d := cmp.Diff(want, got, byTarget, cmpopts.IgnoreFields(evidence.Probe{}, "Detail", "At")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestEC2Endpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ region, zone, want string }{
		{"", "eu-west-1a", "ec2.eu-west-1.amazonaws.com:443"},
		{"", "us-west-2-lax-1a", "ec2.us-west-2.amazonaws.com:443"},
		{"", "us-gov-east-1b", "ec2.us-gov-east-1.amazonaws.com:443"},
		{"", "cn-north-1a", "ec2.cn-north-1.amazonaws.com.cn:443"},
		{"ap-south-1", "eu-west-1a", "ec2.ap-south-1.amazonaws.com:443"},
		{"", "us-iso-east-1a", ""},
		{"", "", ""},
	} {
		if got := hostPort(ec2Endpoint(map[string]string{"AWS_REGION": c.region}, c.zone)); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.region, c.zone, got, c.want)
		}
	}
}

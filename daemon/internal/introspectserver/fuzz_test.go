package introspectserver

import (
	"strings"
	"testing"

	nodeconfig "cnictl/daemon/config"
)

// FuzzBindAddress: the server can listen on any INTROSPECTION_BIND_ADDRESS that the
// configuration accepts; any other leaves the default.
func FuzzBindAddress(f *testing.F) {
	for _, s := range []string{"127.0.0.1:61679", "unix:/var/run/aws-node/introspection.sock", "unix:", "unix:relative.sock", "unix:@abstract", "[::1]:1", ":61679", "localhost:0", "a:b", "unix:/" + strings.Repeat("x", 106), "unix:/" + strings.Repeat("x", 107)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsRune(value, 0) {
			return // an environment cannot hold it
		}
		c, problems := nodeconfig.Load(func(name string) (string, bool) { return value, name == "INTROSPECTION_BIND_ADDRESS" })
		network, addr, err := parseAddr(c.IntrospectionAddr)
		if err != nil {
			t.Fatalf("INTROSPECTION_BIND_ADDRESS=%q is loaded as %q with problems %v, but: %v", value, c.IntrospectionAddr, problems, err)
		}
		if network == "unix" && "unix:"+addr != value || len(problems) == 0 && c.IntrospectionAddr != value {
			t.Errorf("%q became %s %s", value, network, addr)
		}
	})
}

package reading

import (
	"slices"
	"testing"
)

// FuzzHostFiles: any content of the host's files is read or rejected.
func FuzzHostFiles(f *testing.F) {
	f.Add("[Match]\nOriginalName=eni* veth*\n[Link]\nMACAddressPolicy=none\n")
	f.Add("[Network]\nManageForeignRoutes=no\n")
	f.Add(`{"name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"portmap"}]}`)
	f.Add("AWS CNI v1.23.1\n")
	f.Add("[Match]\nOriginalName=[a-\n[Link\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := ReadNetworkd(map[string]string{
			"/etc/systemd/network/10-a.link": text, "/run/systemd/network/10-a.link.d/a.conf": text, "/usr/lib/systemd/networkd.conf": text,
		})
		if n.LinkPolicy != "" && n != ReadNetworkd(map[string]string{"/etc/systemd/network/10-a.link": text, "/etc/systemd/networkd.conf.d/a.conf": text}) {
			t.Errorf("a file says %+v here, and something else in another place", n)
		}
		conf := CNIConf("10-aws.conflist", []byte(text))
		if conf.Types == nil || conf.Valid && (len(conf.Types) == 0 || slices.Contains(conf.Types, "")) {
			t.Errorf("valid without types: %+v", conf)
		}
		if v := PluginVersion(text); v != nil && *v == "" {
			t.Error("an empty version")
		}
	})
}

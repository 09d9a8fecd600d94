package reading

import "testing"

func TestReadNetworkd(t *testing.T) {
	t.Parallel()
	const usual = "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel\nMACAddressPolicy=persistent\n"
	removes := Networkd{ForeignRules: true, ForeignRoutes: true}
	with := func(policy string) Networkd { n := removes; n.LinkPolicy = policy; return n }
	for name, c := range map[string]struct {
		files map[string]string
		want  Networkd
	}{
		"nothing":               {nil, removes},
		"distribution's policy": {map[string]string{"/usr/lib/systemd/network/99-default.link": usual}, with("persistent")},
		"drop-in": {map[string]string{
			"/usr/lib/systemd/network/99-default.link":          usual,
			"/etc/systemd/network/99-default.link.d/aws.conf":   "[Link]\nMACAddressPolicy=none\n",
			"/run/systemd/network/99-default.link.d/aaa.conf":   "[Link]\nMACAddressPolicy=random\n",
			"/etc/systemd/network/98-other.link.d/ignored.conf": "[Link]\nMACAddressPolicy=random\n",
		}, with("none")},
		"file of the same name in /etc": {map[string]string{
			"/usr/lib/systemd/network/99-default.link": usual, "/etc/systemd/network/99-default.link": "[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=none\n",
		}, with("none")},
		"masked": {map[string]string{"/usr/lib/systemd/network/99-default.link": usual, "/etc/systemd/network/99-default.link": ""}, removes},
		"the first that matches": {map[string]string{
			"/usr/lib/systemd/network/99-default.link": usual,
			"/etc/systemd/network/10-ena.link":         "[Match]\nDriver=ena\n[Link]\nMACAddressPolicy=random\n",
			"/etc/systemd/network/20-veth.link":        "[Match]\nOriginalName=veth* eni*\n[Link]\nMACAddressPolicy=none\n",
		}, with("none")},
		"foreign kept": {map[string]string{
			"/etc/systemd/networkd.conf":               "[Network]\n#ManageForeignRoutes=yes\nManageForeignRoutes=no\n",
			"/etc/systemd/networkd.conf.d/80-ec2.conf": "[Network]\nManageForeignRoutingPolicyRules = no\n[DHCPv4]\nManageForeignRoutes=yes\n",
		}, Networkd{}},
		"garbage": {map[string]string{"/etc/systemd/networkd.conf": "\x00[=]=\n[", "/etc/systemd/network/a.link": "[Match]\nOriginalName=[\n"}, removes},
	} {
		if got := ReadNetworkd(c.files); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

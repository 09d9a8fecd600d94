package node

import (
	"net/netip"
	"strings"
	"testing"

	"cnictl/doctor/collect/reading"
)

// FuzzText: lines of /proc, output of systemctl and files of kubelet are read or skipped,
// whatever their content.
func FuzzText(f *testing.F) {
	f.Add("   0: 0100007F:F0EF 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1 0")
	f.Add("   0: 00000000000000000000000000000000:F0EE 0:0 0A 0:0 0:0 0 0 0 79 1")
	f.Add("0: 00000002 00000000 00010000 0001 01 80 /run/aws-node/ipamd.sock.new")
	f.Add("Id=kubelet.service\nLoadState=loaded\nActiveState=active\n\n")
	f.Add("--max-pods=29 --config /etc/kubelet.json -v")
	f.Add("maxPods: 58\n")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Fields(text)
		if address, _ := tcpListener(words); address != "" {
			if _, err := netip.ParseAddrPort(address); err != nil {
				t.Error(err)
			}
		}
		if address, _ := unixListener(words); address != "" && !strings.HasPrefix(address, runDirs[0]) {
			t.Errorf("socket %q", address)
		}
		for unit := range unitsOf(text) {
			if unit == "" {
				t.Error("a unit without a name")
			}
		}
		flagsOf(words)
		_, _ = reading.MaxPods([]byte(text)) // an error is fine
	})
}

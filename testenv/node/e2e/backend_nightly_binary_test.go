//go:build nightly

package e2e_test

import (
	"errors"
	"path/filepath"
	"testing"

	"cnictl/daemon/install"
	"cnictl/testenv"
)

func init() {
	followers["IPv6"] = func(t *testing.T) {
		a := egressNode(t, "nft")
		r := a.newRuntime(a.n, "portmap")
		r.exec.path = a.path
		r.Path = append(r.Path, filepath.Join(a.binaries, "reference"))
		list := r.list(t, install.Template, func(s *install.Settings) {
			logs := s.PluginLogFile
			*s = install.Defaults(true)
			s.PluginLogFile, s.Egress.LogFile, s.Egress.NodeIP = logs, logs+".egress", a.n.Primary.PrimaryIP
		})
		p, rt := r.add(t, list, "p-0")
		a.outside(p)
		a.follows("Block Node Local Pod access via IPv4", p)
		if err := errors.Join(r.DelNetworkList(t.Context(), list, rt), a.n.RemoveSandbox(p)); err != nil {
			t.Error(err)
		}
		testenv.Eventually(a.t, "nothing of the pod", func() bool { return len(a.egressState()) == 0 })
	}
}

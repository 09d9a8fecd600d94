package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/node"
)

// The test binary is also the plugin and the daemon of the nodes under test, under
// their names: links to it lie in the nodes' Binaries directory.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case node.PluginBinary:
		os.Exit(pluginMain())
	case node.DaemonBinary:
		os.Exit(daemonMain())
	}
	testenv.Main(m)
}

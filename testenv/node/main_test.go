package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/node"
)

// The test binary also serves as the nodes' plugin and daemon: their Binaries directory
// has links to it under those names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case node.PluginBinary:
		os.Exit(pluginMain())
	case node.DaemonBinary:
		os.Exit(daemonMain())
	}
	testenv.Main(m)
}

package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"cnictl/plugin/install"
	"cnictl/testenv/node"
)

// StartCNI does what the DaemonSet's pod does: it installs the plugins, starts the
// daemon, and writes the conflist once that serves.
func (m *Machine) StartCNI(ctx context.Context) error {
	if err := m.installPlugins(); err != nil {
		return err
	}
	kubeconfig := filepath.Join(m.Dir, "aws-node.kubeconfig")
	if err := m.cluster.API.WriteKubeconfig(ctx, kubeconfig, "aws-node", APIServer.String()); err != nil {
		return err
	}
	env := map[string]string{"MY_NODE_NAME": m.Name, "KUBECONFIG": kubeconfig}
	maps.Copy(env, m.env)
	if err := m.StartDaemon(env); err != nil {
		return err
	}
	if err := m.WaitServing(ctx); err != nil {
		return fmt.Errorf("CNI daemon: %w", err)
	}
	settings := install.Defaults(false)
	settings.OmitEgress = true
	settings.Bandwidth = m.env["ENABLE_BANDWIDTH_PLUGIN"] == "true"
	settings.PluginLogFile, settings.PluginLogLevel = "/var/log/aws-routed-eni/plugin.log", "DEBUG"
	conflist, err := install.Conflist(install.Template, settings)
	if err != nil {
		return err
	}
	return writeWhole(m.Conflist(), conflist, 0o644)
}

// Conflist is the path of what makes the node Ready, outside of the node.
func (m *Machine) Conflist() string { return filepath.Join(m.Dir, cniConf, "10-aws.conflist") }

// installPlugins puts the chain's programs where the runtime looks.
func (m *Machine) installPlugins() error {
	sources, err := filepath.Glob(filepath.Join(m.cluster.opts.Binaries, "reference", "*"))
	if err != nil {
		return err
	}
	for _, from := range append(sources, filepath.Join(m.cluster.opts.Binaries, node.PluginBinary)) {
		if err := copyFile(from, filepath.Join(m.Dir, cniBin, filepath.Base(from))); err != nil {
			return fmt.Errorf("install plugins: %w", err)
		}
	}
	return nil
}

// PluginLog is what the plugin has logged on this node.
func (m *Machine) PluginLog() (string, error) {
	data, err := os.ReadFile(filepath.Join(m.Dir, "log", "plugin.log"))
	return strings.TrimSpace(string(data)), err
}

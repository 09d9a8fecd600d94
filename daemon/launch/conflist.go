package launch

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"cnictl/daemon/config"
	"cnictl/daemon/install"
)

// settings returns the settings of the conflist that depend on the environment alone.
func settings(c config.Config) install.Settings {
	s := install.Defaults(c.IPv6)
	s.VethPrefix = c.VethPrefix
	s.MTU = strconv.Itoa(c.PodMTU)
	s.PodSGEnforcingMode = c.PodSecurityMode
	s.PluginLogFile, s.PluginLogLevel = c.PluginLogFile, c.PluginLogLevel
	s.RandomizeSNAT = string(c.RandomizeSNAT)
	s.Bandwidth, s.DisablePodV6 = c.BandwidthPlugin, c.PodV6Off
	if c.ConflistVersions {
		s.CNIVersions = install.AllCNIVersions()
	}
	s.Egress.Enabled, s.Egress.LogFile = c.V6Egress, c.EgressV6LogFile
	if c.IPv6 {
		s.Egress.Enabled, s.Egress.LogFile = c.V4Egress, c.EgressV4LogFile
	}
	return s
}

// metadata provides the node's addresses.
type metadata interface {
	LocalIPv4(context.Context) (netip.Addr, error)
	PrimaryIPv6(context.Context) (netip.Addr, error)
}

// findNode adds the node's address to the settings if egress-cni needs it. A node of an
// IPv6 cluster always has an IPv4 address, so a missing one is an error. A node of an IPv4
// cluster without a global IPv6 address cannot offer IPv6 egress: findNode calls warn, and
// its pods run without it.
func findNode(ctx context.Context, s *install.Settings, ipv6 bool, from metadata, warn func(string)) error {
	switch {
	case ipv6:
		address, err := from.LocalIPv4(ctx)
		if err != nil {
			return fmt.Errorf(textLocalIPv4+", error: %w", err)
		}
		s.Egress.NodeIP = address
	case s.Egress.Enabled:
		address, err := from.PrimaryIPv6(ctx)
		if err != nil {
			warn(textNoGlobalIPv6 + err.Error())
			s.Egress.Enabled = false
			return nil
		}
		s.Egress.NodeIP = address
	}
	return nil
}

// reserved reports whether egress-cni holds addresses for pods in a directory of the host;
// their DEL then needs it in the conflist. hostRun is where the host's /run/cni is mounted.
// Without the mount the answer is unknown, and reserved returns true.
func reserved(hostRun, dataDir string) bool {
	const onHost = "/run/cni"
	below, ok := strings.CutPrefix(dataDir, onHost+"/")
	if info, err := os.Stat(hostRun); !ok || err != nil || !info.IsDir() {
		return true
	}
	found := false
	err := fs.WalkDir(os.DirFS(hostRun), path.Clean(below), func(_ string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			// host-local keeps a file per address, besides a lock and the last address.
			_, notAddress := netip.ParseAddr(e.Name())
			found = found || notAddress == nil
		}
		return nil
	})
	return found || err != nil && !os.IsNotExist(err)
}

// render makes the conflist from the template next to the program.
func (l *launcher) render(ctx context.Context) ([]byte, error) {
	s := settings(l.Config)
	if err := findNode(ctx, &s, l.Config.IPv6, l.metadata, func(text string) { l.log.Warn(text) }); err != nil { //nolint:sloglint // upstream's line
		return nil, err
	}
	template, err := os.ReadFile(filepath.Join(l.Dir, conflistName))
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	// Users who mount their own template have listed egress-cni on purpose.
	s.OmitEgress = string(template) == install.Template && !s.Egress.Enabled && !l.Config.ConflistEgress && !reserved(l.HostRun, s.Egress.DataDir)
	return install.Conflist(string(template), s)
}

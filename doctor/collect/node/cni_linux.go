package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// ownPlugins are asked for their version: they are known to print it and exit.
var ownPlugins = []string{"aws-cni", "egress-cni"}

// cni reads the runtime's configuration directory and the plugins.
func (c *collector) cni(ctx context.Context) (out evidence.CNI, _ error) {
	out.Conf, out.Bin = []evidence.CNIConf{}, []evidence.CNIPlugin{}
	entries, err := c.list("/etc/cni/net.d")
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(e.Name())) {
			continue
		}
		data, err := c.read(path.Join("/etc/cni/net.d", e.Name()))
		if err != nil {
			data = nil // the runtime cannot read it either
		}
		out.Conf = append(out.Conf, reading.CNIConf(e.Name(), data))
	}
	entries, err = c.list("/opt/cni/bin")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	spare, cancel := c.spare(ctx)
	defer cancel()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		size := int(info.Size())
		plugin := evidence.CNIPlugin{Name: e.Name(), ModifiedAt: info.ModTime().UTC(), Size: &size}
		if slices.Contains(ownPlugins, e.Name()) {
			plugin.Version = c.version(spare, c.path(path.Join("/opt/cni/bin", e.Name())))
			plugin.OfImage = c.ofImage(e.Name())
		}
		out.Bin = append(out.Bin, plugin)
	}
	return out, nil
}

// ofImage compares a plugin with its file in the running daemon's image. It returns nil if one of
// them cannot be read.
func (c *collector) ofImage(name string) *bool {
	running, err := c.processes()
	at := slices.IndexFunc(running, func(p process) bool { return programs[p.name] == "aws-node" })
	if err != nil || at < 0 {
		return nil
	}
	installed, err := c.digest(path.Join("/opt/cni/bin", name))
	if err != nil {
		return nil
	}
	shipped, err := c.digest(proc(running[at].pid, path.Join("root/app", name)))
	if err != nil {
		return nil
	}
	return new(installed == shipped)
}

func (c *collector) digest(name string) (sum [sha256.Size]byte, err error) {
	f, _, err := c.open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [sha256.Size]byte(h.Sum(nil)), err
}

// version starts a plugin as by hand, without CNI_COMMAND: it prints what it is. A plugin that
// does not run has no version.
func (c *collector) version(ctx context.Context, file string) *string {
	printed, err := run(ctx, file)
	if err != nil {
		return nil
	}
	return reading.PluginVersion(printed)
}

package egress

import (
	"context"
	"io"
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/netconf"
	"cnictl/plugin/pluginlog"
	"cnictl/plugin/skel"
)

// Process is the environment of one plugin run. All fields are required.
type Process struct {
	Getenv  func(string) string
	Environ func() []string // for children
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string // of this binary; empty in a source build
}

// Run executes the command in CNI_COMMAND and returns the exit code of the process.
func (p *Process) Run(ctx context.Context) int {
	var conf netconf.EgressConf
	var confErr error
	with := func(run func(*command) *skel.Error) func(*skel.Request) *skel.Error {
		return func(r *skel.Request) *skel.Error {
			c := &command{ctx: ctx, p: p, Request: r, conf: conf}
			c.log = pluginlog.New(conf.PluginLogFile, conf.PluginLogLevel, p.Now, p.Stderr)
			defer c.log.Flush()
			failure := c.settings(confErr)
			if failure == nil {
				failure = run(c)
			}
			if failure != nil {
				c.log.Error(failure.Cause, failure.Error())
			}
			return failure
		}
	}
	return skel.Run(&skel.Process{Getenv: p.Getenv, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr}, &skel.Plugin{
		About: aboutText + p.Version,
		Parse: func(stdin []byte) (name, version string, err error) {
			conf, confErr = netconf.ParseEgress(stdin)
			return conf.Name, conf.CNIVersion, confErr
		},
		Add:    with((*command).add),
		Del:    with((*command).del),
		Check:  with((*command).check),
		GC:     with((*command).gc),
		Status: with((*command).status),
	})
}

// command is one run of a verb other than VERSION, with its input.
type command struct {
	ctx context.Context // of the only command of the process
	p   *Process
	*skel.Request
	conf netconf.EgressConf
	log  *pluginlog.Log
}

// settings returns an error if our own keys are wrong.
func (c *command) settings(confErr error) *skel.Error {
	if confErr == nil {
		return nil
	}
	code := skel.CodeInternal
	if c.Command == "STATUS" {
		code = skel.CodeNotAvailable
	}
	return &skel.Error{Code: code, Msg: textParse + confErr.Error(), Cause: cause.InvalidConfig, Details: skel.SettingDetails(confErr)}
}

func internal(why cause.Code, msg string) *skel.Error {
	return &skel.Error{Code: skel.CodeInternal, Msg: msg, Cause: why}
}

// logRequest logs the request in the same form as aws-cni.
func (c *command) logRequest() {
	c.log.Info("Received Egress CNI " + c.Command + " request: ContainerID(" + c.ContainerID + ") Netns(" + c.Netns + ") IfName(" + c.IfName +
		") Args(" + c.Args + ") Path(" + c.Path + ") argsStdinData(" + string(c.Stdin) + ")")
}

// nodeIP is the source address of translated packets, which also determines the family.
func (c *command) nodeIP() (netip.Addr, *skel.Error) {
	a, err := netip.ParseAddr(c.conf.NodeIP)
	a = a.Unmap()
	if err == nil && a.Is4() {
		return a, nil
	}
	if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return netip.Addr{}, &skel.Error{Code: skel.CodeInternal, Msg: textNoGlobal, Cause: cause.InvalidConfig,
			Details: `key "nodeIP" of the network configuration is "` + skel.Bounded(c.conf.NodeIP) + `"; accepted is the node's IPv4 or global IPv6 address`}
	}
	return a, nil
}

package vpc

import (
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// request holds a command's environment variables and its input.
type request struct {
	containerID string
	netns       string
	ifName      string
	args        string
	path        string
	stdin       []byte

	frame *skel.Request
}

// overridden reports whether the runtime allows CNI_NETNS to be the plugin's own
// namespace.
func (r *request) overridden() bool { return r.frame.Overridden() }

func errOwnNetns() *cniError {
	e := skel.ErrOwnNetns()
	return &cniError{code: e.Code, msg: e.Msg, cause: e.Cause}
}

// dispatch runs the command in the frame that all our plugins share, and returns the exit
// code of the process.
func (p *Process) dispatch() int {
	var conf netconf.NetConf
	var confErr error // about our own settings; errors in CNI's are reported first
	verb := func(run func(c *command, version string, confErr error) *cniError) func(*skel.Request) *skel.Error {
		return func(r *skel.Request) *skel.Error {
			c := &command{Process: p, conf: conf, request: request{
				containerID: r.ContainerID, netns: r.Netns, ifName: r.IfName, args: r.Args, path: r.Path, stdin: r.Stdin, frame: r,
			}}
			if err := run(c, r.Version, confErr); err != nil {
				return err.printable()
			}
			return nil
		}
	}
	plain := func(run func(c *command, confErr error) *cniError) func(*skel.Request) *skel.Error {
		return verb(func(c *command, _ string, confErr error) *cniError { return run(c, confErr) })
	}
	return skel.Run(&skel.Process{Getenv: p.Getenv, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr}, &skel.Plugin{
		About: "AWS CNI " + p.Version,
		Parse: func(stdin []byte) (name, version string, err error) {
			conf, confErr = netconf.Parse(stdin)
			return conf.Name, conf.CNIVersion, confErr
		},
		ChecksNetns: true,
		Add:         verb((*command).add),
		Del:         plain((*command).del),
		Check:       plain((*command).check),
		GC:          plain((*command).gc),
		Status:      plain((*command).status),
	})
}

package egress

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/egress/rules"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// ipamPlugin manages the addresses of the range.
const ipamPlugin = "host-local"

// delegation is a run of host-local with our own standard input, as the CNI library
// delegates.
type delegation struct {
	c     *command
	child *child
}

// delegate starts host-local. A binary that is being replaced is tried again.
func (c *command) delegate(verb string, changes ...string) (*delegation, error) {
	program, err := findPlugin(ipamPlugin, strings.Split(c.Path, ":"))
	if err != nil {
		return nil, err
	}
	env := with(c.p.Environ(), append(changes, "CNI_COMMAND="+verb)...)
	for try := 0; ; try++ {
		child, err := c.p.start(program, nil, env, c.Stdin)
		if errors.Is(err, syscall.ETXTBSY) && try < busyTries {
			<-time.After(busyPause)
			continue
		}
		if err != nil {
			return nil, errors.New("netplugin failed with no error message: " + err.Error())
		}
		return &delegation{c, child}, nil
	}
}

const (
	busyTries = 50
	busyPause = 100 * time.Millisecond
)

// wait is host-local's output, or its error in the words of the CNI library.
func (d *delegation) wait() ([]byte, error) {
	out, stderr, err := d.child.wait()
	var failed *exitError
	switch {
	case err == nil:
		_, _ = d.c.p.Stderr.Write(stderr)
		return out, nil
	case !errors.As(err, &failed):
		return nil, err
	case len(failed.stdout) == 0 && len(failed.stderr) == 0:
		return nil, errors.New("netplugin failed with no error message: " + failed.how)
	case len(failed.stdout) == 0:
		return nil, errors.New("netplugin failed: " + strconv.Quote(string(failed.stderr)))
	}
	msg, details, err := netconf.ParseCNIError(failed.stdout)
	switch {
	case err != nil:
		return nil, errors.New("netplugin failed but error parsing its diagnostic message " + strconv.Quote(string(failed.stdout)) + ": " + err.Error())
	case details != "":
		msg += "; " + details
	}
	return nil, errors.New(msg)
}

// run is delegate and wait.
func (c *command) run(verb string, changes ...string) ([]byte, error) {
	d, err := c.delegate(verb, changes...)
	if err != nil {
		return nil, err
	}
	return d.wait()
}

// findPlugin looks for a plugin as the CNI library does.
func findPlugin(name string, dirs []string) (string, error) {
	if len(dirs) == 1 && dirs[0] == "" {
		return "", errors.New("no paths provided")
	}
	for _, dir := range dirs {
		if file := path.Join(dir, name); regular(file, false) {
			return file, nil
		}
	}
	return "", errors.New("failed to find plugin " + strconv.Quote(name) + " in path [" + strings.Join(dirs, " ") + "]")
}

// readLease takes the one address out of host-local's result.
func (c *command) readLease(out []byte) (rules.Lease, *skel.Error) {
	r, err := netconf.ParseResult(out, c.Version)
	if err != nil {
		return rules.Lease{}, ipamError(err)
	}
	ips, routes := r.IPs, r.Routes
	for _, old := range []*netconf.ResultOldIP{r.IP4, r.IP6} {
		if old != nil {
			ips = append(ips, netconf.ResultIP{Address: old.IP, Gateway: old.Gateway})
			routes = append(routes, old.Routes...)
		}
	}
	switch len(ips) {
	case 0:
		return rules.Lease{}, internal(cause.PodNetworkSetup, textZeroIPs)
	case 1:
	default:
		return rules.Lease{}, internal(cause.PodNetworkSetup, textManyIPs+strconv.Itoa(len(ips))+textManyIPsEnd)
	}
	lease := rules.Lease{Address: ips[0].Address, Gateway: ips[0].Gateway}
	for _, route := range routes {
		lease.Routes = append(lease.Routes, rules.Route{Dst: route.Dst.Masked(), Gateway: route.GW})
	}
	return lease, nil
}

func ipamError(err error) *skel.Error {
	return &skel.Error{Code: skel.CodeInternal, Msg: textIPAM + err.Error(), Cause: cause.PodNetworkSetup,
		Details: ipamPlugin + " of CNI_PATH manages the egress addresses of this node, in the directory dataDir of the network configuration"}
}

package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/netstate"
	"cnictl/plugin/skel"
)

// ipamPlugin is the plugin that manages the addresses of the range.
const ipamPlugin = "host-local"

// delegation is a run of host-local with our own standard input. invoke's own Args use the
// process's variables; ours may name another sandbox.
type delegation struct {
	program string
	stdin   []byte
	env     []string // the last of variables with the same name counts
	exec    invoke.Exec
}

func (d *delegation) AsEnv() []string { return d.env }

func (c *command) delegation(verb string, changes ...string) (*delegation, error) {
	program, err := invoke.FindInPath(ipamPlugin, filepath.SplitList(c.Path))
	if err != nil {
		return nil, err
	}
	return &delegation{
		program: program, stdin: c.Stdin, env: append(append(c.p.Environ(), changes...), "CNI_COMMAND="+verb),
		exec: patient{&invoke.DefaultExec{RawExec: &invoke.RawExec{Stderr: c.p.Stderr}}},
	}, nil
}

// patient retries a program that is still being written. [invoke.RawExec] tries to, but
// starts the same exec.Cmd again, which os/exec refuses.
type patient struct{ invoke.Exec }

const (
	busyTries      = 5 // RawExec waits a second before each
	alreadyStarted = "exec: already started"
)

func (p patient) ExecPlugin(ctx context.Context, program string, stdin []byte, env []string) (out []byte, err error) {
	for range busyTries {
		if out, err = p.Exec.ExecPlugin(ctx, program, stdin, env); err == nil || !strings.Contains(err.Error(), alreadyStarted) {
			return out, err
		}
	}
	return nil, fmt.Errorf("%s is being written, for %d s: %w", program, busyTries, err)
}

// startLease makes host-local assign an address; wait returns it.
func (c *command) startLease() (wait func() (types.Result, error), _ error) {
	d, err := c.delegation("ADD")
	if err != nil {
		return nil, err
	}
	type ended struct {
		result types.Result
		err    error
	}
	done := make(chan ended, 1)
	go func() {
		ctx, cancel := context.WithTimeout(c.ctx, childDeadline)
		defer cancel()
		r, err := invoke.ExecPluginWithResult(ctx, d.program, d.stdin, d, d.exec)
		done <- ended{r, err}
	}()
	return func() (types.Result, error) {
		e := <-done
		return e.result, e.err
	}, nil
}

// run calls host-local with another verb.
func (c *command) run(verb string, changes ...string) error {
	d, err := c.delegation(verb, changes...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, childDeadline)
	defer cancel()
	return invoke.ExecPluginWithoutResult(ctx, d.program, d.stdin, d, d.exec)
}

// leaseOf extracts the only address from host-local's result.
func leaseOf(r types.Result) (egress.Lease, *skel.Error) {
	now, err := types100.NewResultFromResult(r)
	if err != nil {
		return egress.Lease{}, ipamError(err)
	}
	switch len(now.IPs) {
	case 0:
		return egress.Lease{}, internal(cause.PodNetworkSetup, textZeroIPs)
	case 1:
	default:
		return egress.Lease{}, internal(cause.PodNetworkSetup, textManyIPs+strconv.Itoa(len(now.IPs))+textManyIPsEnd)
	}
	lease := egress.Lease{Address: prefixOf(now.IPs[0].Address), Gateway: addressOf(now.IPs[0].Gateway)}
	for _, route := range now.Routes {
		lease.Routes = append(lease.Routes, netstate.Route{Dst: prefixOf(route.Dst).Masked(), Gateway: addressOf(route.GW)})
	}
	return lease, nil
}

func addressOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip) // invalid if none
	return a.Unmap()
}

func prefixOf(n net.IPNet) netip.Prefix {
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addressOf(n.IP), bits)
}

func ipamError(err error) *skel.Error {
	return &skel.Error{Code: skel.CodeInternal, Msg: textIPAM + err.Error(), Cause: cause.PodNetworkSetup,
		Details: ipamPlugin + " of CNI_PATH manages the egress addresses of this node, in the directory dataDir of the network configuration"}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cnictl/deploy"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/network/vpc"
)

// APIServer is where nodes reach the API server, at the address of the fabric's EC2 API.
var APIServer = netip.AddrPortFrom(vpc.EC2.Addr(), 6443)

// The network is one dual-stack VPC with one dual-stack subnet. Services use kubeapi's range or
// an IPv6 range.
var (
	vpcCIDR      = netip.MustParsePrefix("10.0.0.0/16")
	vpcIPv6      = netip.MustParsePrefix("2001:db8:1::/56")
	subnetCIDR   = netip.MustParsePrefix("10.0.0.0/20")
	subnetIPv6   = netip.MustParsePrefix("2001:db8:1:1::/64")
	servicesIPv6 = netip.MustParsePrefix("fd00:10:96::/108")
)

// Cluster is a running cluster. Its methods are safe for concurrent use, except for Add
// and Close.
type Cluster struct {
	API        *kubeapi.Server
	World      *fakeaws.World
	Fabric     *vpc.Fabric
	Subnet     fakeaws.Subnet
	Machines   []*Machine
	Kubeconfig string // an administrator's, for the network namespace of the caller
	Values     string // file with the values of the CNI's chart

	opts     Options
	programs programs
	identity *identity
	undo     []func() error // in the order of the steps they undo
}

// Start runs a cluster and returns when all nodes are Ready. The context bounds only the
// start.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{opts: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if err := c.opts.check(); err != nil {
		return err
	}
	if c.programs, err = locate(c.opts.Binaries); err != nil {
		return err
	}
	if err := SweepCgroups(); err != nil {
		return err
	}
	if c.identity, err = newIdentity(); err != nil {
		return err
	}
	c.onClose(c.identity.close)
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"VPC", c.startVPC},
		{"API server", c.startAPI},
		{"controllers and scheduler", c.startControl},
		{"nodes", c.startMachines},
		{"CNI", c.startCNI},
	} {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		c.say("%s: up after %.1fs", step.what, time.Since(began).Seconds())
	}
	return nil
}

func (c *Cluster) say(format string, args ...any) { fmt.Fprintf(c.opts.Progress, format+"\n", args...) }

func (c *Cluster) onClose(f func() error) { c.undo = append(c.undo, f) }

// startVPC creates the account, its network and the link to it.
func (c *Cluster) startVPC(context.Context) error {
	c.World = fakeaws.NewWorld(fakeaws.Options{})
	c.onClose(func() error { c.World.Close(); return nil })
	v := c.World.AddVPC(vpcCIDR, vpcIPv6)
	subnet, err := c.World.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: subnetCIDR, IPv6CIDR: subnetIPv6})
	if err != nil {
		return err
	}
	c.Subnet = subnet
	family := "ipv4"
	if c.opts.IPv6 {
		family = "ipv6"
	}
	role, err := deploy.IAM("aws-node-" + family)
	if err == nil {
		err = c.World.SetPolicy("", string(role))
	}
	if err != nil {
		return fmt.Errorf("grant the nodes' role: %w", err)
	}
	if c.Fabric, err = vpc.NewFabric(vpc.Options{World: c.World}); err != nil {
		return err
	}
	c.onClose(c.Fabric.Close)
	if err := linkUp(c.Fabric.NS, vpcCIDR, vpcIPv6); err != nil {
		return err
	}
	c.onClose(linkDown)
	return nil
}

// startAPI runs etcd and the API server, and makes the server reachable from the nodes.
func (c *Cluster) startAPI(ctx context.Context) error {
	dir, err := c.mkdir("control")
	if err != nil {
		return err
	}
	if c.API, err = kubeapi.Open(ctx, dir, kubeapi.Options{Args: c.apiArgs(), Empty: true}); err != nil {
		return err
	}
	c.onClose(c.API.Close)
	for _, at := range []netip.AddrPort{APIServer, c.apiForPods()} {
		if err := c.serveAPI(at); err != nil {
			return fmt.Errorf("serve nodes at %s: %w", at, err)
		}
		if at == c.apiForPods() {
			break // with IPv4 they are the same
		}
	}
	if err := c.publishAPI(ctx); err != nil {
		return err
	}
	c.Kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	return c.WriteKubeconfig(c.Kubeconfig, c.API.Endpoint())
}

// serveAPI forwards an address in the fabric to the API server.
func (c *Cluster) serveAPI(at netip.AddrPort) error {
	listener, err := c.Fabric.NS.Listen("tcp", at.String())
	if err != nil {
		return err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("the listener is a %T", listener)
	}
	_, stop := c.API.Forward(tcp)
	c.onClose(func() error { stop(); return nil })
	return nil
}

// apiForPods returns the endpoint of the Service "kubernetes", in the family of the Services.
func (c *Cluster) apiForPods() netip.AddrPort {
	if c.opts.IPv6 {
		return netip.AddrPortFrom(uplinkGatewayIPv6.Addr(), APIServer.Port())
	}
	return APIServer
}

// apiArgs admit pods with the token of their ServiceAccount, which the controllers make
// possible, and set the family of Services. The advertised address, which is unused, must be
// of the same family.
func (c *Cluster) apiArgs() []string {
	args := []string{"--disable-admission-plugins="}
	if c.opts.IPv6 {
		args = append(args, "--service-cluster-ip-range="+servicesIPv6.String(), "--advertise-address="+UplinkIPv6.Addr().String())
	}
	return args
}

// startControl runs the controller manager and the scheduler.
func (c *Cluster) startControl(context.Context) error {
	dir := filepath.Dir(c.Kubeconfig)
	common := []string{"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--v=1"}
	for _, p := range []struct {
		program string
		args    []string
	}{
		// The CNI assigns pod addresses: nodes get no range.
		{controllerManager, []string{"--allocate-node-cidrs=false", "--concurrent-deployment-syncs=2", "--root-ca-file=" + c.API.AuthorityFile()}},
		{scheduler, nil},
	} {
		started, err := startProcess(dir, c.programs[p.program], append(p.args, common...)...)
		if err != nil {
			return err
		}
		c.onClose(started.kill)
	}
	return nil
}

// startMachines boots all nodes in parallel.
func (c *Cluster) startMachines(ctx context.Context) error {
	for i, o := range c.opts.Nodes {
		m, err := c.newMachine(i, o)
		if err != nil {
			return err
		}
		c.Machines = append(c.Machines, m)
		c.onClose(m.close)
	}
	return c.each(func(m *Machine) error { return m.boot(ctx) })
}

// startCNI installs the CNI's chart and waits until all nodes are Ready.
func (c *Cluster) startCNI(ctx context.Context) error {
	crds, err := definitions()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := c.apply(ctx, crd); err != nil {
			return err
		}
	}
	if err := c.writeValues(); err != nil {
		return err
	}
	if _, err := c.Helm(ctx, "install", Release, c.Chart(), "--values", c.Values); err != nil {
		return err
	}
	return c.each(func(m *Machine) error { return errors.Join(m.AwaitCNI(ctx), m.AwaitReady(ctx)) })
}

// each calls a function for all nodes in parallel.
func (c *Cluster) each(do func(*Machine) error) error {
	errs := make([]error, len(c.Machines))
	var wg sync.WaitGroup
	for i, m := range c.Machines {
		wg.Go(func() {
			if errs[i] = do(m); errs[i] != nil {
				errs[i] = fmt.Errorf("node %s: %w", m.Name, errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Add boots one more node. The CNI's DaemonSets do not select it, so it does not become
// Ready.
func (c *Cluster) Add(ctx context.Context, o NodeOptions) (*Machine, error) {
	m, err := c.newMachine(len(c.Machines), o)
	if err != nil {
		return nil, err
	}
	m.labels[computeType] = notOurs
	c.Machines = append(c.Machines, m)
	c.onClose(m.close)
	if err := m.boot(ctx); err != nil {
		return nil, fmt.Errorf("node %s: %w", m.Name, err)
	}
	return m, nil
}

func (c *Cluster) mkdir(parts ...string) (string, error) {
	dir := filepath.Join(append([]string{c.opts.Dir}, parts...)...)
	return dir, os.MkdirAll(dir, 0o755)
}

// Close ends the cluster and everything in it; the files stay. It may be called again.
func (c *Cluster) Close() error {
	var errs []error
	for i := len(c.undo) - 1; i >= 0; i-- {
		errs = append(errs, c.undo[i]())
	}
	c.undo = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end cluster: %w", err)
	}
	return nil
}

package vpc

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/netns"
)

// Fabric is a running VPC network. It follows its world until Close.
type Fabric struct {
	NS      *netns.NS // the router's namespace; it has every gateway address
	Outside *netns.NS // the namespace of the outside host

	world   *fakeaws.World
	links   *links
	servers *servers
	outside *outside
	cancel  func() // ends the subscription
	log     *slog.Logger

	mu       sync.Mutex // guards what follows
	gateways map[string]netip.Addr
	errs     []error
}

// NewFabric builds the network for the current world and follows its changes. The
// world must not change while NewFabric runs.
func NewFabric(o Options) (*Fabric, error) {
	if o.World == nil {
		return nil, errors.New("new fabric: no world")
	}
	if o.LinkName == nil {
		o.LinkName = ENALinkName
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fabric{world: o.World, log: o.Log, gateways: map[string]netip.Addr{}}
	if err := f.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("new fabric: %w", err), f.Close())
	}
	return f, nil
}

func (f *Fabric) build(o Options) error {
	router, err := newRouter()
	if err != nil {
		return err
	}
	f.NS = router.ns
	f.links = &links{
		router: router, delay: o.LinkDelay, name: o.LinkName, report: f.fail,
		stopped: make(chan struct{}),
		enis:    map[string]*attached{}, owners: map[netip.Prefix]string{}, nodes: map[string]*netns.NS{},
	}
	if f.links.firewall, err = newFirewall(router); err != nil {
		return err
	}
	if f.outside, err = newOutside(router); err != nil {
		return err
	}
	f.Outside = f.outside.ns
	for _, a := range []netip.Addr{IMDS.Addr(), EC2.Addr()} {
		if err := router.addLocal(a); err != nil {
			return err
		}
	}
	if f.servers, err = startServers(router.ns, o.World, f.links.instanceOf); err != nil {
		return err
	}
	f.cancel = o.World.Subscribe(f.follow)
	for _, e := range o.World.ENIs() {
		if e.Attached() {
			f.follow(fakeaws.Change{Kind: fakeaws.ENIAttached, ENI: e})
			f.followBranches(e)
		}
	}
	return f.Err()
}

// Join registers an instance's network namespace: the links of its attached ENIs
// appear there at once, later ones as they are attached.
func (f *Fabric) Join(instanceID string, node *netns.NS) error {
	return f.links.join(instanceID, node)
}

// Leave removes an instance's links.
func (f *Fabric) Leave(instanceID string) error { return f.links.leave(instanceID) }

// SourceDrops counts the packets from an ENI that the source check dropped. The
// count restarts with the ENI's link.
func (f *Fabric) SourceDrops(eniID string) (uint64, error) {
	link, ok := f.links.linkOf(eniID)
	if !ok {
		return 0, fmt.Errorf("count dropped packets: %s has no link", eniID)
	}
	drops, err := f.links.firewall.sourceDrops()
	return drops[link], err
}

// PrivateDrops counts the packets to the outside host that did not come from an instance's
// primary address.
func (f *Fabric) PrivateDrops() (uint64, error) { return f.links.firewall.notPublic() }

// Instance returns the instance that currently owns an address.
func (f *Fabric) Instance(a netip.Addr) (id string, ok bool) {
	id = f.links.instanceOf(a)
	return id, id != ""
}

// Err returns the errors that occurred while following the world, where no caller could
// receive them. Tests require nil.
func (f *Fabric) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

func (f *Fabric) fail(err error) {
	f.log.Error("fabric does not follow its world", "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// Close shuts the network down. Its error includes Err.
func (f *Fabric) Close() error {
	if f.cancel != nil {
		f.cancel()
	}
	errs := []error{f.Err()}
	if f.servers != nil {
		errs = append(errs, f.servers.close())
	}
	if f.links != nil {
		errs = append(errs, f.links.stop())
	}
	if f.outside != nil {
		errs = append(errs, f.outside.close())
	}
	if f.links != nil {
		errs = append(errs, f.links.router.close())
	}
	return errors.Join(errs...)
}

// Links lists the ENI links in the fabric, as "f1 of eni-...". It is empty when all
// instances are gone.
func (f *Fabric) Links() ([]string, error) { return f.links.list() }

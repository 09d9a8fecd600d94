package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/vpc"
)

// site is a VPC with one fresh node.
type site struct {
	world  *fakeaws.World
	fabric *vpc.Fabric
	node   *node.Node
	dir    string
	calls  []func() // functions that undo what was added for the node
}

// servingWithin bounds the start of a daemon.
const servingWithin = 60 * time.Second

func (s *session) newSite(ctx context.Context, instanceType string, o fakeaws.Options) (_ *site, err error) {
	s.sites++
	t := &site{dir: filepath.Join(s.dir, fmt.Sprint(s.sites))}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return nil, err
	}
	t.world = fakeaws.NewWorld(o)
	v := t.world.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := t.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.0.0.0/18")})
	if err != nil {
		return nil, err
	}
	instance, err := t.world.AddInstance(fakeaws.InstanceSpec{Type: instanceType, SubnetID: subnet.ID})
	if err != nil {
		return nil, err
	}
	if t.fabric, err = vpc.NewFabric(vpc.Options{World: t.world}); err != nil {
		return nil, err
	}
	t.node, err = node.Start(ctx, node.Options{
		Fabric: t.fabric, World: t.world, InstanceID: instance.ID, Dir: t.dir, Binaries: s.bin, Name: fmt.Sprintf("bench-%d", s.sites),
	})
	return t, err
}

// close stops the node. Requests that EC2 would not have understood are an error, because
// they make the measurement worthless.
func (t *site) close() error {
	var errs []error
	if t.node != nil {
		errs = append(errs, t.node.Close())
	}
	for _, undo := range t.calls {
		undo()
	}
	if t.fabric != nil {
		errs = append(errs, t.fabric.Close())
	}
	if t.world != nil {
		if bad := t.world.Violations(); len(bad) > 0 {
			errs = append(errs, fmt.Errorf("requests that EC2 or the metadata service would not understand: %v", bad))
		}
		t.world.Close()
	}
	return errors.Join(errs...)
}

// serve starts the daemon and returns how long it takes until it serves.
func (t *site) serve(ctx context.Context, env ...map[string]string) (time.Duration, error) {
	all := map[string]string{"CLUSTER_NAME": "bench"}
	for _, e := range env {
		maps.Copy(all, e)
	}
	begin := time.Now()
	if err := t.node.StartDaemon(all); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, servingWithin)
	defer cancel()
	err := t.node.WaitServing(ctx)
	return time.Since(begin), err
}

// stop stops the daemon as a rollout does.
func (t *site) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, servingWithin)
	defer cancel()
	_, err := t.node.StopDaemon(ctx, unix.SIGTERM)
	return err
}

// until waits for a condition of the world or the node.
func until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

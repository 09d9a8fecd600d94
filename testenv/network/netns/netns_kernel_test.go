package netns_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

func TestDiscard_NotOnTheFirstThread(t *testing.T) {
	// Not parallel: this goroutine visits all threads, including the first.
	for i := 0; i < 20_000 && unix.Gettid() != unix.Getpid(); i++ {
		runtime.Gosched()
	}
	for range 200 {
		err := netns.Discard(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("on the first thread")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A namespace disappears when it is closed: nothing of the process stays in it, in
// particular not the first thread, which the runtime cannot end.
func TestClose_LeavesNoThreadBehind(t *testing.T) {
	testenv.RequireKernel(t, "veth")
	t.Parallel()
	outer := netns.New(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			ns, err := netns.Create("")
			if err != nil {
				t.Error(err)
				return
			}
			err = outer.Do(func() error {
				attrs := netlink.NewLinkAttrs()
				attrs.Name = fmt.Sprintf("v%d", i)
				veth := netlink.NewVeth(attrs)
				veth.PeerName, veth.PeerNamespace = "peer", netlink.NsFd(ns.FD())
				return netlink.LinkAdd(veth)
			})
			if err := errors.Join(err, ns.Do(netns.LoopbackUp), ns.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// The kernel removes a veth with the namespace of its peer.
	testenv.EventuallyErr(t, "the end of the namespaces", func() error {
		var links []netlink.Link
		if err := outer.Do(func() (err error) { links, err = netns.Dump(netlink.LinkList); return err }); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Type() == "veth" }) {
			return fmt.Errorf("%d links left", len(links))
		}
		return nil
	})
}

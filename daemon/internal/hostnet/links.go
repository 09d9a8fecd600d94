package hostnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// waitLink waits for a link with a MAC, whatever its name. When ctx ends, it returns
// the context's error.
func waitLink(ctx context.Context, mac string) (netstate.Link, error) {
	want, err := parseMAC(mac)
	if err != nil {
		return netstate.Link{}, err
	}
	link, ok, err := findLink(want)
	if ok || err != nil {
		return link, err
	}
	watch, err := watchLinks()
	if err != nil {
		return netstate.Link{}, err
	}
	defer watch.Close()
	// A read in progress ends when its deadline moves into the past.
	defer context.AfterFunc(ctx, func() { _ = watch.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		// The watch started before this dump, so nothing is missed in between.
		link, ok, err := findLink(want)
		if ok || err != nil {
			return link, err
		}
		if err := readUntil(watch, want); err != nil {
			if ctx.Err() != nil {
				return netstate.Link{}, ctx.Err()
			}
			return netstate.Link{}, fmt.Errorf("wait for link: %w", err)
		}
	}
}

func parseMAC(text string) (netstate.MAC, error) {
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != len(netstate.MAC{}) {
		return netstate.MAC{}, fmt.Errorf("MAC address %q is not six bytes with colons", text)
	}
	return netstate.MAC(hw), nil
}

func findLink(mac netstate.MAC) (link netstate.Link, ok bool, _ error) {
	var links []netstate.Link
	err := with(func(c *rtnl.Conn) (err error) {
		links, err = c.Links()
		return err
	})
	if err != nil {
		return link, false, err
	}
	link, ok = pickLink(links, mac)
	return link, ok, nil
}

// stacked are the kinds of links that take the MAC of the link beneath them.
var stacked = []string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "bond", "team", "bridge"}

// pickLink picks the link with a MAC: the device itself before links stacked on it, then
// the oldest.
func pickLink(links []netstate.Link, mac netstate.MAC) (best netstate.Link, ok bool) {
	for _, l := range links {
		if l.MAC != mac || mac == (netstate.MAC{}) {
			continue
		}
		above := slices.Contains(stacked, l.Kind)
		bestAbove := slices.Contains(stacked, best.Kind)
		if !ok || bestAbove && !above || bestAbove == above && l.Index < best.Index {
			best, ok = l, true
		}
	}
	return best, ok
}

// ErrNoLink is wrapped by the error of [Host.LinkIndex] for a MAC that no link has.
var ErrNoLink = errors.New("no link of this node has it; on EC2 a link appears about a second after its ENI is attached")

// LinkIndex finds the interface index of the link with a MAC, whatever its name, without
// waiting for one. The error wraps [ErrNoLink] if there is none.
func (h *Host) LinkIndex(_ context.Context, mac string) (int, error) {
	want, err := parseMAC(mac)
	if err != nil {
		return 0, err
	}
	link, ok, err := findLink(want)
	switch {
	case err != nil:
		return 0, fmt.Errorf("find link with MAC address %s: %w", mac, err)
	case !ok:
		return 0, fmt.Errorf("find link with MAC address %s: %w", mac, ErrNoLink)
	}
	return int(link.Index), nil
}

// watchLinks subscribes to link changes in the calling thread's namespace.
func watchLinks() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("watch links: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		return nil, errors.Join(fmt.Errorf("watch links: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "rtnetlink link events"), nil
}

// readUntil reads events until one concerns a link with the MAC, or some were lost.
func readUntil(watch *os.File, mac netstate.MAC) error {
	buf := make([]byte, 32<<10) // an event is one link: some kilobytes
	for {
		n, err := watch.Read(buf)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return nil // events were lost: look again
		case err != nil:
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return fmt.Errorf("parse link event: %w", err)
		}
		if slices.ContainsFunc(messages, func(m syscall.NetlinkMessage) bool { return concerns(m, mac) }) {
			return nil
		}
	}
}

func concerns(m syscall.NetlinkMessage, mac netstate.MAC) bool {
	if m.Header.Type != unix.RTM_NEWLINK {
		return false
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(&m)
	if err != nil {
		return true // look again
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.IFLA_ADDRESS && slices.Equal(a.Value, mac[:]) {
			return true
		}
	}
	return false
}

// PodLinks returns the interface indexes of the host's links by name.
func (h *Host) PodLinks(_ context.Context) (map[string]int, error) {
	out := map[string]int{}
	err := with(func(c *rtnl.Conn) error {
		links, err := c.Links()
		for _, l := range links {
			out[l.Name] = int(l.Index)
		}
		return err
	})
	return out, err
}

package node_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cnictl/testenv/netns"
	"cnictl/testenv/node"
)

// The stand-in daemon hands out the addresses in the variable POOL over the lean
// socket, one line per request: "ADD <id>" → address, "DEL <id>" → address or "-".
// It writes the checkpoint in upstream's format.
func daemonMain() int {
	if err := os.MkdirAll(filepath.Dir(node.LeanSocket), 0o755); err != nil {
		return fatal(err)
	}
	// Before listening: a test may send the signal as soon as it sees the socket.
	stop := make(chan os.Signal, 1)
	if os.Getenv("STANDIN_DEAF") != "" {
		signal.Ignore(unix.SIGTERM)
	} else {
		signal.Notify(stop, unix.SIGTERM)
	}
	l, err := net.Listen("unix", node.LeanSocket)
	if err != nil {
		return fatal(err)
	}
	go serveStandIn(l)
	<-stop
	fmt.Println("stand-in daemon: terminated")
	return 0
}

func serveStandIn(l net.Listener) {
	free := strings.Fields(os.Getenv("POOL"))
	owned := map[string]string{}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil { // WaitServing's probe
			c.Close()
			continue
		}
		verb, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		answer := "-"
		switch {
		case verb == "ADD" && len(free) > 0:
			answer, free = free[0], free[1:]
			owned[id] = answer
		case verb == "DEL" && owned[id] != "":
			answer = owned[id]
			free = append(free, answer)
			delete(owned, id)
		}
		if err := writeCheckpoint(owned); err != nil {
			answer = err.Error()
		}
		fmt.Fprintln(c, answer)
		c.Close()
	}
}

func writeCheckpoint(owned map[string]string) error {
	allocations := []map[string]string{}
	for id, a := range owned {
		allocations = append(allocations, map[string]string{"containerID": id, "ifName": "eth0", "ipv4": a})
	}
	data, err := json.Marshal(map[string]any{"version": "vpc-cni-ipam/1", "allocations": allocations})
	if err != nil {
		return err
	}
	return os.WriteFile(node.Checkpoint, data, 0o600)
}

// The stand-in plugin connects a pod as aws-cni does. The key "leak" in its configuration makes
// DEL leave the named state behind.
func pluginMain() int {
	err := runPlugin()
	if err == nil {
		return 0
	}
	out, _ := json.Marshal(map[string]any{"cniVersion": "0.4.0", "code": 999, "msg": err.Error(), "details": "stand-in"})
	os.Stdout.Write(out)
	return 1
}

type standInConfig struct {
	VethPrefix string          `json:"vethPrefix"`
	Leak       string          `json:"leak"`
	PrevResult json.RawMessage `json:"prevResult"`
}

func runPlugin() error {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var c standInConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	command, id := os.Getenv("CNI_COMMAND"), os.Getenv("CNI_CONTAINERID")
	host := c.VethPrefix + id[:11]
	switch command {
	case "ADD":
		answer, err := ask("ADD " + id)
		if err != nil {
			return err
		}
		address, err := netip.ParseAddr(answer)
		if err != nil {
			return errors.New("no address left")
		}
		if err := wire(host, address); err != nil {
			return err
		}
		_, err = fmt.Printf(`{"cniVersion":"0.4.0","ips":[{"version":"4","address":"%s/32"}],"dns":{}}`, address)
		return err
	case "DEL":
		if c.Leak == "allocation" {
			return nil
		}
		answer, err := ask("DEL " + id)
		if err != nil || answer == "-" {
			return err
		}
		if c.PrevResult == nil {
			return errors.New("no prevResult")
		}
		if c.Leak == "rule" {
			return nil
		}
		return netlink.RuleDel(podRule(netip.MustParseAddr(answer)))
	}
	return fmt.Errorf("unknown command %q", command)
}

func ask(line string) (string, error) {
	c, err := net.Dial("unix", node.LeanSocket)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprintln(c, line)
	answer, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer), err
}

func podRule(a netip.Addr) *netlink.Rule {
	r := netlink.NewRule()
	r.Priority, r.Dst, r.Table = 512, ipNet(netip.PrefixFrom(a, 32)), 254
	return r
}

// wire creates the pod's links, routes and rule.
func wire(host string, a netip.Addr) error {
	pod, err := netns.FromPath(os.Getenv("CNI_NETNS"))
	if err != nil {
		return err
	}
	defer pod.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = host
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace = os.Getenv("CNI_IFNAME"), netlink.NsFd(pod.FD())
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	hostLink, err := netlink.LinkByName(host)
	if err != nil {
		return err
	}
	gateway := netip.MustParsePrefix("169.254.1.1/32")
	err = pod.Do(func() error {
		link, err := netlink.LinkByName(veth.PeerName)
		if err != nil {
			return err
		}
		i := link.Attrs().Index
		return errors.Join(
			netlink.LinkSetUp(link),
			netlink.RouteAdd(&netlink.Route{LinkIndex: i, Dst: ipNet(gateway), Scope: netlink.SCOPE_LINK}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: i, Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")), Gw: gateway.Addr().AsSlice()}),
			netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, 32))}),
			netlink.NeighAdd(&netlink.Neigh{LinkIndex: i, State: netlink.NUD_PERMANENT, IP: gateway.Addr().AsSlice(), HardwareAddr: hostLink.Attrs().HardwareAddr}),
		)
	})
	return errors.Join(err,
		netlink.LinkSetUp(hostLink),
		netlink.RouteReplace(&netlink.Route{LinkIndex: hostLink.Attrs().Index, Dst: ipNet(netip.PrefixFrom(a, 32)), Scope: netlink.SCOPE_LINK}),
		netlink.RuleAdd(podRule(a)))
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func fatal(err error) int {
	fmt.Fprintln(os.Stderr, "stand-in daemon:", err)
	return 1
}

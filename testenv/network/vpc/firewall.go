package vpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"cnictl/testenv/network/netns"
)

// rulesets are the fabric's checks. An interface name is an element of
//
//	unchecked     when its ENI has SourceDestCheck=false
//	source_drops  once one of its packets was dropped, with the count
//
// and an address is an element of public when it may reach the outside host.
// "fib ... missing" means that the route back to the source does not lead through the
// link the packet came from. Link-local IPv6 addresses never leave the link, and neighbour
// discovery needs them.
const rulesets = `
table inet fabric {
	set unchecked { type ifname; }
	set public { type ipv4_addr; }
	set source_drops { type ifname; size 65535; flags dynamic; counter; }
	counter not_public { }
	chain prerouting {
		type filter hook prerouting priority raw; policy accept;
		ip6 saddr { ::, fe80::/10 } accept
		iifname "f*" iifname != @unchecked fib saddr . iif oif missing update @source_drops { iifname } drop
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		oifname "` + internetLink + `" meta nfproto ipv6 drop
		oifname "` + internetLink + `" ip saddr != @public counter name "not_public" drop
		iifname "` + internetLink + `" ip daddr != @public drop
	}
}
`

// firewall applies the fabric's checks with nft in its namespace.
type firewall struct{ ns *netns.NS }

func newFirewall(r *router) (firewall, error) {
	fw := firewall{r.ns}
	_, err := fw.nft(rulesets, "-f", "-")
	return fw, err
}

// setUnchecked turns the source check of a link off or on.
func (fw firewall) setUnchecked(link string, unchecked bool) error {
	return fw.setElement("unchecked", `"`+link+`"`, unchecked)
}

// setPublic allows or forbids an address to reach the outside host.
func (fw firewall) setPublic(a netip.Addr, public bool) error {
	return fw.setElement("public", a.String(), public)
}

func (fw firewall) setElement(set, element string, present bool) error {
	// Adding the element first makes the deletion work even if it was absent.
	script := fmt.Sprintf("add element inet fabric %s { %s }\n", set, element)
	if !present {
		script += fmt.Sprintf("delete element inet fabric %s { %s }\n", set, element)
	}
	_, err := fw.nft(script, "-f", "-")
	return err
}

// sourceDrops returns, per link, how many packets the source check dropped.
func (fw firewall) sourceDrops() (map[string]uint64, error) {
	out, err := fw.nft("", "-j", "list", "set", "inet", "fabric", "source_drops")
	if err != nil {
		return nil, err
	}
	drops := map[string]uint64{}
	var listing struct {
		NFTables []struct {
			Set struct {
				Elem []struct {
					Elem struct {
						Val     string `json:"val"`
						Counter struct {
							Packets uint64 `json:"packets"`
						} `json:"counter"`
					} `json:"elem"`
				} `json:"elem"`
			} `json:"set"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return nil, fmt.Errorf("read nft's list of dropped sources: %w", err)
	}
	for _, o := range listing.NFTables {
		for _, e := range o.Set.Elem {
			drops[e.Elem.Val] = e.Elem.Counter.Packets
		}
	}
	return drops, nil
}

// notPublic counts the packets to the outside host from addresses that may not reach it.
func (fw firewall) notPublic() (uint64, error) {
	out, err := fw.nft("", "-j", "list", "counter", "inet", "fabric", "not_public")
	if err != nil {
		return 0, err
	}
	var listing struct {
		NFTables []struct {
			Counter struct {
				Packets uint64 `json:"packets"`
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return 0, fmt.Errorf("read nft's counter: %w", err)
	}
	var n uint64
	for _, o := range listing.NFTables {
		n += o.Counter.Packets
	}
	return n, nil
}

func (fw firewall) nft(stdin string, args ...string) ([]byte, error) {
	var out []byte
	err := fw.ns.Do(func() error { // the child inherits the thread's namespace
		cmd := exec.Command("nft", args...)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		var err error
		if out, err = cmd.Output(); err != nil {
			return fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
		}
		return nil
	})
	return out, err
}

package fleetsim

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/ipam"
)

// Everything here is written by hand as each upstream release answers, without our types, so
// that readers are tested against upstream's format rather than ours.

// upstreamPaths are upstream's paths. It lists them in random order; here each node has one.
var upstreamPaths = []string{"/v1/enis", "/v1/eni-configs", "/v1/networkutils-env-settings", "/v1/ipamd-env-settings"}

// serveUpstream answers like upstream, which sets no Content-Type.
func (n *node) serveUpstream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	body := ""
	p := n.profile.policy
	switch r.URL.Path {
	case "/v1/enis":
		n.withWorld(func(w *world) { body = w.upstreamENIs() })
	case "/v1/eni-configs":
		body = `"default"`
		if p.CustomNetworking {
			body = strconv.Quote(n.zone)
		}
		if n.release != "" && minor(n.release) < 8 {
			body = `{"ENI":{},"MyENI":"default","EniConfigAnnotationDef":"k8s.amazonaws.com/eniConfig","EniConfigLabelDef":"k8s.amazonaws.com/eniConfig"}`
		}
	case "/v1/networkutils-env-settings":
		body = `{"AWS_EXTERNAL_SERVICE_CIDRS":null,"AWS_VPC_CNI_NODE_PORT_SUPPORT":true,"AWS_VPC_ENI_MTU":9001,"AWS_VPC_K8S_CNI_CONNMARK":128,"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS":null,"AWS_VPC_K8S_CNI_EXTERNALSNAT":false,"AWS_VPC_K8S_CNI_RANDOMIZESNAT":2,"AWS_VPC_K8S_CNI_VETHPREFIX":"eni"}`
	case "/v1/ipamd-env-settings":
		body = fmt.Sprintf(`{"AWS_MANAGE_ENIS_NON_SCHEDULABLE":false,"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":%t,"ENABLE_SUBNET_DISCOVERY":true,"WARM_ENI_TARGET":%d,"WARM_IP_TARGET":%d}`, p.CustomNetworking, p.WarmENI, p.WarmIP)
	default:
		order := append(upstreamPaths[n.index%4:len(upstreamPaths):len(upstreamPaths)], upstreamPaths[:n.index%4]...)
		body = `{"AvailableCommands":["` + strings.Join(order, `","`) + `"]}`
	}
	_, _ = w.Write([]byte(body))
}

// upstreamENIs returns /v1/enis in the format of the node's release.
func (w *world) upstreamENIs() string {
	release := minor(w.node.release)
	snap := w.Book.Snapshot()
	if release < 20 {
		return w.upstreamCard(snap.ENIs, release)
	}
	byCard := map[int][]ipam.ENIState{}
	last := 0
	for _, e := range snap.ENIs {
		byCard[e.Card] = append(byCard[e.Card], e)
		last = max(last, e.Card)
	}
	var cards []string
	for card := range last + 1 {
		if enis, ok := byCard[card]; ok {
			cards = append(cards, strconv.Quote(strconv.Itoa(card))+":"+w.upstreamCard(enis, release))
		}
	}
	return "{" + strings.Join(cards, ",") + "}"
}

func (w *world) upstreamCard(enis []ipam.ENIState, release int) string {
	total, assigned := 0, 0
	var out []string
	for _, e := range enis {
		if e.Held {
			continue
		}
		for _, c := range e.CIDRs {
			if !c.Held {
				total += size(c.Prefix)
				assigned += c.Assigned
			}
		}
		out = append(out, strconv.Quote(string(e.ID))+":"+w.upstreamENI(e, release))
	}
	if w.node.has(Lying) {
		total, assigned = total+5, -2
	}
	return fmt.Sprintf(`{"TotalIPs":%d,"AssignedIPs":%d,"ENIs":{%s}}`, total, assigned, strings.Join(out, ","))
}

func (w *world) upstreamENI(e ipam.ENIState, release int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"ID":%q,`, e.ID)
	if release < 9 {
		var addresses []string
		for _, c := range e.CIDRs {
			addresses = append(addresses, fmt.Sprintf(`%q:%s`, c.Prefix.Addr(), w.upstreamAddress(c, c.Prefix.Addr(), release)))
		}
		fmt.Fprintf(&b, `"IsPrimary":%t,"IsTrunk":%t,"IsEFA":%t,"DeviceNumber":%d,"IPv4Addresses":{%s}}`, e.Primary, e.Trunk, e.EFA, e.Device, strings.Join(addresses, ","))
		return b.String()
	}
	var v4, v6 []string
	for _, c := range e.CIDRs {
		if c.Held {
			continue
		}
		text := fmt.Sprintf(`%q:%s`, c.Prefix, w.upstreamCIDR(c, release))
		if c.Prefix.Addr().Is4() {
			v4 = append(v4, text)
		} else {
			v6 = append(v6, text)
		}
	}
	fmt.Fprintf(&b, `"IsPrimary":%t,"IsTrunk":%t,"IsEFA":%t,"DeviceNumber":%d,"AvailableIPv4Cidrs":{%s}`, e.Primary, e.Trunk, e.EFA, e.Device, strings.Join(v4, ","))
	if release >= 10 {
		fmt.Fprintf(&b, `,"IPv6Cidrs":{%s}`, strings.Join(v6, ","))
	}
	if release >= 22 {
		fmt.Fprintf(&b, `,"IsExcludedForPodIPs":%t`, e.Excluded)
	}
	if release >= 21 || (release == 20 && w.node.release >= "v1.20.5") {
		fmt.Fprintf(&b, `,"RouteTableID":%d`, e.RouteTable)
	}
	if release >= 22 {
		fmt.Fprintf(&b, `,"SubnetID":%q`, e.SubnetID)
	}
	return b.String() + "}"
}

func (w *world) upstreamCIDR(c ipam.CIDRState, release int) string {
	var addresses []string
	for _, r := range c.Records {
		addresses = append(addresses, fmt.Sprintf(`%q:%s`, r.Address, w.upstreamAddress(c, r.Address, release)))
	}
	member, rest := "IPAddresses", `,"AddressFamily":""`
	if release < 10 {
		member, rest = "IPv4Addresses", ""
	}
	mask := base64.StdEncoding.EncodeToString(net.CIDRMask(c.Prefix.Bits(), c.Prefix.Addr().BitLen()))
	return fmt.Sprintf(`{"Cidr":{"IP":%q,"Mask":%q},%q:{%s},"IsPrefix":%t%s}`, c.Prefix.Addr(), mask, member, strings.Join(addresses, ","), c.IsPrefix(), rest)
}

func (w *world) upstreamAddress(c ipam.CIDRState, a netip.Addr, release int) string {
	var r ipam.AddressState
	for _, known := range c.Records {
		if known.Address == a {
			r = known
		}
	}
	network, container, ifName := r.Sandbox.Network, fmt.Sprintf("%064x", w.node.sim.hash(w.node.index, r.Sandbox.ContainerID)), r.Sandbox.IfName
	if release >= 23 || !r.Assigned() {
		container, ifName = "", ""
	}
	key := fmt.Sprintf(`{"networkName":%q,"containerID":%q,"ifName":%q}`, network, container, ifName)
	unassigned := r.UnassignedAt.UTC().Format(time.RFC3339Nano)
	if release < 9 {
		return fmt.Sprintf(`{"IPAMKey":%s,"Address":%q,"UnassignedTime":%q}`, key, a, unassigned)
	}
	var meta, at string
	if release >= 11 {
		meta = `,"IPAMMetadata":{}`
		if r.Assigned() {
			meta = fmt.Sprintf(`,"IPAMMetadata":{"k8sPodNamespace":%q,"k8sPodName":%s`, r.Pod.Namespace, quoteJSON(w.node.garble(r.Pod.Name)))
			if release >= 20 {
				meta += `,"interfacesCount":1`
			}
			meta += "}"
		}
		at = fmt.Sprintf(`,"AssignedTime":%q`, r.AssignedAt.UTC().Format(time.RFC3339Nano))
	}
	return fmt.Sprintf(`{"Address":%q,"IPAMKey":%s%s%s,"UnassignedTime":%q}`, a, key, meta, at, unassigned)
}

// quoteJSON quotes a string for JSON: %q has escapes that JSON lacks.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

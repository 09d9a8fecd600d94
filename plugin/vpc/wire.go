package vpc

import (
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
)

// ask sends one request; the caller closes the call.
func (c *command) ask(frame []byte, timeout time.Duration) (*call, error) {
	crashpoint.Here(crashpoint.PluginBeforeRequest)
	call, err := dial(c.Socket, timeout, c.Now)
	if err != nil {
		return nil, err
	}
	c.log.Debug("Connected to IPAMD via Unix socket: " + c.Socket)
	if err := call.send(frame); err != nil {
		call.close()
		return nil, err
	}
	crashpoint.Here(crashpoint.PluginRequestSent)
	return call, nil
}

// delNetwork notifies the daemon that the sandbox's addresses are no longer used.
func (c *command) delNetwork(reason, podUID string, timeout time.Duration) (*cniwire.DelReply, error) {
	r := cniwire.DelRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, PodUID: podUID,
		ContainerID: c.containerID, IfName: c.ifName, NetworkName: c.conf.Name,
		Reason: reason, ClientVersion: c.Version,
	}
	call, err := c.ask(cniwire.AppendDelRequest(make([]byte, 0, 512), &r), timeout)
	if err != nil {
		if c.legacyInstead(err) {
			return c.legacyDel(&r, timeout)
		}
		return nil, err
	}
	defer call.close()
	answer, err := call.receive(c.log.Flush)
	if err != nil {
		return nil, err
	}
	crashpoint.Here(crashpoint.PluginReplyRead)
	return cniwire.DecodeDelReply(answer)
}

// addReplyText prints a reply as upstream's log does: protobuf's text form.
func addReplyText(r *cniwire.AddReply) string {
	var b strings.Builder
	if r.Success {
		b.WriteString("Success:true")
	}
	allocationsText(&b, r.Allocations)
	if r.UseExternalSNAT {
		b.WriteString("  UseExternalSNAT:true")
	}
	for _, cidr := range r.VPCv4CIDRs {
		b.WriteString("  VPCv4CIDRs:" + strconv.Quote(cidr))
	}
	if r.PodVLANID != 0 {
		b.WriteString("  PodVlanId:" + strconv.Itoa(int(r.PodVLANID)))
	}
	if r.NetworkPolicyMode != "" {
		b.WriteString("  NetworkPolicyMode:" + strconv.Quote(r.NetworkPolicyMode))
	}
	if r.Cause != "" {
		b.WriteString("  Cause:" + strconv.Quote(r.Cause))
	}
	return b.String()
}

func delReplyText(r *cniwire.DelReply) string {
	var b strings.Builder
	if r.Success {
		b.WriteString("Success:true")
	}
	allocationsText(&b, r.Allocations)
	if r.PodVLANID != 0 {
		b.WriteString("  PodVlanId:" + strconv.Itoa(int(r.PodVLANID)))
	}
	if r.NetworkPolicyMode != "" {
		b.WriteString("  NetworkPolicyMode:" + strconv.Quote(r.NetworkPolicyMode))
	}
	return b.String()
}

func allocationsText(b *strings.Builder, list []cniwire.Allocation) {
	for _, a := range list {
		var parts []string
		if a.IPv4 != "" {
			parts = append(parts, "IPv4Addr:"+strconv.Quote(a.IPv4))
		}
		if a.IPv6 != "" {
			parts = append(parts, "IPv6Addr:"+strconv.Quote(a.IPv6))
		}
		if a.Device != 0 {
			parts = append(parts, "DeviceNumber:"+strconv.Itoa(int(a.Device)))
		}
		if a.RouteTable != 0 {
			parts = append(parts, "RouteTableId:"+strconv.Itoa(int(a.RouteTable)))
		}
		b.WriteString("  IPAllocationMetadata:{" + strings.Join(parts, "  ") + "}")
	}
}

package vpc

import (
	"errors"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/podnet/apply"
)

// Messages that events, dashboards and other tools' rules match on. They are upstream's, word
// for word, inconsistencies included.
const (
	textBadConfig     = "error loading config from args: "
	textBadArgsAdd    = "failed to load k8s config from arg: "
	textBadArgsDel    = "failed to load k8s config from args: "
	textCall          = "Error received from AddNetwork gRPC call: "
	textNoAddress     = "failed to assign an IP address to container"
	textNoPolicy      = "failed to setup network policy"
	textNotProcessed  = "failed to process delete request"
	textPrevResult    = "failed to delete with prevResult: "
	textMalformedVLAN = "malformed vlanID in prevResult: "

	addPrefix      = "add cmd: "
	delPrefix      = "del cmd: "
	checkPrefix    = "check cmd: " // this and the next two are ours: upstream has no such commands
	statusPrefix   = "status cmd: "
	gcPrefix       = "gc cmd: "
	textDiffers    = "the pod's network is not as ADD left it: "
	textSetup      = "add command: failed to setup network: SetupPodNetwork: " // "command", not "cmd"
	textSetupBr    = "add command: failed to setup network: SetupBranchENIPodNetwork: "
	textTornDown   = "failed on tear down pod network: "
	textTeardown   = "TeardownPodNetwork: "
	textTeardownBr = "TeardownBranchENIPodNetwork: "
	textDownVLAN   = "failed to teardown vlan: "
	textDownIIF    = "unable to teardown IIF based container routes and rules: "
	textDownIP     = "unable to teardown IP based container routes and rules: "

	textVethPair = "failed to setup veth pair: "
	textVeth     = textVethPair + "failed to setup veth network: "
	textVLAN     = "failed to setup vlan: "
	textRules    = "unable to setup IP based container routes and rules: "
	textIIFRules = "unable to setup IIF based container routes and rules: "
)

// dialText is how upstream reports a daemon that does not answer on its socket. It names
// upstream's socket, which tools match on, although the plugin itself uses cniwire.Socket.
func dialText(errno unix.Errno) string {
	return `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix ` +
		cniwire.GRPCSocket + `: connect: ` + errno.Error() + `"`
}

// rpcText is how upstream reports any other failure of a call.
func rpcText(code, desc string) string { return "rpc error: code = " + code + " desc = " + desc }

// setupText is upstream's chain of prefixes for a failure in podnet/apply.
func setupText(err error, p *plan) string {
	prefix := textSetup
	if p.branch != nil {
		prefix = textSetupBr
	}
	var notNS *apply.NetnsError
	if errors.As(err, &notNS) {
		return prefix + textVeth + netnsText(notNS)
	}
	of := 0
	var step *apply.StepError
	if errors.As(err, &step) {
		of = step.Interface
	}
	return prefix + stepText(apply.FailedStep(err), p, of) + why(err)
}

// why is the reason for a failure, without the step that failed.
func why(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	var step *apply.StepError
	if errors.As(err, &step) {
		return step.Err.Error()
	}
	return err.Error()
}

func netnsText(e *apply.NetnsError) string {
	if e.Err == nil {
		return "unknown FS magic on " + strconv.Quote(e.Path) + ": " + strconv.FormatInt(e.Magic, 16)
	}
	return "failed to Statfs " + strconv.Quote(e.Path) + ": " + e.Err.Error()
}

// stepText is upstream's text for a step of the nth interface.
func stepText(step apply.Step, p *plan, nth int) string {
	n := &p.nics[nth]
	link := strconv.Quote(n.podLink)
	table := tableText(n.table)
	address := ", containerAddr=" + addressText(n.address)
	if p.branch != nil {
		branchTable, _ := netnames.BranchTable(p.branch.VLAN)
		table = strconv.Itoa(branchTable)
		if text, ok := branchStepText(step, p, table); ok {
			return text
		}
	}
	switch step {
	case apply.StepDeleteStale:
		return textVethPair + "failed to delete old hostVeth " + n.hostLink + ": "
	case apply.StepAcceptRA:
		return textVethPair + "failed to disable IPv6 router advertisements: "
	case apply.StepRedirects:
		return textVethPair + "failed to disable IPv6 ICMP redirects: "
	case apply.StepForwarding:
		return textVethPair + "failed to disable IPv6 forwarding: "
	case apply.StepPodLinkUp:
		return textVeth + "setup NS network: failed to set link " + link + " up: "
	case apply.StepEnableIPv6:
		return textVeth + "setupVeth network: failed to enable IPv6 on container veth interface: "
	case apply.StepEnableIPv6Lo:
		return textVeth + "setupVeth network: failed to enable IPv6 on container's lo interface: "
	case apply.StepGateway:
		return textVeth + "setup NS network: failed to add default gateway: "
	case apply.StepInterfaceRule:
		return textVeth + "failed to setup fromInterface rule" + address + ", rtTable=" + strconv.Itoa(nth) + ": "
	case apply.StepDefaultRoute:
		return textVeth + "setup NS network: failed to add default route: "
	case apply.StepAddress:
		return textVeth + "setup NS network: failed to add IP addr to " + link + ": "
	case apply.StepNeighbour:
		return textVeth + "setup NS network: failed to add static ARP: "
	case apply.StepReady:
		return textVeth + "setup NS network: failed while waiting for v6 addresses to be stable: link " + n.podLink + ": "
	case apply.StepHostRoute:
		return textRules + "failed to setup container route" + address + ", hostVeth=" + n.hostLink + ", rtTable=main: "
	case apply.StepToPodRule:
		return textRules + "failed to setup toContainer rule" + address + ", rtTable=main: "
	case apply.StepFromPodRule:
		return textRules + "failed to setup fromContainer rule" + address + ", rtTable=" + table + ": "
	}
	return textVeth // sockets and the pair itself
}

// branchStepText is upstream's text for a step that only pods with branch ENIs have.
func branchStepText(step apply.Step, p *plan, table string) (string, bool) {
	n := &p.nics[0]
	device := netnames.VLANDevice(p.branch.VLAN)
	gateway := p.branch.Gateway.String()
	switch step {
	case apply.StepBranchStaleRules:
		return "failed to delete hostVeth rule for " + n.hostLink + ": ", true
	case apply.StepOldVLAN:
		return textVLAN + "failed to delete old vlan link " + device + ": ", true
	case apply.StepCreateVLAN:
		return textVLAN + "failed to add vlan link " + device + ": ", true
	case apply.StepVLANAcceptRA:
		return textVLAN + "failed to disable IPv6 router advertisements: ", true
	case apply.StepVLANRedirects: // upstream's text differs from that for a veth
		return textVLAN + "failed to enable IPv6 ICMP redirects: ", true
	case apply.StepVLANForwarding:
		return textVLAN + "failed to disable IPv6 forwarding: ", true
	case apply.StepVLANUp:
		return textVLAN + "failed to setUp vlan link " + device + ": ", true
	case apply.StepVLANGateway:
		return textVLAN + "failed to replace route entry " + gateway + " via <nil>: ", true
	case apply.StepVLANDefault:
		all := "0.0.0.0"
		if p.branch.Gateway.Is6() {
			all = "::"
		}
		return textVLAN + "failed to replace route entry " + all + " via " + gateway + ": ", true
	case apply.StepBranchRoute:
		return textIIFRules + "failed to setup container route, containerAddr=" + addressText(n.address) + ", hostVeth=" + n.hostLink + ", rtTable=" + table + ": ", true
	case apply.StepFromVLANRule:
		return textIIFRules + "unable to setup fromHostVlan rule, hostVlan=" + device + ", rtTable=" + table + ": ", true
	case apply.StepFromVethRule:
		return textIIFRules + "unable to setup fromHostVeth rule, hostVeth=" + n.hostLink + ", rtTable=" + table + ": ", true
	}
	return "", false
}

// teardownText is upstream's text for a failed teardown of an ordinary pod.
func teardownText(err error, address netip.Addr, table int) string {
	return textTeardown + textDownIP + byAddressText(err, address, table) + why(err)
}

// branchTeardownText is the same for a pod with a branch ENI.
func branchTeardownText(err error, address netip.Addr, vlan int) string {
	table, _ := netnames.BranchTable(vlan)
	switch apply.FailedStep(err) {
	case apply.StepVLANLink:
		return textTeardownBr + textDownVLAN + "failed to delete vlan link " + netnames.VLANDevice(vlan) + ": " + why(err)
	case apply.StepBranchRules:
		return textTeardownBr + textDownIIF + "failed to delete IIF based rules, rtTable=" + strconv.Itoa(table) + ": " + why(err)
	}
	return textTeardownBr + textDownIP + byAddressText(err, address, table) + why(err)
}

func byAddressText(err error, address netip.Addr, table int) string {
	of := ", containerAddr=" + addressText(address) + ", rtTable="
	switch apply.FailedStep(err) {
	case apply.StepToPodRule:
		return "failed to delete toContainer rule" + of + "main: "
	case apply.StepFromPodRule:
		return "failed to delete fromContainer rule" + of + tableText(table) + ": "
	}
	return ""
}

func tableText(table int) string {
	if table == 0 || table == 1 || table == 254 {
		return "main"
	}
	return strconv.Itoa(table)
}

func addressText(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

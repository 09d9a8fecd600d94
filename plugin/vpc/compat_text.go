package vpc

import (
	"errors"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/plugin/podnet/apply"
)

// Messages that events, dashboards and the rules of other tools match on. They are
// the original's, word for word, inconsistencies included (spec/plugin.md §2.5,
// §3.1).
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
	checkPrefix    = "check cmd: " // this and the next two are ours: the original has no such commands
	statusPrefix   = "status cmd: "
	gcPrefix       = "gc cmd: "
	textDiffers    = "the pod's network is not as ADD left it: "
	textSetup      = "add command: failed to setup network: SetupPodNetwork: " // "command", not "cmd"
	textTeardown   = "del cmd: failed on tear down pod network: TeardownPodNetwork: unable to teardown IP based container routes and rules"
	textTeardownBr = "TeardownBranchENIPodNetwork: "

	textVethPair = "failed to setup veth pair: "
	textVeth     = textVethPair + "failed to setup veth network: "
	textRules    = "unable to setup IP based container routes and rules: "
)

// legacySocket is the daemon's socket in the original's messages, which tools match
// on; the plugin itself speaks to cniwire.Socket, in the same directory.
const legacySocket = "/var/run/aws-node/ipamd.sock"

// dialText is how the original reports a daemon that does not answer its socket.
func dialText(errno unix.Errno) string {
	return `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix ` +
		legacySocket + `: connect: ` + errno.Error() + `"`
}

// rpcText is how the original reports any other failure of a call.
func rpcText(code, desc string) string { return "rpc error: code = " + code + " desc = " + desc }

// setupText is the original's chain of words for a failure of podnet/apply.
func setupText(err error, p *podNames) string {
	var notNS *apply.NetnsError
	if errors.As(err, &notNS) {
		return textSetup + textVeth + netnsText(notNS)
	}
	why := err.Error()
	var step *apply.StepError
	if errors.As(err, &step) {
		why = step.Err.Error()
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		why = errno.Error()
	}
	return textSetup + stepText(apply.FailedStep(err), p) + why
}

func netnsText(e *apply.NetnsError) string {
	if e.Err == nil {
		return "unknown FS magic on " + strconv.Quote(e.Path) + ": " + strconv.FormatInt(e.Magic, 16)
	}
	return "failed to Statfs " + strconv.Quote(e.Path) + ": " + e.Err.Error()
}

func stepText(step apply.Step, p *podNames) string {
	link := strconv.Quote(p.podLink)
	table := tableText(p.table)
	address := ", containerAddr=" + addressText(p.address)
	switch step {
	case apply.StepDeleteStale:
		return textVethPair + "failed to delete old hostVeth " + p.hostLink + ": "
	case apply.StepAcceptRA:
		return textVethPair + "failed to disable IPv6 router advertisements: "
	case apply.StepRedirects:
		return textVethPair + "failed to disable IPv6 ICMP redirects: "
	case apply.StepForwarding:
		return textVethPair + "failed to disable IPv6 forwarding: "
	case apply.StepPodLinkUp:
		return textVeth + "setup NS network: failed to set link " + link + " up: "
	case apply.StepGateway:
		return textVeth + "setup NS network: failed to add default gateway: "
	case apply.StepDefaultRoute:
		return textVeth + "setup NS network: failed to add default route: "
	case apply.StepAddress:
		return textVeth + "setup NS network: failed to add IP addr to " + link + ": "
	case apply.StepNeighbour:
		return textVeth + "setup NS network: failed to add static ARP: "
	case apply.StepHostRoute:
		return textRules + "failed to setup container route" + address + ", hostVeth=" + p.hostLink + ", rtTable=main: "
	case apply.StepToPodRule:
		return textRules + "failed to setup toContainer rule" + address + ", rtTable=main: "
	case apply.StepFromPodRule:
		return textRules + "failed to setup fromContainer rule" + address + ", rtTable=" + table + ": "
	}
	return textVeth // sockets and the pair itself
}

// teardownText is the message of a DEL whose teardown failed.
func teardownText(err error) string {
	step := ""
	switch apply.FailedStep(err) {
	case apply.StepToPodRule:
		step = ": failed to delete toContainer rule"
	case apply.StepFromPodRule:
		step = ": failed to delete fromContainer rule"
	case apply.StepVLANLink:
		return delPrefix + "failed on tear down pod network: " + textTeardownBr + "failed to teardown vlan: " + err.Error()
	}
	return textTeardown + step + ": " + err.Error()
}

func tableText(table int) string {
	if table == 0 || table == 1 || table == 254 {
		return "main"
	}
	return strconv.Itoa(table)
}

func addressText(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }
